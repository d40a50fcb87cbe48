// Brokers as people run them: processes of `eastguard server` on this machine that find one another through their seeds, on
// ports that they keep over restarts. All of them name all of them as seeds, themselves too; only the first, at its first
// start, names nobody, and founds the cluster.

import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { unsettled } from '../../src/cli/commands/settled.ts'
import type { ClusterInfo } from '../../src/client/api.ts'
import { EastGuard } from '../../src/index.ts'
import { type BrokerProcess, freePort, HERE, type Place, spawnBroker } from './broker-process.ts'
import type { FaultCommand } from './fault-commands.ts'
import { type FaultyBroker, spawnFaultyBroker } from './faulty-broker.ts'
import { pause, within } from './time.ts'

const LOOK_MS = 50
const FORMED_MS = 60_000
/** Of each shard, unless a flag says otherwise. */
const VOTERS = 3
/** A broker that was told to stop and has not by then is killed. */
const END_MS = 30_000

interface Given {
  /** Further flags of `eastguard server`. */
  readonly flags: readonly string[]
  readonly nodeFlags?: readonly string[]
  /** Where the first runs, the second, ...; default: here. */
  readonly places?: readonly Place[]
  /** Their disks take faults. */
  readonly faulty?: boolean
}

export interface LocalClusterOptions extends Given {
  readonly brokers: number
  /** Its data lies below this. */
  readonly parent?: string
}

export class LocalBroker {
  readonly name: string
  readonly port: number
  readonly clusterPort: number
  readonly dataDir: string
  readonly place: Place
  process: BrokerProcess | undefined
  private faulty: FaultyBroker | undefined
  private readonly httpPort: number
  private readonly given: Given
  private paused = false

  static async make(name: string, dir: string, given: Given, place: Place): Promise<LocalBroker> {
    const ports = [await freePort(), await freePort(), await freePort()] as const
    return new LocalBroker(name, join(dir, name), ports, given, place)
  }

  private constructor(
    name: string,
    dataDir: string,
    [port, clusterPort, httpPort]: readonly [number, number, number],
    given: Given,
    place: Place,
  ) {
    this.place = place
    this.name = name
    this.dataDir = dataDir
    this.port = port
    this.clusterPort = clusterPort
    this.httpPort = httpPort
    this.given = given
  }

  get address(): string {
    return `${this.place.host}:${this.port}`
  }

  get clusterAddress(): string {
    return `${this.place.host}:${this.clusterPort}`
  }

  /** It answers, or will. */
  get running(): boolean {
    return this.process !== undefined && !this.paused
  }

  /** Resolves before it is ready. */
  async start(seeds: readonly LocalBroker[]): Promise<void> {
    const { name, port, clusterPort, httpPort, dataDir, given, place } = this
    const { flags, nodeFlags = [] } = given
    const own = [
      `--cluster-port=${clusterPort}`,
      `--join-seed-nodes=${seeds.map(({ clusterAddress }) => clusterAddress).join(',')}`,
      `--host-label=${name}`,
      `--display-name=${name}`,
    ]
    const options = { dataDir, place, flags: [...own, ...flags], nodeFlags }
    const ports = { port, httpPort }
    if (given.faulty === true) {
      this.faulty = await spawnFaultyBroker(options, ports)
      this.process = this.faulty
    } else {
      this.process = await spawnBroker(options, ports)
    }
  }

  /** Of a cluster whose disks take faults; resolves when it holds. */
  async fault(command: FaultCommand): Promise<void> {
    if (this.faulty === undefined) throw new Error(`the disk of ${this.name} takes no faults`)
    await this.faulty.fault(command)
  }

  async ready(withinMs: number = 60_000): Promise<void> {
    if (this.process === undefined) throw new Error(`${this.name} does not run`)
    await this.process.ready(withinMs)
  }

  /** Resolves when it has begun to start, and hears signals. */
  async begun(): Promise<void> {
    const { process } = this
    if (process === undefined) throw new Error(`${this.name} does not run`)
    for (;;) {
      const alive = await fetch(`http://${this.place.host}:${this.httpPort}/healthz`).then(
        (answer) => answer.text(),
        () => undefined,
      )
      if (alive !== undefined) return
      if (process.child.exitCode !== null) throw new Error(`${this.name} ended:\n${process.log()}`)
      await pause(20)
    }
  }

  /** SIGSTOP, until `resume`. */
  pause(): void {
    this.paused = true
    this.process?.child.kill('SIGSTOP')
  }

  resume(): void {
    this.process?.child.kill('SIGCONT')
    this.paused = false
  }

