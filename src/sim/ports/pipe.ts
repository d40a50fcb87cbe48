// One direction of a connection, as the two kernels see it: what is sent arrives once and in order, or the sender learns
// in the end that it does not.
//
//   send ──link passes──> delivered ──way back passes──> acknowledged
//     │                       └──way back is cut──> unacknowledged ─┐
//     │                       └──something before it is missing──> kept until that has come
//     └──link is cut, chunk lost──> lost ───────────────────────────┴──> again after 200 ms, 400 ms, ... 3 s
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
  readonly order: number
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
  private sent = 0
  /** The order of the one that is to be delivered next. */
  private due = 0
  /** What came before its turn, by order. */
  private readonly early = new Map<number, Parcel>()
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
    this.leave({ order: this.sent++, bytes, deliver })
  }

  private leave(parcel: Parcel): void {
    const { clock, there } = this.options
    const left = this.passes()
    this.lastArrival = Math.max(this.lastArrival, clock.monotonic() + there.delay(parcel.bytes))
    clock.after(this.lastArrival - clock.monotonic(), () => this.arrive(parcel, left))
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
    this.early.clear()
    this.withheld = []
    this.timer?.cancel()
  }

  /** What is sent arrives, and an answer to it comes back. */
  get answers(): boolean {
    return this.passes() && this.options.back.passes
  }

  private passes(): boolean {
    return this.state !== 'dark' && this.options.there.passes
  }

  private arrive(parcel: Parcel, left: boolean): void {
    if (this.state === 'dropped') return
    const { back, there } = this.options
    if (!left || !this.passes() || there.losesChunk()) {
      this.lost.push(parcel)
      this.stall()
      return
    }
    // What was lost is sent again behind what was under way: that comes first then.
    this.early.set(parcel.order, parcel)
    if (parcel.order !== this.due) return
    this.deliver()
    if (!back.passes) this.stall()
    else if (this.lost.length === 0) this.recovered()
    else this.stalledSince = this.options.clock.monotonic()
  }

  private deliver(): void {
    for (;;) {
      const next = this.early.get(this.due)
      if (next === undefined) return
      this.early.delete(this.due++)
      next.deliver()
    }
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
      for (const parcel of again) this.leave(parcel)
      if (back.passes && again.length === 0) this.recovered()
    }
    if (this.stalledSince !== undefined) this.stall()
  }

  private recovered(): void {
    if (this.stalledSince === undefined) return
    this.stalledSince = undefined
    this.retryMs = RETRY_MS
    this.timer?.cancel()
    this.timer = undefined
    const told = this.withheld
    this.withheld = []
    for (const tell of told) tell()
  }
}
