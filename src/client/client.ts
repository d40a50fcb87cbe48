// The client: one set of connections, and the producers, consumers and admin that share it. It does nothing until it is
// asked for something.

import { ADDRESS_FORM, parseAddress } from '../base/address.ts'
import { EastGuardError } from '../base/errors.ts'
import type { Address } from '../ports/streams.ts'
import { ClusterAdmin } from './admin.ts'
import type {
  Admin,
  Client,
  ClientOptions,
  Consumer,
  ConsumerOptions,
  Producer,
  ProducerOptions,
} from './api.ts'
import { Cluster } from './cluster.ts'
import { LogConsumer } from './consumer/consumer.ts'
import { consumerSettings } from './consumer/settings.ts'
import type { ClientPorts } from './ports.ts'
import { BatchingProducer } from './producer/producer.ts'
import { producerSettings, whole } from './producer/settings.ts'

const SEED_DEFAULT = '127.0.0.1:2921'
const CLIENT_PORT_DEFAULT = 2921
const TIMER_MS_MOST = 0x7fff_ffff

export class EastGuardClient implements Client {
  private readonly cluster: Cluster
  private readonly open = new Set<Producer | Consumer>()
  private closing: Promise<void> | undefined

  /** Throws INVALID_ARGUMENT. */
  constructor(options: ClientOptions, ports: ClientPorts) {
    const seeds = (options.seeds ?? [SEED_DEFAULT]).map(seedAddress)
    if (seeds.length === 0) throw invalid('seeds is empty')
    const ms = (name: string, value: number | undefined, otherwise: number): number =>
      whole(name, value ?? otherwise, 1, TIMER_MS_MOST)
    this.cluster = new Cluster(ports, {
      seeds,
      clientName: options.clientName ?? 'eastguard-sdk',
      connectTimeoutMs: ms('connectTimeoutMs', options.connectTimeoutMs, 5000),
      requestTimeoutMs: ms('requestTimeoutMs', options.requestTimeoutMs, 30_000),
      backoffMs: ms('backoffMs', options.backoffMs, 50),
      backoffMaxMs: ms('backoffMaxMs', options.backoffMaxMs, 1000),
      near: { hostLabel: options.hostLabel ?? '', rackLabel: options.rackLabel ?? '' },
    })
  }

  producer(options: ProducerOptions = {}): Producer {
    this.checkOpen()
    const settings = producerSettings(options)
    const producer = new BatchingProducer(this.cluster, settings, () => this.open.delete(producer))
    this.open.add(producer)
    return producer
  }

  consumer(options: ConsumerOptions): Consumer {
    this.checkOpen()
    const settings = consumerSettings(options)
    const consumer = new LogConsumer(this.cluster, settings, () => this.open.delete(consumer))
    this.open.add(consumer)
    return consumer
  }

  admin(): Admin {
    this.checkOpen()
    return new ClusterAdmin(this.cluster)
  }

  close(): Promise<void> {
    this.closing ??= Promise.all([...this.open].map((each) => each.close())).then(() =>
      this.cluster.close(),
    )
    return this.closing
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close()
  }

  private checkOpen(): void {
    if (this.closing !== undefined) throw new EastGuardError('CLOSED', 'the client is closed')
  }
}

function seedAddress(seed: string): Address {
  const address = parseAddress(seed, CLIENT_PORT_DEFAULT)
  if (address === undefined) throw invalid(`the seed '${seed}' is not ${ADDRESS_FORM}`)
  return address
}

function invalid(message: string): EastGuardError {
  return new EastGuardError('INVALID_ARGUMENT', message)
}
