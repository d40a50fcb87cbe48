// Brokers as people run them: processes of `eastguard server` on this machine that find one another through their seeds, on
// cluster ports that they keep over restarts. `cluster.ts` forms clusters by hand instead, for tests that say who holds what.

import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { unsettled } from '../../src/cli/commands/settled.ts'
import type { ClusterInfo } from '../../src/client/api.ts'
import { EastGuard } from '../../src/index.ts'
import { type BrokerProcess, freePort, pause, spawnBroker } from './broker-process.ts'

const LOOK_MS = 50

export class LocalBroker {
  readonly name: string
  readonly port: number
  readonly clusterPort: number
  private readonly httpPort: number
  private readonly dataDir: string
  private readonly flags: readonly string[]
  process: BrokerProcess | undefined

  static async make(name: string, dir: string, flags: readonly string[]): Promise<LocalBroker> {
    const ports = [await freePort(), await freePort(), await freePort()] as const
    return new LocalBroker(name, join(dir, name), ports, flags)
  }

  private constructor(
    name: string,
    dataDir: string,
    [port, clusterPort, httpPort]: readonly [number, number, number],
    flags: readonly string[],
  ) {
    this.name = name
    this.dataDir = dataDir
    this.port = port
    this.clusterPort = clusterPort
    this.httpPort = httpPort
    this.flags = flags
  }

  get address(): string {
    return `127.0.0.1:${this.port}`
  }

  get clusterAddress(): string {
    return `127.0.0.1:${this.clusterPort}`
  }

  /** Resolves before it is ready. */
  async start(seeds: readonly LocalBroker[]): Promise<void> {
    const { name, port, clusterPort, httpPort, dataDir, flags } = this
    const own = [
      `--cluster-port=${clusterPort}`,
      `--join-seed-nodes=${seeds.map(({ clusterAddress }) => clusterAddress).join(',')}`,
      `--host-label=${name}`,
      `--display-name=${name}`,
    ]
    this.process = await spawnBroker({ dataDir, flags: [...own, ...flags] }, { port, httpPort })
  }

  async ready(withinMs: number = 30_000): Promise<void> {
    await this.process?.ready(withinMs)
  }

  /** With the exit code, or the signal's name. */
  async end(signal: 'SIGTERM' | 'SIGKILL'): Promise<number | string> {
    const { process } = this
    if (process === undefined) return 'it did not run'
    process.child.kill(signal)
    const how = await process.exited
    this.process = undefined
    return how
  }
}

export class LocalCluster {
  readonly brokers: LocalBroker[] = []
  private readonly dir: string
  private readonly flags: readonly string[]

  static async make(flags: readonly string[]): Promise<LocalCluster> {
    return new LocalCluster(await mkdtemp(join(tmpdir(), 'eastguard-local-')), flags)
  }

  private constructor(dir: string, flags: readonly string[]) {
    this.dir = dir
    this.flags = flags
  }

  get seeds(): readonly string[] {
    return this.brokers.map(({ address }) => address)
  }

  /** One broker more, which founds the cluster or joins it; resolves when it is ready. */
  async add(): Promise<LocalBroker> {
    const { brokers } = this
    const broker = await LocalBroker.make(`broker-${brokers.length + 1}`, this.dir, this.flags)
    brokers.push(broker)
    await broker.start(brokers.slice(0, -1))
    await broker.ready()
    return broker
  }

  /** Again, on what it left. */
  async start(broker: LocalBroker): Promise<void> {
    await broker.start(this.brokers.filter((other) => other !== broker))
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

  async close(): Promise<void> {
    await Promise.all(this.brokers.map((broker) => broker.end('SIGKILL')))
    await rm(this.dir, { recursive: true, force: true })
  }
}
