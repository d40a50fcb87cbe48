// replicated: three brokers on one machine, each segment on all of them, acks=all; the work of append and of tiny. Brokers and
// client share the machine, so the limit is what one broker alone does there, measured before and after in the same run.
//
//   alone ── three brokers ── alone       append, then tiny
//
// Rates say little while others use the machine; what the brokers' processors did for the same work says more.

import { type LoadResult, run } from '../load.ts'
import { replicasOf, rollsOf, UseMeter } from '../replicas.ts'
import { latencies, type Result } from '../report.ts'
import type { Measured } from '../workload.ts'
import { HELLO_FRAME, makeBatch, makeProduceFrame, policyOn, withBrokers } from '../workload.ts'

const BROKERS = 3
/** Three brokers have a lot of code to compile while they share two processors. */
const WARMUP_SECONDS = 5
const TOPIC = 'bench'
/** For whoever looks for where the time goes: one of the two works, and fewer shards. */
const ONLY = process.env['BENCH_WORK']
const FLAGS =
  process.env['BENCH_SHARDS'] === undefined
    ? []
    : [`--metadata-shards=${process.env['BENCH_SHARDS']}`]

interface Work {
  readonly name: string
  readonly batch: Uint8Array
  readonly connections: number
  readonly inFlight: number
  readonly unit: string
  /** One acknowledgement, in the unit. */
  readonly each: number
  readonly per: string
  readonly perCount: number
}

function works(): readonly Work[] {
  const large = makeBatch(62, 1024)
  return [
    {
      name: 'append, 64 KiB batches, 16 in flight',
      batch: large,
      connections: 1,
      inFlight: 16,
      unit: 'MB/s',
      each: large.length / 1e6,
      per: 'GB',
      perCount: 1e9 / large.length,
    },
    {
      name: 'tiny, 100 B, 256 in flight, 8 connections',
      batch: makeBatch(1, 100),
      connections: 8,
      inFlight: 256,
      unit: 'acks/s',
      each: 1,
      per: '100,000 acks',
      perCount: 100_000,
    },
  ]
}

export async function replicated(dir: string, seconds: number): Promise<Result[]> {
  const results: Result[] = []
  for (const work of works()) {
    if (ONLY !== undefined && !work.name.startsWith(ONLY)) continue
    const on = (brokers: number): Promise<Found> =>
      withBrokers(dir, brokers, (measured) => measure(measured, seconds, work), FLAGS)
    const before = await on(1)
    const three = await on(BROKERS)
    const after = await on(1)
    results.push(...tell(work, three, [before, after]))
  }
  return results
}

interface Found extends LoadResult {
  /** Of the leader, then the followers. */
  readonly meter: UseMeter
  readonly rolls: number
  readonly replicasLeast: number
}

async function measure(measured: Measured, seconds: number, work: Work): Promise<Found> {
  const policy = { partitions: 1, ...policyOn(measured) }
  const { topicId } = await measured.client.admin().createTopic(TOPIC, { policy })
  const replicas = await replicasOf(measured, TOPIC)
  const meter = new UseMeter(replicas)
  const { connections, inFlight } = work
  const result = await run({
    port: replicas[0]?.port ?? 0,
    leader: async () => (await replicasOf(measured, TOPIC))[0]?.port ?? 0,
    hello: HELLO_FRAME,
    frame: makeProduceFrame(topicId, work.batch),
    connections,
    inFlight,
    seconds,
    warmupSeconds: WARMUP_SECONDS,
    onMeasuring: (begins) => (begins ? meter.begin() : meter.end()),
  })
  return { ...result, meter, ...(await rollsOf(measured.client, TOPIC)) }
}

function tell(work: Work, three: Found, alone: readonly Found[]): readonly Result[] {
  const { perSecond, latency, errors, meter, rolls, replicasLeast } = three
  const value = perSecond * work.each
  const limit = mean(alone.map((one) => one.perSecond)) * work.each
  const name = 'replicated'
  const [leader = 0, ...followers] = costs(work, three)
  const single = mean(alone.flatMap((one) => costs(work, one)))
  const cost = (who: string, of: number): Result => ({
    name,
    case: `processor for ${work.per}, ${who}; one broker: ${single.toFixed(2)}`,
    unit: 's',
    value: of,
  })
  return [
    {
      name,
      case: `${work.name}; rolls: ${rolls}, replicas: ${replicasLeast}`,
      unit: work.unit,
      value,
      limit,
      ratio: value / limit,
      ...latencies(latency),
      errors,
    },
    cost('leader', leader),
    cost('a follower', mean(followers)),
    {
      name,
      case: 'waiting for a processor meanwhile, the longest',
      unit: '% of the time',
      value: meter.starvedPercent,
    },
  ]
}

/** Of each broker. */
function costs(work: Work, { meter, answered }: Found): readonly number[] {
  return meter.used.map(({ seconds }) => (seconds * work.perCount) / answered)
}

function mean(numbers: readonly number[]): number {
  return numbers.reduce((sum, one) => sum + one, 0) / Math.max(1, numbers.length)
}
