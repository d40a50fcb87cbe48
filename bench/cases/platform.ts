// platform: what a company's platform would ask of three brokers: 40 topics, 420 partitions in as many ranges, each on all
// brokers, keyed records of 800 bytes, acks=all, at an ordinary rate, at a busy one and at three times that. Producer and
// consumers are the SDK's, in one process, each record consumed as it is produced; latency counts from when a record should
// have been sent, to its acknowledgement and to its consumer. Nothing may be lost, and each key keeps its order.

import { pause } from '../../test/support/time.ts'
import { latencyHistogram, openLoop, recordSince } from '../open-loop.ts'
import { corePercentSince, processorUse } from '../process.ts'
import { UseMeter } from '../replicas.ts'
import { latencies, type Result } from '../report.ts'
import { Tally } from '../tally.ts'
import { TallyReaders } from '../tally-readers.ts'
import { type Measured, withBrokers } from '../workload.ts'

const BROKERS = 3
const TOPICS = Number(process.env['BENCH_TOPICS'] ?? 40)
const PARTITIONS = Number(process.env['BENCH_PARTITIONS'] ?? 420)
const KEYS = 10_000
const VALUE_BYTES = 800
/** Records per second, and for how many parts of the seconds given. */
const PHASES: readonly (readonly [number, number])[] = [
  [500, 1],
  [3500, 1],
  [10_500, 0.5],
]
const WARMUP_PER_SECOND = 3500
const WARMUP_MS = 8000
const PATIENCE_MS = 30_000
const SETTLE_MS = 3000
const REST_MS = 10_000

export function platform(dir: string, seconds: number): Promise<Result[]> {
  return withBrokers(dir, BROKERS, (measured) => measure(measured, seconds))
}

async function measure(measured: Measured, seconds: number): Promise<Result[]> {
  const { client, brokers } = measured
  const topics = await createTopics(measured)
  const tally = new Tally()
  let toConsumer = latencyHistogram()
  const readers = new TallyReaders(client, topics, tally, (ms) => recordSince(toConsumer, ms))
  const producer = client.producer()
  const send = async (n: number, intendedMs: number): Promise<void> => {
    const { number, value } = tally.value(VALUE_BYTES, intendedMs)
    const topic = topics[n % TOPICS] as string
    await producer.send({ topic, key: `key-${(n * 7919) % KEYS}`, value })
    tally.acked(number)
  }
  // Connections are made, routes found and code compiled before anything counts.
  await openLoop(WARMUP_PER_SECOND, pause(WARMUP_MS), send)
  const results: Result[] = []
  for (const [rate, parts] of PHASES) {
    toConsumer = latencyHistogram()
    const meter = new UseMeter(brokers)
    meter.begin()
    const until = pause(seconds * parts * 1000)
    const { latency, errors, longestGapMs } = await openLoop(rate, until, send)
    meter.end()
    const lost = await readers.drained(PATIENCE_MS)
    const what = `${rate.toLocaleString('en')}/s; brokers waited for a processor ${meter.starvedPercent.toFixed(0)} %`
    results.push(
      {
        name: 'platform',
        case: `to the acknowledgement, ${what}`,
        unit: 'acks',
        value: latency.totalCount,
        ...latencies(latency),
        errors,
        lost,
        gap_ms: longestGapMs,
      },
      {
        name: 'platform',
        case: `to the consumer, ${rate.toLocaleString('en')}/s; out of order: ${tally.misordered}`,
        unit: 'records',
        value: toConsumer.totalCount,
        ...latencies(toConsumer),
      },
    )
  }
  await producer.close()
  await readers.close()
  return [...results, await atRest(measured)]
}

/** What the brokers cost when nothing happens any more. */
async function atRest({ brokers }: Measured): Promise<Result> {
  await pause(SETTLE_MS)
  const before = brokers.map(({ child }) => processorUse(child.pid))
  await pause(REST_MS)
  return {
    name: 'platform',
    case: `at rest with ${PARTITIONS} ranges, the busiest of ${BROKERS} brokers`,
    unit: '% of a core',
    value: Math.max(...before.map(corePercentSince)),
  }
}

async function createTopics({ client }: Measured): Promise<readonly string[]> {
  const admin = client.admin()
  const topics = Array.from({ length: TOPICS }, (_, i) => `platform-${i}`)
  const each = Math.floor(PARTITIONS / TOPICS)
  const more = PARTITIONS - each * TOPICS
  await Promise.all(
    topics.map((topic, i) => {
      const partitions = each + (i < more ? 1 : 0)
      const policy = {
        partitions,
        rangeMode: 'fixed' as const,
        ranges: partitions,
        replicationFactor: BROKERS,
        minInsyncReplicas: 2,
      }
      return admin.createTopic(topic, { policy })
    }),
  )
  return topics
}
