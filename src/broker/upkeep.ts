// What a broker does by the clock: deadlines of produces that wait, age of open segments, retention. Each pass over the
// topics goes a few at a time, with other work in between.

import type { Timer } from '../ports/clock.ts'
import type { Broker } from './broker.ts'
import type { RangeContext } from './range/context.ts'
import { retain } from './topics/retention.ts'
import type { TopicRuntime } from './topics/runtime.ts'

const HELD_CHECK_MS = 50
const TOPICS_PER_TURN = 100

export class Upkeep {
  private readonly broker: Broker
  private readonly context: RangeContext
  private heldTimer: Timer | undefined
  private passTimer: Timer | undefined
  private passing: Promise<void> = Promise.resolve()
  private stopped = false

  constructor(broker: Broker, context: RangeContext) {
    this.broker = broker
    this.context = context
  }

  start(): void {
    this.context.holding.onFirst = () => this.checkHeld()
    this.schedulePass()
  }

  /** Runs while somebody waits. */
  private checkHeld(): void {
    if (this.stopped) return
    this.heldTimer ??= this.context.clock.after(HELD_CHECK_MS, () => {
      const now = this.context.clock.monotonic()
      this.heldTimer = undefined
      for (const leader of this.context.holding.all()) leader.expireHeld(now)
      if (this.context.holding.size > 0) this.checkHeld()
    })
  }

  private schedulePass(): void {
    this.passTimer = this.context.clock.after(this.broker.options.retentionCheckMs, () => {
      this.passing = this.pass().then(() => {
        if (!this.stopped) this.schedulePass()
      })
    })
  }

  private async pass(): Promise<void> {
    let count = 0
    for (const runtime of Array.from(this.broker.runtimes.all())) {
      if (this.stopped) return
      await this.keepUp(runtime)
      if (++count % TOPICS_PER_TURN === 0) await this.nextTurn()
    }
  }

  private async keepUp(runtime: TopicRuntime): Promise<void> {
    if (runtime.deleted) return
    for (const leader of runtime.allLeaders()) leader.rollWhenOld()
    try {
      const dropped = await retain(this.broker.parts, runtime.topic, this.context.nodeId)
      if (dropped > 0) {
        this.context.log.info('segments past their retention were dropped', {
          topic: runtime.topic.name,
          segments: dropped,
        })
      }
    } catch (error) {
      this.context.log.warn('retention failed and will be tried again', {
        topic: runtime.topic.name,
        err: error,
      })
    }
  }

  private nextTurn(): Promise<void> {
    return new Promise((resolve) => this.context.clock.nextTurn(resolve))
  }

  async stop(): Promise<void> {
    this.stopped = true
    this.heldTimer?.cancel()
    this.passTimer?.cancel()
    await this.passing
  }
}
