// Three real brokers that hold every record three times, producers and consumers of several topics, and one fault after another.
//
//   writers   ├──────────────────────────────────┤ rest                                 ├── ...
//   cluster      well ── a fault ── it works again ── well ── read at each replica ── their files compared; now and then
//   tailing   ├────────────────────────────────────────────── ...                     all are ended before
//
// What must be true of the records is in lane.ts, of their copies in copies.ts, of the cluster after a fault in places.ts.

import { type Prng, prng } from '../../../src/base/prng.ts'
import { EastGuard } from '../../../src/index.ts'
import { LocalCluster } from '../../support/local-cluster.ts'
import { pause, secondsSince, within } from '../../support/time.ts'
import { Waits } from '../metadata/waits.ts'
import { type Compared, compareCopies, type Known } from './copies.ts'
import { FAULTS, type Fault, strike } from './faults.ts'
import { Gaps } from './gaps.ts'
import { Lane } from './lane.ts'
import { untilWell } from './places.ts'
import { Passes, Tailing } from './readers.ts'
import { Writers } from './writers.ts'

const TOPICS = ['torture-a', 'torture-b', 'torture-c']
const PARTITIONS = 2
/** Together more than cache_bytes. */
const FILLER = 'filler'
const FILLER_BYTES = 500_000
const FILLERS = 12
const WORKS_MS = 60_000
const WELL_MS = 120_000
const COPIED_MS = 60_000
/** What a topic may be held up for while a majority runs: a lease, an election, a fence and a roll. */
const GAP_MS = 10_000
const MAJORITY_LOST: ReadonlySet<Fault> = new Set(['kill-two', 'kill-all'])
const LOG_CHARS = 6000
/** Small files, so that rolls, flushes and recycling happen all the time. */
const FLAGS = [
  '--metadata-shards=8',
  '--default-segment-bytes=512KiB',
  '--block-bytes=128KiB',
  '--wal-file-bytes=4MiB',
  '--flush-age-ms=200',
  '--reserve-bytes=16MiB',
  '--cache-bytes=4MiB',
  '--unflushed-bytes-max=2MiB',
]

export interface ReplicatedTorture {
  readonly rounds: number
  readonly seed: number
  /** A fault may strike what is not well again after the one before. */
  readonly brief: boolean
  readonly fault: Fault | 'all'
  /** What the brokers have on their disks is compared after every so many rounds and after the last. */
  readonly compareEvery: number
  /** All of them are ended, compared and started again after every so many, and after the last. */
  readonly restartEvery: number
  readonly print: (line: string) => void
}

interface Tally {
  rounds: number
  acknowledged: number
  read: number
  gapMs: number
  starvedMs: number
  violations: number
}

/** Resolves with the code to end with. `rounds`: of each fault that is asked for. */
export async function tortureReplicated(options: ReplicatedTorture): Promise<number> {
  const began = performance.now()
  const { print, fault, rounds } = options
  const flags = [...FLAGS, `--repair-delay-ms=${options.brief ? '1s' : '4s'}`]
  const cluster = await LocalCluster.form({ brokers: 3, flags, faulty: true })
  const run = new Run(options, cluster)
  print(`three brokers after ${secondsSince(began)} s`)
  const faults = fault === 'all' ? FAULTS : [fault]
  const last = rounds * faults.length
  let now: Fault | undefined
  try {
    await run.begin()
    for (let n = 1; n <= last && run.violations.length === 0; n++) {
      now = faults[(n - 1) % faults.length] as Fault
      await run.round(n, now)
      const again = n % options.restartEvery === 0 || n === last
      if (again || n % options.compareEvery === 0) await run.compare(again)
    }
  } catch (error) {
    run.violations.push(`${now ?? 'the start'}: it could not go on: ${String(error)}`)
  }
  const { violations } = run
  const logs = violations.length > 0 ? cluster.logs(LOG_CHARS) : []
  await run.end()
  const kept = await cluster.close({ keep: violations.length > 0 })
  for (const line of run.summary()) print(line)
  print(
    `${rounds} rounds each, seed ${options.seed}: ${violations.length} violations, ${secondsSince(began)} s`,
  )
  for (const violation of violations.slice(0, 20)) print(`  ${violation}`)
  for (const log of logs) print(log)
  if (kept !== undefined) print(`the data directories were kept: ${kept}`)
  return violations.length > 0 ? 1 : 0
}

