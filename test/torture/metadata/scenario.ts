// Three real brokers that find one another and become one cluster, and clients that make, change, delete and look at topics at
// any of them, under few names, while brokers are killed, stopped, paused, and all ended. What the clients were told must have
// an order; every topic whose creation was answered must be there; and whenever a majority runs, everything that can be asked
// for works, and creations at those who live are never held up for long (bounds.ts).
//
//   clients ├──────────────────────────────────────────────────┤ histories judged, topics looked for, gaps measured
//   cluster      well ── a fault ── what must work does ── well
//
// Each round has names of its own, so that its history is judged by itself.

import { type Prng, prng } from '../../../src/base/prng.ts'
import { systemClock } from '../../../src/io/clock/system-clock.ts'
import { nodeCompute } from '../../../src/io/compute/node-compute.ts'
import { pinoLog } from '../../../src/io/log/pino-log.ts'
import { systemRandom } from '../../../src/io/random/system-random.ts'
import { nodeStreams } from '../../../src/io/tcp/node-streams.ts'
import { MetadataClient } from '../../../src/sim/cluster/metadata-client.ts'
import { checkLinearizable } from '../../../src/sim/linear/check.ts'
import { type LocalBroker, LocalCluster } from '../../support/local-cluster.ts'
import { pause, secondsSince } from '../../support/time.ts'
import { Bounds } from './bounds.ts'
import { KINDS, type Kind, type Scene, strike } from './faults.ts'
import { Keeper } from './keeper.ts'
import { Waits } from './waits.ts'

const SHARDS = 256
const SHARDS_BRIEF = 16
const CLIENTS = 6
const THINK_MS_MAX = 40
/** Whenever a majority runs, everything works within this. */
const WORKS_MS = 60_000
const LOG_CHARS = 3000

export interface MetadataTorture {
  readonly rounds: number
  readonly seed: number
  /** Few shards, and no round takes longer than it must. */
  readonly brief: boolean
  /** Absent: as many as a cluster has, or few in brief. */
  readonly shards?: number
  print(line: string): void
}

/** Resolves with the code to end with. */
export async function tortureMetadata(options: MetadataTorture): Promise<number> {
  const began = performance.now()
  const shards = options.shards ?? (options.brief ? SHARDS_BRIEF : SHARDS)
  const flags = ['--log-level=info', `--metadata-shards=${shards}`]
  const cluster = await LocalCluster.form({ brokers: 3, flags })
  const run = new Run(options, cluster)
  options.print(`three brokers keep all ${shards} shards after ${secondsSince(began)} s`)
  try {
    for (let n = 1; n <= options.rounds && run.violations.length === 0; n++) await run.round(n)
    await run.verifyAll()
  } catch (error) {
    run.violations.push(`it could not go on: ${String(error)}`)
  }
  run.end()
  const { violations } = run
  const logs = violations.length > 0 ? cluster.logs(LOG_CHARS) : []
  const kept = await cluster.close({ keep: violations.length > 0 })
  options.print(`${run.summary()}, ${violations.length} violations, ${secondsSince(began)} s`)
  for (const line of run.bounds.summary()) options.print(line)
  for (const violation of violations.slice(0, 20)) options.print(`  ${violation}`)
  for (const log of logs) options.print(log)
  if (kept !== undefined) options.print(`the data directories were kept: ${kept}`)
  return violations.length > 0 ? 1 : 0
}

class Run {
  readonly violations: string[] = []
  private readonly options: MetadataTorture
  private readonly cluster: LocalCluster
  /** One at each broker. */
  private readonly keepers: readonly Keeper[]
  private readonly waits: Waits
  readonly bounds: Bounds
  private readonly random: Prng
  private readonly struck = new Map<Kind, number>()
  private kinds: Kind[] = []
  private proofs = 0
  private operations = 0
  private answered = 0

  constructor(options: MetadataTorture, cluster: LocalCluster) {
    this.options = options
    this.cluster = cluster
    this.keepers = cluster.brokers.map(({ name, address }) => new Keeper(`at-${name}`, address))
    this.random = prng(options.seed)
    this.waits = new Waits(() => cluster.brokers.map(({ process }) => process?.child.pid))
    this.bounds = new Bounds(this.waits)
  }

  end(): void {
    this.waits.stop()
  }

