// Where answers of the hot path go. A door implements a sink once per connection; requests carry a slot, a small
// number with which the door finds its own bookkeeping. So the broker keeps no promise, closure or map per request:
//
//   door ── produce(..., sink, slot) ──> range leader ── group commit ──> sink.produced(slot, ...)
//
// Every produce is answered exactly once, also those with acks 0, whose answers the door throws away: it counts them to
// bound what one connection may have in flight.

import type { ErrorCode } from '../base/errors.ts'
import type { Redirect } from '../model/redirect.ts'

export interface ProduceSink {
  produced(slot: number, baseOffset: number, logTimeMs: number): void
  /** `redirect`: where to go instead, with NOT_LEADER. */
  refused(slot: number, code: ErrorCode, message: string, redirect?: Redirect): void
}

/** Numbers, not names, because they travel in every produce. */
export const ACKS_NONE = 0
export const ACKS_LEADER = 1
export const ACKS_ALL = 255

/** Something that waits until a partition has more to read. Woken once; it registers again when it wants to. */
export interface Watcher {
  wake(): void
}
