// A client that writes records to the topics of its own making and reads them from the beginning, by the SDK as anyone would use
// it, and tells every outcome to the judge of records (../judge.ts).

import { type Prng, prng } from '../../base/prng.ts'
import type { Producer } from '../../client/api.ts'
import { EastGuardClient } from '../../client/client.ts'
import { pause } from '../../client/timing.ts'
import { codeOf, rejectionOf } from '../client-error.ts'
import type { Judge } from '../judge.ts'
import type { Watcher } from '../machine.ts'
import type { ProcessPorts } from '../process.ts'
import { CLIENT_PORT, type Machines } from './machines.ts'

const TOPICS = 2
const PARTITIONS = 2
const THINK_MS_MAX = 3000
const RECORDS_MAX = 4
const RECORD_BYTES_MAX = 300
/** Of the steps that are not writes every so many is a reading. */
const READ_EVERY = 12
const PATIENCE_MS = 5000

export interface RecordClientOptions {
  readonly host: string
  /** Among all of the run. */
  readonly number: number
  readonly machines: Machines
  readonly ports: ProcessPorts
  readonly seed: number
  readonly nowMs: () => number
  readonly judge: Judge
  readonly watcher: Watcher
}

export class RecordClient {
  readings = 0
  /** Readings that came to the end. */
  readToEnd = 0
  private readonly options: RecordClientOptions
  private readonly chance: Prng
  private client: EastGuardClient
  private producer: Producer
  /** Of the records, when the client was made. */
  private life: number
  private readonly sending = new Set<Promise<void>>()
  /** Topics of this life that are there. */
  private readonly there = new Set<string>()

  constructor(options: RecordClientOptions) {
    this.options = options
    this.chance = prng(options.seed)
    this.life = options.machines.recordsLife
    this.client = this.connect()
    this.producer = this.client.producer({ deliveryTimeoutMs: PATIENCE_MS, acks: 'all' })
  }

  async work(untilMs: number): Promise<void> {
    const { ports, nowMs } = this.options
    while (nowMs() < untilMs) {
      await pause(ports.clock, this.chance.below(THINK_MS_MAX))
      this.renew()
      const topic = this.chance.below(TOPICS)
      if (this.chance.below(READ_EVERY) === 0) await this.read(topic, PATIENCE_MS)
      else await this.write(topic)
    }
    await Promise.all(this.sending)
  }

  /** All that was acknowledged is read; resolves with what could not be, and why. */
  async prove(patienceMs: number): Promise<string | undefined> {
    this.renew()
    for (let topic = 0; topic < TOPICS; topic++) {
      const failure = (await this.made(topic, patienceMs)) ?? (await this.read(topic, patienceMs))
      if (failure !== undefined) return `${this.log(topic)}: ${failure}`
    }
    return undefined
  }

  /** The topic is there, made now if need be; or why not. */
  private async made(topic: number, timeoutMs: number): Promise<string | undefined> {
    const name = this.log(topic)
    if (this.there.has(name)) return undefined
    try {
      const policy = { partitions: PARTITIONS, segmentEntries: 30, retentionMs: -1 }
      const options = { policy, ifNotExists: true, timeoutMs }
      await this.client.admin().createTopic(name, options)
      this.there.add(name)
      return undefined
    } catch (error) {
      return codeOf(error)
    }
  }

  private async write(topic: number): Promise<void> {
    const { judge, number, host, watcher, machines } = this.options
    const { life, producer } = this
    const log = this.log(topic)
    if ((await this.made(topic, PATIENCE_MS)) !== undefined || machines.recordsLife !== life) return
    const partition = this.chance.below(PARTITIONS)
    const count = 1 + this.chance.below(RECORDS_MAX)
    watcher.say(`${host}: writes ${count} records to ${log} ${partition}`)
    for (let i = 0; i < count; i++) {
      const bytes = this.chance.below(RECORD_BYTES_MAX)
      const { name, value } = judge.send(log, number, partition, bytes)
      const sent = producer.send({ topic: log, partition, value }).then(
        (place) => {
          if (machines.recordsLife === life) judge.acknowledge(name, place.partition, place.offset)
        },
        (error: unknown) => {
          const { code, maybeStored } = rejectionOf(error)
          watcher.say(`${host}: ${name} is rejected: ${code}, maybe stored: ${maybeStored}`)
          if (machines.recordsLife === life) judge.reject(name, maybeStored)
        },
      )
      const tracked = sent.finally(() => this.sending.delete(tracked))
      this.sending.add(tracked)
    }
  }

  /** Undefined when the end was reached, otherwise why not. */
  private async read(topic: number, patienceMs: number): Promise<string | undefined> {
    const { judge, host, watcher, machines } = this.options
    const { life } = this
    const log = this.log(topic)
    const reading = judge.reading(log)
    this.readings++
    let count = 0
    try {
      const consumer = this.client.consumer({
        topic: log,
        stopAtEnd: true,
        unavailableTimeoutMs: patienceMs,
      })
      for await (const { partition, offset, value } of consumer) {
        if (machines.recordsLife !== life) return 'the disk was lost'
        reading.record(partition, offset, value ?? new Uint8Array(0))
        count++
      }
      if (machines.recordsLife !== life) return 'the disk was lost'
      reading.end()
      this.readToEnd++
      watcher.say(`${host}: has read ${count} records of ${log}`)
      return undefined
    } catch (error) {
      const code = codeOf(error)
      watcher.say(`${host}: a reading of ${log} ended with ${code} after ${count} records`)
      return code
    }
  }

  private log(topic: number): string {
    return `log-${this.life}-${topic}`
  }

  private renew(): void {
    const life = this.options.machines.recordsLife
    if (life === this.life) return
    this.life = life
    const left = this.client
    this.client = this.connect()
    this.producer = this.client.producer({ deliveryTimeoutMs: PATIENCE_MS, acks: 'all' })
    // What it still holds is for brokers that are no more.
    left.close().catch(() => undefined)
  }

  private connect(): EastGuardClient {
    const { machines, ports, host } = this.options
    return new EastGuardClient(
      {
        seeds: machines.all.map(({ host: broker }) => `${broker}:${CLIENT_PORT}`),
        clientName: host,
        connectTimeoutMs: 300,
        requestTimeoutMs: PATIENCE_MS,
        backoffMs: 5,
        backoffMaxMs: 100,
      },
      ports,
    )
  }
}
