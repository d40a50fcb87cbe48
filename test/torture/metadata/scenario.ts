// Three real brokers that form one cluster, and clients that make, change, delete and look at topics at any of them, under
// few names, while brokers are killed, paused, and all stopped. What the clients were told must have an order; every topic
// whose creation was answered must be there; and whenever a majority runs, everything that can be asked for works.
//
//   clients ├──────────────────────────────────────────────────┤ histories judged, topics looked for
//   cluster      well ── a fault ── what must work does ── well
//
// Each round has names of its own, so that its history is judged by itself.

import { tmpdir } from 'node:os'
import { type Prng, prng } from '../../../src/base/prng.ts'
import { systemClock } from '../../../src/io/clock/system-clock.ts'
import { nodeCompute } from '../../../src/io/compute/node-compute.ts'
import { pinoLog } from '../../../src/io/log/pino-log.ts'
import { systemRandom } from '../../../src/io/random/system-random.ts'
import { nodeStreams } from '../../../src/io/tcp/node-streams.ts'
import type { Address } from '../../../src/ports/streams.ts'
import { MetadataClient } from '../../../src/sim/cluster/metadata-client.ts'
import { checkLinearizable } from '../../../src/sim/linear/check.ts'
import { pause } from '../../support/broker-process.ts'
import { Cluster } from '../../support/cluster.ts'
import type { ClusterBroker } from '../../support/cluster-broker.ts'
import { KINDS, type Kind, type Scene, SHARDS_LEAST, strike } from './faults.ts'
import { Keeper } from './keeper.ts'

const SHARDS = 256
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
  print(line: string): void
}

/** Resolves with the code to end with. */
export async function tortureMetadata(options: MetadataTorture): Promise<number> {
  const began = performance.now()
  const shards = options.brief ? SHARDS_LEAST : SHARDS
  const flags = ['--log-level=info', `--metadata-shards=${shards}`]
  const cluster = await Cluster.form({ brokers: 3, parent: tmpdir(), flags })
  const run = new Run(options, cluster)
  options.print(`three brokers are settled after ${seconds(began)} s`)
  try {
    for (let n = 1; n <= options.rounds && run.violations.length === 0; n++) await run.round(n)
    await run.verifyAll()
  } catch (error) {
    run.violations.push(`it could not go on: ${String(error)}`)
  }
  const { violations } = run
  const logs = violations.length > 0 ? logsOf(cluster) : []
  const kept = await cluster.close({ keep: violations.length > 0 })
  options.print(`${run.summary()}, ${violations.length} violations, ${seconds(began)} s`)
  for (const violation of violations.slice(0, 20)) options.print(`  ${violation}`)
  for (const log of logs) options.print(log)
  if (kept !== undefined) options.print(`the data directories were kept: ${kept}`)
  return violations.length > 0 ? 1 : 0
}

class Run {
  readonly violations: string[] = []
  private readonly options: MetadataTorture
  private readonly cluster: Cluster
  private readonly keeper: Keeper
  private readonly random: Prng
  private readonly struck = new Map<Kind, number>()
  private kinds: Kind[] = []
  private proofs = 0
  private operations = 0
  private answered = 0

  constructor(options: MetadataTorture, cluster: Cluster) {
    this.options = options
    this.cluster = cluster
    this.keeper = new Keeper(cluster.seeds)
    this.random = prng(options.seed)
  }

  async round(n: number): Promise<void> {
    const { keeper, random, options, cluster } = this
    const before = keeper.kept
    const clients = Array.from({ length: CLIENTS }, (_, i) => this.client(`round-${n}`, n, i))
    const working = clients.map((client) => client.work(Number.POSITIVE_INFINITY))
    keeper.begin()
    await pause(200 + random.below(400))
    const kind = this.nextKind()
    const scene: Scene = {
      cluster,
      random,
      works: (broker, what) => this.works(broker, what),
      violation: (what) => this.violations.push(what),
    }
    const told = await strike(kind, scene, options.brief)
    await Promise.all(cluster.brokers.map((broker) => this.works(broker, `after: ${told}`)))
    for (const client of clients) client.stop()
    await Promise.all([...working, keeper.stop()])
    for (const client of clients) client.close()
    const operations = this.judge(clients)
    for (const seed of cluster.seeds) {
      await keeper.verify(seed, kind === 'restart-all' ? 0 : before)
    }
    this.violations.push(...keeper.violations.splice(0))
    options.print(`round ${n}: ${told}, ${operations}, ${keeper.kept - before} topics kept`)
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
      addressOf: (broker) => cluster.brokers[broker]?.address as Address,
      ports: PORTS,
      seed: (options.seed * 1000 + salt) * 100 + number,
      nowMs: () => performance.now(),
      thinkMsMax: THINK_MS_MAX,
      watcher: { say: () => {} },
    })
  }

  private async works(broker: ClusterBroker, what: string): Promise<void> {
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

  async verifyAll(): Promise<void> {
    for (const seed of this.cluster.seeds) await this.keeper.verify(seed)
    this.violations.push(...this.keeper.violations.splice(0))
  }

  summary(): string {
    const { options, struck, operations, answered, keeper } = this
    const kinds = KINDS.map((kind) => `${struck.get(kind) ?? 0} ${kind}`).join(', ')
    const what = `${operations} operations, ${answered} answered, ${keeper.kept} topics kept`
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

function logsOf(cluster: Cluster): readonly string[] {
  return cluster.brokers.map(
    ({ process }, i) => `broker ${i + 1} has said:\n${process?.log().slice(-LOG_CHARS) ?? ''}`,
  )
}

function seconds(since: number): string {
  return ((performance.now() - since) / 1000).toFixed(1)
}
