// Topics that come and go under one name, by one client that does one thing after another: what was deleted is never read again
// under the name, and in the end no disk has anything of it [I15]. Its records are judged as a log of their own for each life.

import type { EastGuardClient } from '../../client/client.ts'
import { pause } from '../../client/timing.ts'
import { codeOf } from '../client-error.ts'
import type { Judge } from '../judge.ts'
import type { Machine, Watcher } from '../machine.ts'
import type { ProcessPorts } from '../process.ts'
import { connect, PATIENCE_MS } from './client.ts'

const NAME = 'passing'
const LIVES_MAX = 6
const RECORDS = 5
const REST_MS = 3000
const POLICY = {
  partitions: 2,
  replicationFactor: 3,
  minInsyncReplicas: 2,
  segmentEntries: 3,
  retentionMs: -1,
} as const

export interface PassingTopicOptions {
  readonly host: string
  /** The number of its producer, for the judge. */
  readonly number: number
  readonly ports: ProcessPorts
  readonly nowMs: () => number
  readonly judge: Judge
  readonly watcher: Watcher
}

export class PassingTopic {
  private readonly options: PassingTopicOptions
  private readonly client: EastGuardClient
  private readonly ids: string[] = []
  private lives = 0

  constructor(options: PassingTopicOptions) {
    this.options = options
    this.client = connect(options.host, options.ports)
  }

  async work(untilMs: number): Promise<void> {
    const { nowMs } = this.options
    while (nowMs() < untilMs && this.lives < LIVES_MAX) await this.life(untilMs)
  }

  private async life(untilMs: number): Promise<void> {
    const log = `${NAME}#${++this.lives}`
    const admin = this.client.admin()
    const made = await this.insist('make', untilMs, async () => {
      const { topicId } = await admin.createTopic(NAME, { policy: POLICY, ifNotExists: true })
      return topicId
    })
    if (made === undefined) return
    await this.write(log)
    await this.read(log)
    await this.rest(REST_MS)
    const gone = await this.insist('delete', untilMs, async () => {
      await admin.deleteTopic(NAME).catch((error: unknown) => {
        // The answer to an earlier attempt was lost.
        if (codeOf(error) !== 'UNKNOWN_TOPIC') throw error
      })
      return made
    })
    if (gone !== undefined) this.ids.push(made)
    await this.rest(REST_MS / 3)
  }

  private async write(log: string): Promise<void> {
    const { judge, number } = this.options
    // A producer of its own: one that knew the life before is told once that there is another now.
    const producer = this.client.producer({ acks: 'all', deliveryTimeoutMs: PATIENCE_MS })
    const sent = Array.from({ length: RECORDS }, (_, i) => {
      const { name, value } = judge.send(log, number, i % POLICY.partitions, 30)
      return producer.send({ topic: NAME, partition: i % POLICY.partitions, value }).then(
        ({ partition, offset }) => judge.acknowledge(name, partition, offset),
        (error: unknown) => void codeOf(error),
      )
    })
    await Promise.all(sent)
    await producer.close()
  }

  private async read(log: string): Promise<void> {
    const reading = this.options.judge.reading(log)
    try {
      const consumer = this.client.consumer({
        topic: NAME,
        stopAtEnd: true,
        unavailableTimeoutMs: PATIENCE_MS,
      })
      for await (const { partition, offset, value } of consumer) {
        reading.record(partition, offset, value ?? new Uint8Array(0))
      }
      reading.end()
    } catch (error) {
      codeOf(error)
    }
  }

  /** Until it is done; undefined when the time is over before that is known. */
  private async insist<T>(
    what: string,
    untilMs: number,
    run: () => Promise<T>,
  ): Promise<T | undefined> {
    const { host, watcher, nowMs } = this.options
    while (nowMs() < untilMs) {
      try {
        const done = await run()
        watcher.say(`${host}: ${what} ${NAME}, life ${this.lives}: done`)
        return done
      } catch (error) {
        const code = codeOf(error)
        watcher.say(`${host}: ${what} ${NAME}, life ${this.lives}: ${code}`)
      }
      await this.rest(200)
    }
    return undefined
  }

  private rest(ms: number): Promise<void> {
    return pause(this.options.ports.clock, ms)
  }

  /** Whose disk still has something of what was deleted. */
  left(machines: readonly Machine[]): string | undefined {
    for (const { disk, host } of machines) {
      const path = disk.paths().find((one) => this.ids.some((id) => one.includes(id)))
      if (path !== undefined) return `${host} still has ${path}, which was deleted`
    }
    return undefined
  }

  get deleted(): number {
    return this.ids.length
  }
}
