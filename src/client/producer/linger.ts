// When a batch that is not full has waited long enough. Every batch of a producer lingers equally long, so one timer serves
// all: it is due no later than any batch that is begun while it runs.

import type { Clock, Timer } from '../../ports/clock.ts'
import type { ProducerBatch } from './batch.ts'
import type { Lane } from './sender.ts'

export class Linger {
  private readonly clock: Clock
  private readonly onDue: (lane: Lane, batch: ProducerBatch) => void
  /** Lanes with an open batch that is not yet due; each once. */
  private lanes: Lane[] = []
  private timer: Timer | undefined
  private nextTurn = false

  constructor(clock: Clock, onDue: (lane: Lane, batch: ProducerBatch) => void) {
    this.clock = clock
    this.onDue = onDue
  }

  /** The lane has begun a batch, due at `dueMs` on the monotonic clock. */
  watch(lane: Lane, dueMs: number): void {
    if (!lane.lingering) {
      lane.lingering = true
      this.lanes.push(lane)
    }
    this.arm(dueMs)
  }

  stop(): void {
    this.timer?.cancel()
  }

  private arm(dueMs: number): void {
    if (this.timer !== undefined || this.nextTurn) return
    const inMs = dueMs - this.clock.monotonic()
    if (inMs > 0) this.timer = this.clock.after(inMs, () => this.over())
    else {
      this.nextTurn = true
      this.clock.nextTurn(() => this.over())
    }
  }

  private over(): void {
    this.timer = undefined
    this.nextTurn = false
    const nowMs = this.clock.monotonic()
    const { lanes } = this
    this.lanes = []
    let nextMs = Infinity
    for (const lane of lanes) {
      const batch = lane.queue.open
      if (batch !== undefined && batch.dueMs > nowMs) {
        this.lanes.push(lane)
        nextMs = Math.min(nextMs, batch.dueMs)
        continue
      }
      lane.lingering = false
      if (batch !== undefined) this.onDue(lane, batch)
    }
    if (nextMs !== Infinity) this.arm(nextMs)
  }
}
