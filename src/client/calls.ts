// The calls of one connection that have no outcome yet, written or not, by request id. Time-outs are kept by one timer at
// the earliest deadline, not by one per call: most calls are answered long before, and a timer each would cost more than
// the call.
//
//   add ──> [ calls ] ──take──> answered, given up            deadline passed ──> onLate

import type { EastGuardError } from '../base/errors.ts'
import type { Clock, Timer } from '../ports/clock.ts'

/** What becomes of one request: exactly one of the two is called, once. */
export interface Reply {
  /** The response, header included: its decoder throws when it is an error. */
  answered(payload: Uint8Array): void
  failed(error: EastGuardError, maybeArrived: boolean): void
}

export interface Call {
  readonly requestId: number
  readonly frame: readonly Uint8Array[]
  readonly reply: Reply
  readonly deadlineMs: number
  readonly onWritten: (() => void) | undefined
  written: boolean
}

/** Deadlines are looked at no more often than this. */
const SWEEP_MS_LEAST = 5
/** The hello is no caller's; all others count on from it. */
export const HELLO_REQUEST_ID = 0
const REQUEST_ID_MAX = 0xffff_ffff

export class Calls {
  private readonly clock: Clock
  private readonly onLate: (calls: readonly Call[]) => void
  private readonly calls = new Map<number, Call>()
  private lastRequestId: number = HELLO_REQUEST_ID
  private timer: Timer | undefined
  private timerAtMs = Infinity

  /** `onLate` is given calls that have been taken out, because their time is over. */
  constructor(clock: Clock, onLate: (calls: readonly Call[]) => void) {
    this.clock = clock
    this.onLate = onLate
  }

  get size(): number {
    return this.calls.size
  }

  nextRequestId(): number {
    const last = this.lastRequestId === REQUEST_ID_MAX ? HELLO_REQUEST_ID : this.lastRequestId
    this.lastRequestId = last + 1
    return this.lastRequestId
  }

  add(call: Call): void {
    this.calls.set(call.requestId, call)
    this.sweepBy(call.deadlineMs)
  }

  get(requestId: number): Call | undefined {
    return this.calls.get(requestId)
  }

  /** It is waited for no more. Undefined: it was not. */
  take(requestId: number): Call | undefined {
    const call = this.calls.get(requestId)
    if (call === undefined) return undefined
    this.calls.delete(requestId)
    if (this.calls.size === 0) this.stopTimer()
    return call
  }

  takeAll(): Call[] {
    const calls = [...this.calls.values()]
    this.calls.clear()
    this.stopTimer()
    return calls
  }

  private sweepBy(deadlineMs: number): void {
    if (deadlineMs >= this.timerAtMs) return
    this.timer?.cancel()
    this.timerAtMs = deadlineMs
    const inMs = Math.max(SWEEP_MS_LEAST, deadlineMs - this.clock.monotonic())
    this.timer = this.clock.after(inMs, () => this.sweep())
  }

  private stopTimer(): void {
    this.timer?.cancel()
    this.timer = undefined
    this.timerAtMs = Infinity
  }

  private sweep(): void {
    this.stopTimer()
    const now = this.clock.monotonic()
    let next = Infinity
    const late: Call[] = []
    for (const call of this.calls.values()) {
      if (call.deadlineMs <= now) late.push(call)
      else if (call.deadlineMs < next) next = call.deadlineMs
    }
    for (const call of late) this.calls.delete(call.requestId)
    if (next !== Infinity) this.sweepBy(next)
    this.onLate(late)
  }
}
