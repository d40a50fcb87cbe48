// failover: brokers are killed one after another while records are sent at a fixed rate, and come back. Each killed broker leads
// some ranges and follows the others, so one kill asks both questions: for how long does a range acknowledge nothing when its
// leader, and when a follower, is gone? And when do the others call the broker dead? Nothing acknowledged may be lost.
//
//   settled ── kill -9 ── gaps, per range ── start again ── settled ── the next
//
// The coordinator of a range may be on the broker that is killed too; then a follower's gap has an election in it, and nobody
// outside can tell which those are. So the median says what it costs without, and the most what it costs with.

import { EastGuard } from '../../src/index.ts'
import { type LocalBroker, LocalCluster } from '../../test/support/local-cluster.ts'
import { pause } from '../../test/support/time.ts'
import { latencyHistogram, openLoop } from '../open-loop.ts'
import { openSegments } from '../replicas.ts'
import { latencies, type Result } from '../report.ts'
import { Tally } from '../tally.ts'
import { TallyReaders } from '../tally-readers.ts'

const BROKERS_LEAST = 3
const RANGES = 12
const PER_SECOND = 3500
const VALUE_BYTES = 800
const WARMUP_MS = 3000
/** How long after each kill gaps are looked for at least: until it is declared dead, too. */
const WATCHED_MS = 10_000
const SETTLED_MS = 120_000
const PATIENCE_MS = 30_000
const LOOK_MS = 50

export async function failover(dir: string, seconds: number, brokers: number): Promise<Result[]> {
  const cluster = await LocalCluster.form({
    parent: dir,
    brokers: Math.max(BROKERS_LEAST, brokers),
    flags: ['--log-level=warn'],
  })
  try {
    await using client = new EastGuard({ seeds: cluster.seeds })
    return await measure(cluster, client, Math.max(WATCHED_MS, seconds * 1000))
  } finally {
    await cluster.close()
  }
}

/** When each range has last been acknowledged, and the longest that it was not. */
class Gaps {
  private last = new Float64Array(RANGES)
  private longest = new Float64Array(RANGES)

  acked(range: number): void {
    const now = performance.now()
    this.longest[range] = Math.max(this.longest[range] ?? 0, now - (this.last[range] ?? now))
    this.last[range] = now
  }

  begin(): void {
    this.last.fill(performance.now())
    this.longest.fill(0)
  }

  /** Of a range, in milliseconds; one that still lasts counts too. */
  of(range: number): number {
    return Math.max(this.longest[range] ?? 0, performance.now() - (this.last[range] ?? 0))
  }
}

async function measure(
  cluster: LocalCluster,
  client: EastGuard,
  watchedMs: number,
): Promise<Result[]> {
  const topics = Array.from({ length: RANGES }, (_, i) => `failover-${i}`)
  const policy = { partitions: 1, replicationFactor: 3, minInsyncReplicas: 2 }
  for (const topic of topics) await client.admin().createTopic(topic, { policy })
  const tally = new Tally()
  const gaps = new Gaps()
  const producer = client.producer()
  let finish: () => void = () => {}
  const over = new Promise<void>((resolve) => {
    finish = resolve
  })
  const loading = openLoop(PER_SECOND, over, async (n, intendedMs) => {
    const range = n % RANGES
    const { number, value } = tally.value(VALUE_BYTES, intendedMs)
    await producer.send({ topic: topics[range] as string, value })
    tally.acked(number)
    gaps.acked(range)
  })
  await pause(WARMUP_MS)
  const found: Kill[] = []
  for (const victim of cluster.brokers) {
    found.push(await killOne(cluster, client, victim, topics, gaps, watchedMs))
  }
  finish()
  const { latency, errors, longestGapMs } = await loading
  await producer.close()
  const readers = new TallyReaders(client, topics, tally)
  const lost = await readers.drained(PATIENCE_MS)
  await readers.close()
  const times = `${found.length} kills`
  return [
    distribution(`longest gap of each range that was led there, ${times}`, found.flatMap(led)),
    distribution(
      `longest gap of each range that was followed there, ${times}`,
      found.flatMap(rest),
    ),
    distribution(
      `declared dead after, ${times}`,
      found.map(({ deadMs }) => deadMs),
    ),
    distribution(
      `settled after it was started again, ${times}`,
      found.map(({ settledMs }) => settledMs),
    ),
    {
      name: 'failover',
      case: `all records, ${PER_SECOND.toLocaleString('en')}/s; out of order: ${tally.misordered}`,
      unit: 'acks',
      value: latency.totalCount,
      ...latencies(latency),
      errors,
      lost,
      gap_ms: longestGapMs,
    },
  ]
}

interface Kill {
  readonly ledMs: readonly number[]
  readonly followedMs: readonly number[]
  readonly deadMs: number
  readonly settledMs: number
}

const led = (kill: Kill): readonly number[] => kill.ledMs
const rest = (kill: Kill): readonly number[] => kill.followedMs

async function killOne(
  cluster: LocalCluster,
  client: EastGuard,
  victim: LocalBroker,
  topics: readonly string[],
  gaps: Gaps,
  watchedMs: number,
): Promise<Kill> {
  const info = await client.admin().describeCluster()
  const nodeId = info.brokers.find(({ clientPort }) => clientPort === victim.port)?.nodeId
  const views = await client.admin().describeTopics(topics)
  const leaders = topics.map((topic) => {
    const view = views.find(({ name }) => name === topic)
    return view === undefined ? undefined : openSegments(view)[0]?.replicas[0]
  })
  gaps.begin()
  const killedMs = performance.now()
  await victim.end('SIGKILL')
  const seeds = cluster.brokers.filter((one) => one !== victim).map(({ address }) => address)
  await cluster.until(
    'the others call it dead',
    SETTLED_MS,
    ({ brokers }) => brokers.some((one) => one.nodeId === nodeId && one.state === 'dead'),
    seeds,
  )
  const deadMs = performance.now() - killedMs
  await pause(Math.max(LOOK_MS, watchedMs - deadMs))
  const lengths = topics.map((_, range) => gaps.of(range))
  const startedMs = performance.now()
  await cluster.start(victim)
  await victim.ready()
  await cluster.until('all is settled again', SETTLED_MS)
  return {
    ledMs: lengths.filter((_, range) => leaders[range] === nodeId),
    followedMs: lengths.filter((_, range) => leaders[range] !== nodeId),
    deadMs,
    settledMs: performance.now() - startedMs,
  }
}

function distribution(what: string, ms: readonly number[]): Result {
  const histogram = latencyHistogram()
  for (const one of ms) histogram.recordValue(Math.max(1, Math.round(one * 1000)))
  return {
    name: 'failover',
    case: what,
    unit: 'times',
    value: ms.length,
    ...latencies(histogram),
    gap_ms: Math.max(0, ...ms),
  }
}
