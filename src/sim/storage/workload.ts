// Clients of a run, by the SDK: each step that is theirs is begun at its time and has its outcome told to the judge.

import { assert } from '../../base/assert.ts'
import type { Producer } from '../../client/api.ts'
import { EastGuardClient } from '../../client/client.ts'
import type { TopicId } from '../../model/ids.ts'
import { asEastGuardError } from '../client-error.ts'
import type { Judge } from '../judge.ts'
import type { Watcher } from '../machine.ts'
import type { World } from '../world.ts'
import { BROKER_HOST, BROKER_PORT } from './machine.ts'
import type { Step, StoragePlan } from './plan.ts'
import { TopicLife } from './topics.ts'

/** Longer than any fault of a run: what takes this long will never end. */
const PATIENCE_MS = 60_000

/** More than a WAL file of some plans. */
const MESSAGE_BYTES_MAX = 128 * 1024

export interface ClientWatcher extends Watcher {
  /** DAMAGED is an answer that may be given. */
  mayBeDamaged(): boolean
  /** So far. */
  diskFailures(): number
  /** Bytes that would be taken for the log's own under a salt that was used before. */
  forgery(): Uint8Array | undefined
}

type SendStep = Extract<Step, { kind: 'send' }>

export class Workload {
  readonly topics: readonly TopicLife[]
  /** Of topics whose deletion was answered. */
  readonly deleted: TopicId[] = []
  private readonly judge: Judge
  private readonly watcher: ClientWatcher
  private readonly client: EastGuardClient
  private readonly producers: readonly { readonly producer: Producer; readonly patient: boolean }[]
  private readonly pending = new Set<Promise<void>>()

  constructor(world: World, plan: StoragePlan, judge: Judge, watcher: ClientWatcher) {
    this.judge = judge
    this.watcher = watcher
    this.client = new EastGuardClient(
      {
        seeds: [`${BROKER_HOST}:${BROKER_PORT}`],
        connectTimeoutMs: 100,
        requestTimeoutMs: PATIENCE_MS,
        backoffMs: 5,
        backoffMaxMs: 50,
      },
      world.process('client').ports,
    )
    this.topics = plan.topics.map((topic, i) => new TopicLife(`topic-${i}`, topic))
    this.producers = plan.producers.map(({ codec, lingerMs, deliveryTimeoutMs }) => ({
      producer: this.client.producer({ codec, lingerMs, deliveryTimeoutMs }),
      patient: deliveryTimeoutMs >= PATIENCE_MS,
    }))
  }

  /** Nothing that was begun is still without an outcome. */
  get settled(): boolean {
    return this.pending.size === 0
  }

  send(step: SendStep): void {
    const topic = this.topic(step.topic)
    if (topic.state !== 'present') return
    const { producer, patient } = this.producers[step.producer] as (typeof this.producers)[number]
    const padding = (step.forged === true ? this.watcher.forgery() : undefined) ?? step.bytes
    const to = step.partition % topic.width
    for (let i = 0; i < step.records; i++) {
      const { name, value } = this.judge.send(topic.log, step.producer, to, padding)
      const { log } = topic
      const sent = producer.send({ topic: topic.name, partition: to, value }).then(
        ({ partition, offset }) => this.judge.acknowledge(name, partition, offset),
        (error: unknown) => this.rejected(name, error, patient && this.lives(topic, log)),
      )
      topic.sending.add(sent)
      this.track(sent.finally(() => topic.sending.delete(sent)))
    }
    const what = `${step.records} records to ${topic.log} ${to}`
    this.watcher.say(`client: producer ${step.producer} sends ${what}`)
  }

  private rejected(name: string, error: unknown, unexpected: boolean): void {
    const { code, message, detail } = asEastGuardError(error)
    const maybeStored = (detail as { maybeStored?: boolean } | undefined)?.maybeStored ?? false
    this.watcher.say(`client: ${name} is rejected: ${code}, maybe stored: ${maybeStored}`)
    // A producer that knew an earlier life of the topic is told once that there is another now.
    if (unexpected && code !== 'UNKNOWN_TOPIC' && !this.watcher.mayBeDamaged()) {
      this.watcher.violation(`${name} was given up: ${code}: ${message}`)
    }
    this.judge.reject(name, maybeStored)
  }

  private lives(topic: TopicLife, log: string): boolean {
    return topic.state === 'present' && topic.log === log
  }

  create(index: number): void {
    const topic = this.topic(index)
    if (topic.state !== 'absent') return
    topic.begin()
    this.track(this.createWhenQuiet(topic))
  }

  private async createWhenQuiet(topic: TopicLife): Promise<void> {
    await Promise.all(topic.sending)
    this.watcher.say(`client: creates ${topic.log}`)
    try {
      const { partitions, segmentEntries } = topic
      const policy = {
        partitions,
        segmentEntries,
        segmentBytes: 64 * 1024,
        retentionMs: -1,
        maxMessageBytes: MESSAGE_BYTES_MAX,
      }
      const made = await this.client.admin().createTopic(topic.name, { policy })
      topic.id = made.topicId
      topic.state = 'present'
      this.watcher.say(`client: ${topic.log} is created, ${made.topicId}`)
    } catch (error) {
      const { code, message } = asEastGuardError(error)
      this.watcher.violation(`${topic.log} cannot be created: ${code}: ${message}`)
    }
  }