class Run {
  readonly violations: string[] = []
  private readonly options: ReplicatedTorture
  private readonly cluster: LocalCluster
  private readonly random: Prng
  private readonly lanes: readonly Lane[]
  private readonly gaps = new Gaps()
  private readonly writers: Writers
  private readonly passes = new Passes()
  private readonly waits: Waits
  private readonly known: Known = new Map()
  private tailing: readonly Tailing[] = []
  private readonly tallies = new Map<Fault, Tally>()

  constructor(options: ReplicatedTorture, cluster: LocalCluster) {
    this.options = options
    this.cluster = cluster
    this.random = prng(options.seed)
    const lanes: Lane[] = []
    for (const topic of TOPICS) {
      for (let p = 0; p < PARTITIONS; p++) lanes.push(new Lane(topic, p, lanes.length, true))
    }
    lanes.push(new Lane(TOPICS[0] as string, PARTITIONS, lanes.length, false))
    this.lanes = lanes
    this.writers = new Writers(cluster.seeds, lanes, options.seed, this.gaps)
    this.waits = new Waits(() => cluster.brokers.map(({ process }) => process?.child.pid))
  }

  async begin(): Promise<void> {
    const { cluster, lanes, options } = this
    await using client = new EastGuard({ seeds: cluster.seeds })
    for (const topic of TOPICS) {
      const partitions = lanes.filter((lane) => lane.topic === topic).length
      await client.admin().createTopic(topic, { policy: { partitions, replicationFactor: 3 } })
    }
    await this.well()
    this.tailing = TOPICS.map((topic, i) => {
      const at = cluster.brokers[i % cluster.brokers.length]?.name ?? ''
      const mine = lanes.filter((lane) => lane.topic === topic)
      return new Tailing(cluster.seeds, at, mine, options.seed)
    })
  }

  async round(n: number, fault: Fault): Promise<void> {
    const { random, options, gaps, writers, cluster } = this
    const roundMs = performance.now()
    const [before, readBefore] = [this.acknowledged(), this.reads()]
    writers.begin()
    await pause(options.brief ? 500 : 1000 + random.below(2000))
    gaps.begin(TOPICS)
    const scene = {
      cluster,
      random,
      topics: TOPICS,
      topic: TOPICS[random.below(TOPICS.length)] as string,
      brief: options.brief,
      violation: (what: string) => void this.violations.push(what),
      well: async () => void (await untilWell(cluster, [], WELL_MS)),
      readAll: () => this.read(true),
      forgetful: () => this.forgetful(),
    }
    const told = await strike(fault, scene)
    await this.works(told)
    const gap = gaps.end()
    const starvedMs = this.waits.between(gap.fromMs, gap.toMs)
    await this.rested(told)
    const well = options.brief ? '' : `, ${await this.healed()}`
    await this.read(false)
    const read = this.reads() - readBefore
    const acknowledged = this.acknowledged() - before
    const gapMs = gap.toMs - gap.fromMs
    if (!MAJORITY_LOST.has(fault) && gapMs > GAP_MS + starvedMs) {
      this.violations.push(`nothing was acknowledged for ${Math.round(gapMs)} ms, after: ${told}`)
    }
    const violations = this.violations.length
    this.count(fault, { rounds: 1, acknowledged, read, gapMs, starvedMs, violations })
    options.print(
      `round ${n}, ${fault}: ${told}; ${acknowledged} acknowledged, ${read} read, longest gap ${Math.round(gapMs)} ms ` +
        `(${Math.round(starvedMs)} for a processor)${well}; ${secondsSince(roundMs)} s`,
    )
  }

