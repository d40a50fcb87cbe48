// A client that writes records to one topic by the SDK, at its acks, and tells every outcome to the judge of records. What was
// asked for with less than acks=all may be lost, or be there twice: then only what was read of it counts.

import { type Prng, prng } from '../../base/prng.ts'
import type { Producer, RecordPlace } from '../../client/api.ts'
import type { EastGuardClient } from '../../client/client.ts'
import { pause } from '../../client/timing.ts'
import { rejectionOf } from '../client-error.ts'
import type { Judge } from '../judge.ts'
import type { Watcher } from '../machine.ts'
import type { ProcessPorts } from '../process.ts'
import { connect, PATIENCE_MS } from './client.ts'
import type { TopicPlan, WriterPlan } from './plan.ts'

const RECORDS_MAX = 10
const RECORD_BYTES_MAX = 200

export interface WriterOptions {
  readonly plan: WriterPlan
  readonly topic: TopicPlan
  readonly number: number
  readonly ports: ProcessPorts
  readonly seed: number
  readonly nowMs: () => number
  readonly judge: Judge
  readonly watcher: Watcher
  /** Of acks=all, in the turn in which the producer is told. */
  readonly onAcknowledged: (name: string, topic: TopicPlan, place: RecordPlace) => void
  /** What is sent now is acknowledged at no offset below. */
  readonly beginOf: (topic: TopicPlan, partition: number) => number
}

export class Writer {
  private readonly options: WriterOptions
  private readonly chance: Prng
  private readonly client: EastGuardClient
  private readonly producer: Producer
  private readonly sending = new Set<Promise<void>>()

  constructor(options: WriterOptions) {
    const { plan, ports, seed } = options
    this.options = options
    this.chance = prng(seed)
    this.client = connect(plan.host, ports)
    this.producer = this.client.producer({
      acks: plan.acks,
      deliveryTimeoutMs: PATIENCE_MS,
      lingerMs: this.chance.below(3),
    })
  }

  async work(untilMs: number): Promise<void> {
    const { ports, nowMs, plan } = this.options
    while (nowMs() < untilMs) {
      await pause(ports.clock, 1 + this.chance.below(plan.thinkMsMax))
      this.write()
    }
    await Promise.all(this.sending)
  }

  private write(): void {
    const { plan, topic, watcher } = this.options
    const partition = this.chance.below(topic.partitions)
    const count = 1 + this.chance.below(RECORDS_MAX)
    watcher.say(`${plan.host}: writes ${count} records to ${topic.name} ${partition}`)
    for (let i = 0; i < count; i++) {
      const sent = this.send(partition, this.chance.below(RECORD_BYTES_MAX)).then(() => {})
      const tracked = sent.finally(() => this.sending.delete(tracked))
      this.sending.add(tracked)
    }
  }

  /** Resolves with the code of what went wrong. */
  private send(partition: number, bytes: number): Promise<string | undefined> {
    const { judge, number, plan, topic, watcher, onAcknowledged, beginOf } = this.options
    const strict = plan.acks === 'all'
    const begin = beginOf(topic, partition)
    const { name, value } = judge.send(topic.name, number, partition, bytes, strict)
    return this.producer.send({ topic: topic.name, partition, value }).then(
      (place) => {
        if (place.offset >= 0 && place.offset < begin) {
          const where = `${topic.name} ${partition} offset ${place.offset}`
          const what = `${name} is acknowledged at acks ${plan.acks} as ${where}`
          watcher.violation(`${what}, but ${begin} had been sealed below before it was sent`)
        }
        if (!strict) return undefined
        judge.acknowledge(name, place.partition, place.offset)
        onAcknowledged(name, topic, place)
        return undefined
      },
      (error: unknown) => {
        const { code, maybeStored } = rejectionOf(error)
        watcher.say(`${plan.host}: ${name} is rejected: ${code}, maybe stored: ${maybeStored}`)
        if (strict) judge.reject(name, maybeStored)
        return code
      },
    )
  }

  /** Every partition takes a record; resolves with what one said instead. */
  async prove(untilMs: number): Promise<string | undefined> {
    const { topic, nowMs, plan } = this.options
    const partitions = Array.from({ length: topic.partitions }, (_, partition) => partition)
    const failures = await Promise.all(
      partitions.map(async (partition) => {
        for (;;) {
          const code = await this.send(partition, 10)
          if (code === undefined) return undefined
          if (nowMs() > untilMs) return `${plan.host} ${topic.name} ${partition}: ${code}`
        }
      }),
    )
    return failures.find((failure) => failure !== undefined)
  }
}