  /** With the exit code, or the signal's name. Fails when it has ended before, by itself. */
  async end(signal: 'SIGTERM' | 'SIGKILL'): Promise<number | string> {
    const { process } = this
    if (process === undefined) return 'it did not run'
    const { exitCode } = process.child
    if (exitCode !== null) {
      throw new Error(`${this.name} ended by itself with ${exitCode}:\n${process.log()}`)
    }
    return this.close(signal)
  }

  /** With the exit code, of its own accord. */
  async ended(withinMs: number = 60_000): Promise<number | string> {
    const { process } = this
    if (process === undefined) return 'it did not run'
    await within(withinMs, `${this.name} ends`, () => process.child.exitCode !== null)
    return process.exited
  }

  /** Whatever state it is in. */
  async close(signal: 'SIGTERM' | 'SIGKILL'): Promise<number | string> {
    const { process } = this
    if (process === undefined) return 'it did not run'
    process.child.kill(signal)
    if (this.paused) this.resume()
    const late = setTimeout(() => process.child.kill('SIGKILL'), END_MS)
    const how = await process.exited
    clearTimeout(late)
    this.process = undefined
    return how
  }
}

export class LocalCluster {
  /** Names are not used again, nor the data directories that have them. */
  private made = 0
  readonly brokers: LocalBroker[] = []
  private readonly dir: string
  private readonly given: Given

  static async make(given: Given, parent: string = tmpdir()): Promise<LocalCluster> {
    return new LocalCluster(await mkdtemp(join(parent, 'eastguard-local-')), given)
  }

  /** Resolves when all brokers keep all metadata; leaves nothing behind when it rejects. */
  static async form({ brokers, parent, ...given }: LocalClusterOptions): Promise<LocalCluster> {
    const cluster = await LocalCluster.make(given, parent)
    try {
      await cluster.add()
      while (cluster.brokers.length < brokers) await cluster.join()
      await Promise.all(cluster.brokers.map((broker) => broker.ready()))
      await cluster.whole(FORMED_MS)
      return cluster
    } catch (error) {
      await cluster.close()
      throw error
    }
  }

  private constructor(dir: string, given: Given) {
    this.dir = dir
    this.given = given
  }

  get seeds(): readonly string[] {
    return this.brokers.map(({ address }) => address)
  }

  /** The last `chars` of what each has written to its log. */
  logs(chars: number): readonly string[] {
    return this.brokers.map(
      ({ name, process }) => `${name} has said:\n${process?.log().slice(-chars) ?? ''}`,
    )
  }

  /** One broker more, which founds the cluster or joins it; resolves when it is ready. */
  async add(): Promise<LocalBroker> {
    const broker = await this.join()
    await broker.ready()
    return broker
  }

  private async join(): Promise<LocalBroker> {
    const { brokers, given } = this
    const place = given.places?.[this.made] ?? HERE
    const broker = await LocalBroker.make(`broker-${++this.made}`, this.dir, given, place)
    brokers.push(broker)
    await broker.start(brokers.slice(0, -1))
    return broker
  }

  /** Again, on what it left. */
  async start(broker: LocalBroker): Promise<void> {
    await broker.start(this.brokers)
  }

  /** As soon as `holds` of what one of the brokers says; a settled cluster unless told otherwise. */
  async until(
    what: string,
    withinMs: number,
    holds: (info: ClusterInfo) => boolean = (info) => unsettled(info).length === 0,
    at: readonly string[] = this.seeds,
  ): Promise<ClusterInfo> {
    await using client = new EastGuard({ seeds: at })
    const deadline = performance.now() + withinMs
    for (;;) {
      const info = await client.admin().describeCluster({ timeoutMs: withinMs })
      if (holds(info)) return info
      if (performance.now() > deadline) {
        throw new Error(`${what}: not within ${withinMs} ms: ${unsettled(info).join('; ')}`)
      }
      await pause(LOOK_MS)
    }
  }

  /** Each broker says that all live, and that each shard has a leader and as many voters as it should. */
  async whole(withinMs: number): Promise<void> {
    const voters = Math.min(VOTERS, this.brokers.length)
    const holds = ({ brokers, shards, shardsLed }: ClusterInfo): boolean =>
      brokers.length === this.brokers.length &&
      brokers.every(({ state }) => state === 'alive') &&
      brokers.reduce((sum, one) => sum + one.shards, 0) === shards * voters &&
      shardsLed === shards
    const at = this.brokers.map(({ name, address }) =>
      this.until(`the whole cluster at ${name}`, withinMs, holds, [address]),
    )
    await Promise.all(at)
  }

  /** `keep`: what they wrote stays, and where it is is told. */
  async close(options: { readonly keep?: boolean } = {}): Promise<string | undefined> {
    await Promise.all(this.brokers.map((broker) => broker.close('SIGKILL')))
    if (options.keep === true) return this.dir
    await rm(this.dir, { recursive: true, force: true })
    return undefined
  }
}