  async round(n: number): Promise<void> {
    const { keepers, random, options, cluster } = this
    const before = keepers.map(({ kept }) => kept)
    const clients = Array.from({ length: CLIENTS }, (_, i) => this.client(`round-${n}`, n, i))
    const working = clients.map((client) => client.work(Number.POSITIVE_INFINITY))
    for (const keeper of keepers) keeper.begin()
    await pause(200 + random.below(400))
    const kind = this.nextKind()
    const scene: Scene = {
      cluster,
      random,
      brief: options.brief,
      works: (broker, what) => this.works(broker, what),
      violation: (what) => this.violations.push(what),
    }
    const { told, sinceMs, survivors } = await strike(kind, scene)
    await Promise.all(cluster.brokers.map((broker) => this.works(broker, `after: ${told}`)))
    await cluster.whole(WORKS_MS)
    for (const client of clients) client.stop()
    await Promise.all([...working, ...keepers.map((keeper) => keeper.stop())])
    for (const client of clients) client.close()
    const operations = this.judge(clients)
    const at = survivors.map((broker) => this.keepers[cluster.brokers.indexOf(broker)] as Keeper)
    const gaps = this.bounds.judge(kind, at, sinceMs)
    await this.verify(kind === 'restart-all' ? [] : before)
    const kept = sum(keepers.map((keeper) => keeper.kept)) - sum(before)
    options.print(`round ${n}: ${told}, ${operations}, ${kept} topics kept${gaps}`)
  }

  /** At every broker, what has been made since there were so many; everything when nothing is said. */
  private async verify(before: readonly number[] = []): Promise<void> {
    for (const seed of this.cluster.seeds) {
      for (const [i, keeper] of this.keepers.entries()) await keeper.verify(seed, before[i])
    }
    for (const keeper of this.keepers) this.violations.push(...keeper.violations.splice(0))
    this.violations.push(...this.bounds.violations.splice(0))
  }

  /** Every kind once before any comes again. */
  private nextKind(): Kind {
    if (this.kinds.length === 0) this.kinds = [...KINDS]
    const [kind] = this.kinds.splice(this.random.below(this.kinds.length), 1) as [Kind]
    this.struck.set(kind, (this.struck.get(kind) ?? 0) + 1)
    return kind
  }

  private client(name: string, salt: number, number: number): MetadataClient {
    const { cluster, options } = this
    return new MetadataClient({
      host: `client-${number + 1}`,
      realm: { name, brokers: cluster.brokers.map((_, i) => i), life: 1 },
      addressOf: (broker) => ({ host: '127.0.0.1', port: cluster.brokers[broker]?.port ?? 0 }),
      ports: PORTS,
      seed: (options.seed * 1000 + salt) * 100 + number,
      nowMs: () => performance.now(),
      thinkMsMax: THINK_MS_MAX,
      watcher: { say: () => {} },
    })
  }

  private async works(broker: LocalBroker, what: string): Promise<void> {
    const number = this.cluster.brokers.indexOf(broker)
    const client = this.client(`proof-${++this.proofs}`, this.proofs, CLIENTS)
    const missing = await client.prove(number, performance.now() + WORKS_MS)
    client.close()
    if (missing !== undefined) this.violations.push(`does not work ${what}: ${missing}`)
  }

  private judge(clients: readonly MetadataClient[]): string {
    const attempts = clients.flatMap((client) => client.attempts)
    const done = clients.reduce((sum, client) => sum + client.done, 0)
    this.operations += attempts.length
    this.answered += done
    const verdict = checkLinearizable(attempts)
    if (!verdict.ok) this.violations.push(`${verdict.name} has no order:\n${verdict.explanation}`)
    return `${attempts.length} operations (${done} answered)`
  }

  verifyAll(): Promise<void> {
    return this.verify()
  }

  summary(): string {
    const { options, struck, operations, answered, keepers } = this
    const kinds = KINDS.map((kind) => `${struck.get(kind) ?? 0} ${kind}`).join(', ')
    const kept = sum(keepers.map((keeper) => keeper.kept))
    const what = `${operations} operations, ${answered} answered, ${kept} topics kept`
    return `${options.rounds} rounds, seed ${options.seed}: ${kinds}; ${what}`
  }
}

const PORTS = {
  streams: nodeStreams,
  clock: systemClock({ keepAlive: true }),
  random: systemRandom(),
  compute: nodeCompute,
  // Lost connections are what is wanted here.
  log: pinoLog({ level: 'error', text: true, write: () => {} }),
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, number) => total + number, 0)
}
