// Some brokers of one cluster, each in a process of its own: the first founds it, the others join, and the shards are spread
// over all of them.

import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import type { Neighbour } from '../../src/broker/options.ts'
import { type BrokerProcess, spawnBroker } from './broker-process.ts'
import type { FromBroker, ToBroker } from './clustered-broker-main.ts'

const PROGRAM = fileURLToPath(new URL('./clustered-broker-main.js', import.meta.url))

export interface ClusterOptions {
  /** One per broker. */
  readonly dataDirs: readonly string[]
  /** Further flags of `eastguard server`. */
  readonly flags?: readonly string[]
  readonly nodeFlags?: readonly string[]
}

export class ClusterProcess {
  readonly brokers: BrokerProcess[] = []
  private readonly options: ClusterOptions
  private readonly neighbours = new Map<string, Neighbour>()
  private clusterId = ''

  constructor(options: ClusterOptions) {
    this.options = options
  }

  /** Resolves when every broker is ready and every shard has its members. */
  async start(): Promise<void> {
    const { dataDirs } = this.options
    for (const dataDir of dataDirs) await this.add(dataDir)
    const members = [...this.neighbours.values()].map(({ nodeId }) => nodeId)
    // Once more for all: shards that were led elsewhere when they were brought there are looked at by their leader.
    for (const broker of this.brokers)
      await this.ask(broker, { kind: 'members', members }, 'settled')
  }

  async stop(): Promise<void> {
    for (const { child } of this.brokers) child.kill('SIGTERM')
    await Promise.all(this.brokers.map(({ exited }) => exited))
  }

  private async add(dataDir: string): Promise<void> {
    const { flags = [], nodeFlags = [] } = this.options
    const broker = await spawnBroker({
      dataDir,
      flags: ['--cluster-port', '0', ...flags],
      nodeFlags,
      program: { path: PROGRAM, words: [this.clusterId] },
    })
    this.brokers.push(broker)
    broker.child.on('message', (message: FromBroker) => {
      if (message.kind !== 'at') return
      this.neighbours.set(message.neighbour.nodeId, message.neighbour)
      for (const one of this.brokers) this.tell(one, this.everyone())
    })
    const { clusterId } = await this.told(broker, 'ready')
    this.clusterId = clusterId
  }

  private everyone(): ToBroker {
    return { kind: 'neighbours', neighbours: [...this.neighbours.values()] }
  }

  private tell({ child }: BrokerProcess, message: ToBroker): void {
    if (child.connected) child.send(message)
  }

  private async ask(
    broker: BrokerProcess,
    message: ToBroker,
    answer: FromBroker['kind'],
  ): Promise<void> {
    const answered = this.told(broker, answer)
    this.tell(broker, message)
    await answered
  }

  private async told<K extends FromBroker['kind']>(
    broker: BrokerProcess,
    kind: K,
  ): Promise<Extract<FromBroker, { kind: K }>> {
    const ended = broker.exited.then((code) => {
      throw new Error(`a broker ended with ${code}:\n${broker.log()}`)
    })
    // Only while it is waited for.
    ended.catch(() => {})
    for (;;) {
      const [message] = (await Promise.race([once(broker.child, 'message'), ended])) as [FromBroker]
      if (message.kind === kind) return message as Extract<FromBroker, { kind: K }>
    }
  }
}
