// A client that reads one topic by the SDK, from the beginning: one stays at the end and sees each record as soon as some
// replica serves it, one begins again and again. What they see is judged by ../judge.ts, as one pass that never turns back.

import { type Prng, prng } from '../../base/prng.ts'
import type { EastGuardClient } from '../../client/client.ts'
import { pause } from '../../client/timing.ts'
import { codeOf } from '../client-error.ts'
import type { Judge, Reading } from '../judge.ts'
import type { Watcher } from '../machine.ts'
import type { ProcessPorts } from '../process.ts'
import { connect, PATIENCE_MS } from './client.ts'
import type { ReaderPlan, TopicPlan } from './plan.ts'

const REST_MS_MAX = 20_000

/** What nothing that happens in a run may bring about: nothing is removed here. */
const NEVER: ReadonlySet<string> = new Set([
  'OFFSET_OUT_OF_RANGE',
  'UNKNOWN_TOPIC',
  'UNKNOWN_PARTITION',
  'CORRUPT',
  'INTERNAL',
])

export interface ReaderOptions {
  readonly plan: ReaderPlan
  readonly topic: TopicPlan
  readonly ports: ProcessPorts
  readonly seed: number
  readonly nowMs: () => number
  readonly judge: Judge
  readonly watcher: Watcher
  /** In the turn in which the reader is given a record. */
  readonly onRead: (value: Uint8Array, topic: TopicPlan) => void
}

export class Reader {
  /** Passes that were begun, and those that came to the end they were told. */
  passes = 0
  complete = 0
  private readonly options: ReaderOptions
  private readonly chance: Prng
  private readonly client: EastGuardClient
  private readonly stop = new AbortController()
  /** Of the pass that stays at the end: by partition. */
  private readonly reached = new Map<number, number>()

  constructor(options: ReaderOptions) {
    const { plan, ports, seed } = options
    this.options = options
    this.chance = prng(seed)
    this.client = connect(plan.host, ports, plan.near)
  }

  async work(untilMs: number): Promise<void> {
    const { ports, nowMs, plan } = this.options
    while (nowMs() < untilMs && !this.stop.signal.aborted) {
      if (plan.tail) await this.follow()
      else await this.pass(PATIENCE_MS)
      await pause(ports.clock, plan.tail ? 100 : this.chance.below(REST_MS_MAX))
    }
  }

  end(): void {
    this.stop.abort()
  }

  /** Whoever stays at the end has come to all that is known. */
  get caughtUp(): boolean {
    const { plan, judge, topic } = this.options
    if (!plan.tail) return true
    return [...judge.ends(topic.name)].every(
      ([partition, end]) => (this.reached.get(partition) ?? 0) >= end,
    )
  }

  private async follow(): Promise<void> {
    const { judge, topic, plan, watcher } = this.options
    const reading = judge.reading(topic.name)
    this.reached.clear()
    this.passes++
    try {
      const consumer = this.client.consumer({
        topic: topic.name,
        unavailableTimeoutMs: Number.POSITIVE_INFINITY,
        signal: this.stop.signal,
      })
      for await (const { partition, offset, value } of consumer) {
        this.record(reading, partition, offset, value)
        this.reached.set(partition, offset + 1)
      }
    } catch (error) {
      const code = codeOf(error)
      if (code !== 'ABORTED') this.failed(code)
    }
    watcher.say(`${plan.host}: no longer follows ${topic.name}`)
  }

  /** Undefined when the end was reached, otherwise why not. */
  async pass(patienceMs: number): Promise<string | undefined> {
    const { judge, topic, plan, watcher } = this.options
    const reading = judge.reading(topic.name)
    this.passes++
    let count = 0
    try {
      const consumer = this.client.consumer({
        topic: topic.name,
        stopAtEnd: true,
        unavailableTimeoutMs: patienceMs,
      })
      for await (const { partition, offset, value } of consumer) {
        this.record(reading, partition, offset, value)
        count++
      }
      reading.end()
      this.complete++
      watcher.say(`${plan.host}: has read ${count} records of ${topic.name}`)
      return undefined
    } catch (error) {
      const code = codeOf(error)
      watcher.say(`${plan.host}: a reading of ${topic.name} ended with ${code} after ${count}`)
      this.failed(code)
      return code
    }
  }

  private record(
    reading: Reading,
    partition: number,
    offset: number,
    value: Uint8Array | null,
  ): void {
    const bytes = value ?? new Uint8Array(0)
    reading.record(partition, offset, bytes)
    this.options.onRead(bytes, this.options.topic)
  }

  private failed(code: string): void {
    const { plan, topic, watcher } = this.options
    if (!NEVER.has(code)) watcher.say(`${plan.host}: cannot read ${topic.name}: ${code}`)
    else watcher.violation(`${plan.host}: reading ${topic.name} ended with ${code}`)
  }
}
