// Whether the broker at the other end of a connection still lives. A machine that lost its power, or a process that was
// stopped, closes nothing, and a reader at the end of a log cannot tell that from a log that is quiet. So while somebody
// waits for the broker and nothing comes, it is asked something small, and given up when that is not answered either:
//
//   silent for 2 s ──> ping ──anything comes──> silent for 0 s
//                       └──────5 s more──────> dead
//
// Counted in ticks, not by the clock: a client that was stopped itself, or whose turn was long, has not listened meanwhile.
// Where nothing can be written, because the broker reads no more, it may only be busy, and is given longer.

import type { Clock, Timer } from '../ports/clock.ts'

interface PulseHooks {
  /** Whether somebody waits for what the broker sends. */
  waits(): boolean
  /** False when nothing can be written. */
  ping(): boolean
  dead(): void
}

const TICK_MS = 1000
const PING_TICKS = 2
const DEAD_TICKS = 7
const DEAD_UNASKED_TICKS = 20

export class Pulse {
  private readonly clock: Clock
  private readonly hooks: PulseHooks
  private timer: Timer | undefined
  private heardSince = false
  private silentTicks = 0
  private pinged = false

  constructor(clock: Clock, hooks: PulseHooks) {
    this.clock = clock
    this.hooks = hooks
  }

  /** Somebody waits from now on. */
  begin(): void {
    if (this.timer !== undefined) return
    this.silentTicks = 0
    this.pinged = false
    this.timer = this.clock.after(TICK_MS, () => this.tick())
  }

  /** Something came. */
  heard(): void {
    this.heardSince = true
  }

  stop(): void {
    this.timer?.cancel()
    this.timer = undefined
  }

  private tick(): void {
    if (!this.hooks.waits()) {
      this.timer = undefined
      return
    }
    if (this.heardSince) {
      this.silentTicks = 0
      this.pinged = false
    } else this.silentTicks++
    this.heardSince = false
    if (this.silentTicks >= (this.pinged ? DEAD_TICKS : DEAD_UNASKED_TICKS)) {
      this.hooks.dead()
      return
    }
    if (this.silentTicks >= PING_TICKS && !this.pinged) this.pinged = this.hooks.ping()
    this.timer = this.clock.after(TICK_MS, () => this.tick())
  }
}
