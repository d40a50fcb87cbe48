// Leaders that wait for something which may never come: a follower's acknowledgement, the outcome of an end that was given.
// The clock runs only while there are some. When it is late the whole broker was: what had come for it meanwhile is not read yet,
// and nobody is to blame for that time.

import type { Clock, Timer } from '../../ports/clock.ts'

const TICK_MS = 25

export interface Ticked {
  /** `stalledMs`: before now, in which this broker did nothing. False: nothing more to wait for. */
  tick(nowMs: number, stalledMs: number): boolean
}

export class Ticking {
  private readonly clock: Clock
  private readonly all = new Set<Ticked>()
  private timer: Timer | undefined
  private stopped = false

  constructor(clock: Clock) {
    this.clock = clock
  }

  add(one: Ticked): void {
    this.all.add(one)
    this.schedule()
  }

  delete(one: Ticked): void {
    this.all.delete(one)
  }

  stop(): void {
    this.stopped = true
    this.timer?.cancel()
  }

  private schedule(): void {
    if (this.stopped || this.timer !== undefined || this.all.size === 0) return
    const dueMs = this.clock.monotonic() + TICK_MS
    this.timer = this.clock.after(TICK_MS, () => {
      this.timer = undefined
      const now = this.clock.monotonic()
      const lateMs = now - dueMs
      const stalledMs = lateMs >= TICK_MS ? lateMs : 0
      for (const one of Array.from(this.all)) if (!one.tick(now, stalledMs)) this.all.delete(one)
      this.schedule()
    })
  }
}
