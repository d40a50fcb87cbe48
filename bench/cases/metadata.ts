// metadata: topics made, described and deleted through the SDK, as many callers at once as would be clients of a fleet
// that starts; then what the brokers cost when nothing happens. The limit of changes is one synced write each, as this disk does
// them: commands that wait together share a sync, so the ratio may be above one, and says how well they do.
//
//   start ── rest ── create all ── describe ── rest, watched ── delete all
//            memory                            processor, memory

import { build, type Histogram } from 'hdr-histogram-js'
import { probeSyncedWrites } from '../probes/disk.ts'
import { corePercentSince, processorUse, residentBytes } from '../process.ts'
import { latencies, type Result } from '../report.ts'
import { type Measured, withBrokers } from '../workload.ts'

const TOPICS = Number(process.env['BENCH_TOPICS'] ?? 10_000)
const CALLERS = 64
const COMMAND_BYTES = 256
const PROBE_SECONDS = 2
/** Between the end of a load and when a broker counts as idle. */
const SETTLE_MS = 3000
const IDLE_MS = 10_000

export async function metadata(dir: string, seconds: number, brokers: number): Promise<Result[]> {
  const before = await probeSyncedWrites(dir, COMMAND_BYTES, PROBE_SECONDS)
  const results = await withBrokers(dir, brokers, (measured) => measure(measured, seconds))
  const limit = (before + (await probeSyncedWrites(dir, COMMAND_BYTES, PROBE_SECONDS))) / 2
  return results.map((one) => (one.changes ? bounded(one.result, limit) : one.result))
}

interface Finding {
  readonly result: Result
  /** Each of what was counted is a change that has to be durable. */
  readonly changes: boolean
}

function bounded(result: Result, limit: number): Result {
  return { ...result, limit, ratio: result.value / limit }
}

async function measure({ brokers, client }: Measured, seconds: number): Promise<Finding[]> {
  const pids = brokers.map(({ child }) => child.pid)
  const admin = client.admin()
  const where = brokers.length === 1 ? '1 broker' : `${brokers.length} brokers`
  await pause(SETTLE_MS)
  const empty = pids.map(residentBytes)
  const created = await load(TOPICS, (i) => admin.createTopic(nameOf(i), { policy: POLICY }))
  const described = await loadFor(seconds, (i) => admin.describeTopic(nameOf(spread(i))))
  await pause(SETTLE_MS)
  const idle = pids.map(processorUse)
  await pause(IDLE_MS)
  const percent = Math.max(...idle.map(corePercentSince))
  const full = pids.map(residentBytes)
  const deleted = await load(TOPICS, (i) => admin.deleteTopic(nameOf(i)))
  const grown = full.map((bytes, i) => (bytes - (empty[i] ?? 0)) / TOPICS / 1024)
  const callers = `${CALLERS} callers, ${where}`
  const topics = TOPICS.toLocaleString('en')
  return [
    { result: rate(`create ${topics} topics, ${callers}`, 'creates/s', created), changes: true },
    { result: rate(`describe, ${callers}`, 'describes/s', described), changes: false },
    { result: rate(`delete ${topics} topics, ${callers}`, 'deletes/s', deleted), changes: true },
    figure(`idle with ${topics} topics, the busiest of ${where}`, '% of a core', percent),
    figure(`resident, no topic, the largest of ${where}`, 'MiB', Math.max(...empty) / 1024 ** 2),
    figure(`resident per topic of one range, the largest of ${where}`, 'KiB', Math.max(...grown)),
  ]
}

const POLICY = { partitions: 1 }

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

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms))
}
