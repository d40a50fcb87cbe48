// One direction of a connection, as the two kernels see it: what is sent arrives once and in order, or the sender learns
// in the end that it does not.
//
//   send ──link passes──> delivered ──way back passes──> acknowledged
//     │                       └──way back is cut──> unacknowledged ─┐
//     └──link is cut, chunk lost──> lost, and all behind it ────────┴──> again after 200 ms, 400 ms, ... 3 s
//                                                                          └──nothing for the time-out──> given up
//
// So a cut stalls a connection, healing it sends everything on, and only a long cut breaks it; an idle connection notices
// nothing. Acknowledgements cost no event of their own: whether one could travel is looked up when it would have left.

import type { Timer } from '../../ports/clock.ts'
import type { SimClock } from './clock.ts'
import type { Link } from './links.ts'

const RETRY_MS = 200
const RETRY_MS_MAX = 3000

interface Parcel {
  readonly bytes: number
  readonly deliver: () => void
}

export interface PipeOptions {
  readonly clock: SimClock
  readonly there: Link
  readonly back: Link
  /** Nothing that is sent is given up earlier. */
  readonly timeoutMs: number
  readonly onStall: () => void
  readonly onGivenUp: () => void
}

export class Pipe {
  private readonly options: PipeOptions
  /** Nothing that is sent later arrives before this. */
  private lastArrival = 0
  private lost: Parcel[] = []
  /** Window that the receiver gave back and the sender has not heard of. */
  private withheld: (() => void)[] = []
  private stalledSince: number | undefined
  private retryMs = RETRY_MS
  private timer: Timer | undefined
  private state: 'open' | 'dark' | 'dropped' = 'open'

  constructor(options: PipeOptions) {
    this.options = options
  }

  send(bytes: number, deliver: () => void): void {
    const { clock, there } = this.options
    const left = this.passes()
    this.lastArrival = Math.max(this.lastArrival, clock.monotonic() + there.delay(bytes))
    clock.after(this.lastArrival - clock.monotonic(), () => this.arrive({ bytes, deliver }, left))
  }

  /** The receiver has room again; `tell` runs when the sender hears of it. */
  tellSender(tell: () => void): void {
    if (this.options.back.passes && this.withheld.length === 0 && this.state === 'open') {
      tell()
      return
    }
    this.withheld.push(tell)
    this.stall()
  }

  /** Nothing gets through any more, and nobody is told. */
  darken(): void {
    if (this.state === 'open') this.state = 'dark'
  }

  /** The sender is gone: nothing is sent again. */
  drop(): void {
    this.state = 'dropped'
    this.lost = []
    this.withheld = []
    this.timer?.cancel()
  }

  private passes(): boolean {
    return this.state !== 'dark' && this.options.there.passes
  }

  private arrive(parcel: Parcel, left: boolean): void {
    if (this.state === 'dropped') return
    const { there, back } = this.options
    if (!left || this.lost.length > 0 || !this.passes() || there.losesChunk()) {
      this.lost.push(parcel)
      this.stall()
      return
    }
    parcel.deliver()
    if (!back.passes) this.stall()
    else if (this.stalledSince !== undefined) this.recovered()
  }

  private stall(): void {
    if (this.state === 'dropped') return
    const { clock, onStall } = this.options
    if (this.stalledSince === undefined) {
      this.stalledSince = clock.monotonic()
      onStall()
    }
    this.timer ??= clock.after(this.retryMs, () => this.retry())
  }

  private retry(): void {
    this.timer = undefined
    if (this.state === 'dropped' || this.stalledSince === undefined) return
    const { clock, back, timeoutMs, onGivenUp } = this.options
    if (clock.monotonic() - this.stalledSince >= timeoutMs) {
      this.drop()
      onGivenUp()
      return
    }
    this.retryMs = Math.min(this.retryMs * 2, RETRY_MS_MAX)
    if (this.passes()) {
      const again = this.lost
      this.lost = []
      for (const { bytes, deliver } of again) this.send(bytes, deliver)
      if (back.passes && again.length === 0) this.recovered()
    }
    if (this.stalledSince !== undefined) this.stall()
  }

  private recovered(): void {
    this.stalledSince = undefined
    this.retryMs = RETRY_MS
    this.timer?.cancel()
    this.timer = undefined
    const told = this.withheld
    this.withheld = []
    for (const tell of told) tell()
  }
}