  widen(index: number, by: number): void {
    const topic = this.topic(index)
    if (topic.state !== 'present') return
    const { log } = topic
    const width = topic.width + by
    const done = (): void => {
      if (topic.log === log) topic.width = Math.max(topic.width, width)
    }
    const what = `given ${width} partitions`
    this.track(
      this.changed(topic, what, this.client.admin().addPartitions(topic.name, width), done),
    )
  }

  alter(index: number, segmentEntries: number): void {
    const topic = this.topic(index)
    if (topic.state !== 'present') return
    const what = `given segments of ${segmentEntries} entries`
    this.track(
      this.changed(topic, what, this.client.admin().alterTopic(topic.name, { segmentEntries })),
    )
  }

  private async changed(
    topic: TopicLife,
    what: string,
    change: Promise<unknown>,
    done: () => void = () => {},
  ): Promise<void> {
    const { log } = topic
    try {
      await change
      this.watcher.say(`client: ${log} is ${what}`)
      done()
    } catch (error) {
      const { code, message } = asEastGuardError(error)
      this.watcher.say(`client: ${log} is not ${what}: ${code}`)
      // Another change may have made it wider meanwhile.
      if (this.lives(topic, log) && code !== 'INVALID_POLICY') {
        this.watcher.violation(`${log} cannot be ${what}: ${code}: ${message}`)
      }
    }
  }

  delete(index: number): void {
    const topic = this.topic(index)
    if (topic.state !== 'present') return
    topic.state = 'unsure'
    this.track(this.deleteNow(topic))
  }

  private async deleteNow(topic: TopicLife): Promise<void> {
    this.watcher.say(`client: deletes ${topic.log}`)
    const failuresBefore = this.watcher.diskFailures()
    try {
      await this.client.admin().deleteTopic(topic.name)
    } catch (error) {
      // An answer was lost: the first attempt had done it.
      const { code, message } = asEastGuardError(error)
      // Or its files could not be removed: the next start does it.
      if (code !== 'UNKNOWN_TOPIC' && this.watcher.diskFailures() === failuresBefore) {
        this.watcher.violation(`${topic.log} cannot be deleted: ${code}: ${message}`)
        return
      }
    }
    this.deleted.push(topic.id as TopicId)
    topic.state = 'absent'
    this.watcher.say(`client: ${topic.log} is deleted`)
  }

  read(index: number): void {
    const topic = this.topic(index)
    if (topic.state === 'present') this.track(this.readAll(topic))
  }

  private async readAll(topic: TopicLife): Promise<void> {
    const { log } = topic
    const reading = this.judge.reading(log)
    const failuresBefore = this.watcher.diskFailures()
    const consumer = this.client.consumer({
      topic: topic.name,
      stopAtEnd: true,
      unavailableTimeoutMs: PATIENCE_MS,
    })
    let count = 0
    try {
      for await (const { partition, offset, value } of consumer) {
        // A topic of the same name that was made meanwhile is another log.
        if (topic.log !== log) break
        assert(value !== null, 'all records of a run have values')
        reading.record(partition, offset, value)
        count++
      }
      if (this.lives(topic, log)) reading.end()
      this.watcher.say(`client: has read ${count} records of ${log}`)
    } catch (error) {
      const { code, message } = asEastGuardError(error)
      this.watcher.say(`client: a reading of ${log} ended with ${code}`)
      // What could not be read now may be read later.
      const failed = code === 'DAMAGED' || code === 'DISK_FAILED'
      const unreadable = failed && this.watcher.diskFailures() > failuresBefore
      if (this.lives(topic, log) && !unreadable && !this.isDamage(code)) {
        this.watcher.violation(`${log} cannot be read: ${code}: ${message}`)
      }
    }
  }

  /** At the end: what should be there is listed, and nothing else. */
  checkTopics(): void {
    this.track(
      this.client
        .admin()
        .listTopics()
        .then(
          (names) => {
            const expected = this.topics.filter((t) => t.state === 'present').map((t) => t.name)
            if (names.join() !== expected.join()) {
              this.watcher.violation(`the topics are ${names.join()}, not ${expected.join()}`)
            }
          },
          (error: unknown) => this.watcher.violation(`topics cannot be listed: ${String(error)}`),
        ),
    )
  }

  private isDamage(code: string): boolean {
    return code === 'DAMAGED' && this.watcher.mayBeDamaged()
  }

  private topic(index: number): TopicLife {
    return this.topics[index] as TopicLife
  }

  private track(work: Promise<void>): void {
    const tracked = work.finally(() => this.pending.delete(tracked))
    this.pending.add(tracked)
  }
}
