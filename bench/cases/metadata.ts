// metadata: topics made, described and deleted through the SDK, as many callers at once as would be clients of a fleet
// that starts; then what the brokers cost when nothing happens. The limit of changes is one synced write each, as this disk does
// them: commands that wait together share a sync, so the ratio may be above one, and says how well they do.
//
//   start ── rest ── create all ── describe ── rest, watched ── delete all
//            memory                            processor, memory

import { build, type Histogram } from 'hdr-histogram-js'
import { type Admin, EastGuard } from '../../src/index.ts'
import { pause } from '../../test/support/time.ts'
import { LIVE_MEMORY_FLAGS, liveBytes } from '../live-memory.ts'
import { probeSyncedWrites } from '../probes/disk.ts'
import { corePercentSince, processorUse, residentBytes, starvedSeconds } from '../process.ts'
import { latencies, type Result } from '../report.ts'
import { type Measured, withBrokers } from '../workload.ts'

const TOPICS = Number(process.env['BENCH_TOPICS'] ?? 10_000)
const CALLERS = 64
const SHARDS = 256
const COMMAND_BYTES = 256
const PROBE_SECONDS = 2
/** Between the end of a load and when a broker counts as idle. */
const SETTLE_MS = 3000
const IDLE_MS = 10_000

export async function metadata(dir: string, seconds: number, brokers: number): Promise<Result[]> {
  const before = await probeSyncedWrites(dir, COMMAND_BYTES, PROBE_SECONDS)
  const on = <T>(shards: number, run: (measured: Measured) => Promise<T>): Promise<T> =>
    withBrokers(dir, brokers, run, [`--metadata-shards=${shards}`], LIVE_MEMORY_FLAGS)
  const results = await on(SHARDS, (measured) => measure(measured, seconds))
  const lean = await on(1, atRest)
  const limit = (before + (await probeSyncedWrites(dir, COMMAND_BYTES, PROBE_SECONDS))) / 2
  const { empty, findings } = results
  const shardKiB = (Math.max(...empty) - Math.max(...lean)) / (SHARDS - 1) / 1024
  return [
    ...findings.map((one) => (one.changes ? bounded(one.result, limit) : one.result)),
    figure('live memory of a shard without a topic', 'KiB', shardKiB).result,
  ]
}

/** What lives in each broker when nothing has been asked of it. */
async function atRest({ brokers }: Measured): Promise<number[]> {
  await pause(SETTLE_MS)
  return Promise.all(brokers.map(({ child }) => liveBytes(child.pid)))
}

interface Finding {
  readonly result: Result
  /** Each of what was counted is a change that has to be durable. */
  readonly changes: boolean
}

function bounded(result: Result, limit: number): Result {
  return { ...result, limit, ratio: result.value / limit }
}

interface Measures {
  readonly empty: readonly number[]
  readonly findings: readonly Finding[]
}

async function measure(measured: Measured, seconds: number): Promise<Measures> {
  const { brokers } = measured
  const pids = brokers.map(({ child }) => child.pid)
  // Callers are spread over the brokers: one client alone would stay with one of them.
  const clients = brokers.map(({ port }) => new EastGuard({ seeds: [`127.0.0.1:${port}`] }))
  const admins = clients.map((client) => client.admin())
  const admin = (i: number): Admin => admins[i % admins.length] as Admin
  const where = brokers.length === 1 ? '1 broker' : `${brokers.length} brokers`
  const empty = await atRest(measured)
  const resident = Math.max(...pids.map(residentBytes))
  const before = pids.map(processorUse)
  const starvedBefore = pids.map(starvedSeconds)
  const created = await load(TOPICS, (i) => admin(i).createTopic(nameOf(i), { policy: POLICY }))
  const used = pids.map(processorUse).map(({ seconds: at }, i) => at - (before[i]?.seconds ?? 0))
  const starved = pids.map((pid, i) => starvedSeconds(pid) - (starvedBefore[i] ?? 0))
  const described = await loadFor(seconds, (i) => admin(i).describeTopic(nameOf(spread(i))))
  await pause(SETTLE_MS)
  const idle = pids.map(processorUse)
  await pause(IDLE_MS)
  const percent = Math.max(...idle.map(corePercentSince))
  const full = await Promise.all(pids.map(liveBytes))
  const deleted = await load(TOPICS, (i) => admin(i).deleteTopic(nameOf(i)))
  await Promise.all(clients.map((client) => client.close()))
  const grown = full.map((bytes, i) => (bytes - (empty[i] ?? 0)) / TOPICS / 1024)
  const callers = `${CALLERS} callers, ${where}`
  const topics = TOPICS.toLocaleString('en')
  const findings = [
    { result: rate(`create ${topics} topics, ${callers}`, 'creates/s', created), changes: true },
    { result: rate(`describe, ${callers}`, 'describes/s', described), changes: false },
    { result: rate(`delete ${topics} topics, ${callers}`, 'deletes/s', deleted), changes: true },
    figure(
      `processor for a create, ${where} together`,
      'ms',
      (used.reduce((sum, one) => sum + one, 0) / TOPICS) * 1000,
    ),
    figure(
      `waiting for a processor meanwhile, the longest of ${where}`,
      '% of the time',
      (Math.max(...starved) * 100 * created.perSecond) / TOPICS,
    ),
    figure(
      `idle with ${topics} topics, ${SHARDS} shards, the busiest of ${where}`,
      '% of a core',
      percent,
    ),
    figure(`resident, no topic, the largest of ${where}`, 'MiB', resident / 1024 ** 2),
    figure(`live memory of a topic of one range, the most of ${where}`, 'KiB', Math.max(...grown)),
  ]
  return { empty, findings }
}

const POLICY = { partitions: 1, replicationFactor: 1 }

function nameOf(i: number): string {
  return `bench-${i}`
}

/** Another topic each time, and not one beside the last. */
function spread(i: number): number {
  return (i * 7919) % TOPICS
}

interface Loaded {
  readonly perSecond: number
  readonly latency: Histogram
  readonly errors: number
}

function load(count: number, call: (i: number) => Promise<unknown>): Promise<Loaded> {
  return closedLoop((i) => i < count, call)
}

function loadFor(seconds: number, call: (i: number) => Promise<unknown>): Promise<Loaded> {
  const endMs = performance.now() + seconds * 1000
  return closedLoop(() => performance.now() < endMs, call)
}

async function closedLoop(
  goesOn: (i: number) => boolean,
  call: (i: number) => Promise<unknown>,
): Promise<Loaded> {
  const latency = build({
    lowestDiscernibleValue: 1,
    highestTrackableValue: 60_000_000,
    numberOfSignificantValueDigits: 3,
  })
  let next = 0
  let errors = 0
  const caller = async (): Promise<void> => {
    for (let i = next++; goesOn(i); i = next++) {
      const began = performance.now()
      try {
        await call(i)
        latency.recordValue(Math.max(1, Math.round((performance.now() - began) * 1000)))
      } catch {
        errors++
      }
    }
  }
  const began = performance.now()
  await Promise.all(Array.from({ length: CALLERS }, caller))
  const perSecond = latency.totalCount / ((performance.now() - began) / 1000)
  return { perSecond, latency, errors }
}

function rate(what: string, unit: string, { perSecond, latency, errors }: Loaded): Result {
  return { name: 'metadata', case: what, unit, value: perSecond, ...latencies(latency), errors }
}

function figure(what: string, unit: string, value: number): Finding {
  return { result: { name: 'metadata', case: what, unit, value }, changes: false }
}