  /** While they run: what each has must come to agree. `again`: then all are ended at once, compared as they lie, and read from the beginning. */
  async compare(again: boolean): Promise<void> {
    const { cluster, options } = this
    const began = performance.now()
    const { info, topics, last } = await untilWell(cluster, TOPICS, WELL_MS)
    const wellS = secondsSince(began)
    const dirOf = (node: string): string | undefined => {
      const named = info.brokers.find(({ nodeId }) => nodeId === node)?.displayName
      return cluster.brokers.find(({ name }) => name === named)?.dataDir
    }
    const look = (): Promise<Compared> => compareCopies(topics, dirOf, this.known)
    // Who has just been given a segment has still to copy it, and what it has copied goes to the file a little later.
    const untilMs = performance.now() + COPIED_MS
    let found = await look()
    while (found.violations.length > 0 && performance.now() < untilMs) {
      await pause(500)
      found = await look()
    }
    if (again) {
      await Promise.all(cluster.brokers.map((broker) => broker.end('SIGKILL')))
      found = await look()
    }
    this.violations.push(...found.violations)
    const read = again ? `; all from offset 0: ${await this.readAgain()} read` : ''
    const why = last === '' ? '' : ` (${last})`
    options.print(
      `  compared ${found.segments} segments, ${found.entries} entries${read}; ${secondsSince(began)} s, ${wellS} until all was well${why}`,
    )
  }

  /** What those have who were ended, when they have started. */
  private async readAgain(): Promise<number> {
    const { cluster } = this
    for (const broker of cluster.brokers) await cluster.start(broker)
    await Promise.all(cluster.brokers.map((broker) => broker.ready()))
    await this.well()
    const before = this.reads()
    await this.read(true)
    return this.reads() - before
  }

  async end(): Promise<void> {
    this.waits.stop()
    for (const tailing of this.tailing) await tailing.close()
    await this.writers.close()
  }

  summary(): readonly string[] {
    return [...this.tallies].map(
      ([fault, { rounds, acknowledged, read, gapMs, starvedMs, violations }]) =>
        `${fault}: ${rounds} rounds, ${acknowledged} acknowledged, ${read} read, longest gap ${Math.round(gapMs)} ms ` +
        `(${Math.round(starvedMs)} for a processor), ${violations} violations`,
    )
  }

  /** Every topic has acknowledged something after the fault ended. */
  private async works(told: string): Promise<void> {
    const { gaps } = this
    const since = performance.now()
    await within(WORKS_MS, `acknowledgements in every topic, after: ${told}`, () =>
      gaps.allSince(TOPICS, since),
    )
  }

  private async rested(told: string): Promise<void> {
    let settled = false
    void this.writers.rest().then(() => {
      settled = true
    })
    await within(WORKS_MS, `all that was sent is settled, after: ${told}`, () => settled)
  }

  /** More than their caches take, in a topic of its own. */
  private async forgetful(): Promise<void> {
    await using client = new EastGuard({ seeds: this.cluster.seeds })
    const policy = { partitions: 1, replicationFactor: 3 }
    await client.admin().createTopic(FILLER, { policy, ifNotExists: true })
    const producer = client.producer({ acks: 'all' })
    const value = new Uint8Array(FILLER_BYTES)
    for (let i = 0; i < FILLERS; i++) await producer.send({ topic: FILLER, value })
  }

  private async healed(): Promise<string> {
    const began = performance.now()
    const { last } = await untilWell(this.cluster, TOPICS, WELL_MS)
    return `well ${secondsSince(began)} s after the load${last === '' ? '' : ` (${last})`}`
  }

  private async well(): Promise<void> {
    await untilWell(this.cluster, TOPICS, WELL_MS)
  }

  /** From every replica what is new, or all of it. */
  private async read(again: boolean): Promise<void> {
    const { cluster, lanes, options, tailing } = this
    const { seeds } = cluster
    for (const broker of cluster.brokers) {
      await this.passes.read({ seeds, broker, lanes, seed: options.seed, again })
    }
    for (const one of tailing) {
      await one.caughtUp()
      this.violations.push(...one.violations.splice(0))
    }
    for (const { violations } of lanes) this.violations.push(...violations.splice(0))
  }

  private reads(): number {
    return this.lanes.reduce((sum, { reads }) => sum + reads, 0)
  }

  private acknowledged(): number {
    return this.lanes.reduce((sum, { acknowledgements }) => sum + acknowledgements, 0)
  }

  private count(fault: Fault, one: Tally): void {
    const tally = this.tallies.get(fault)
    if (tally === undefined) {
      this.tallies.set(fault, one)
      return
    }
    tally.rounds++
    tally.acknowledged += one.acknowledged
    tally.read += one.read
    tally.violations += one.violations
    if (one.gapMs > tally.gapMs) {
      tally.gapMs = one.gapMs
      tally.starvedMs = one.starvedMs
    }
  }
}
