// What a leader does about an end that it has given: it tells the coordinator until it knows what became of it, and when that
// takes too long it asks for CancelEnd. It never goes on by itself (PROTOCOLS §5).

import { EastGuardError } from '../../base/errors.ts'
import type { LeadersEnd } from '../../core/segment/types.ts'
import type { RangeLeader } from './leader.ts'
import type { Ticked } from './ticking.ts'

const CANCEL_RETRY_MS = 1000

export class EndKeeper implements Ticked {
  private readonly leader: RangeLeader
  private toldAtMs: number | undefined
  private cancelAgainAtMs = 0
  private cancelling = false

  constructor(leader: RangeLeader) {
    this.leader = leader
  }

  moved(): void {
    const { segment, context, copy } = this.leader
    if (segment === undefined) return
    if (segment.given !== undefined && this.toldAtMs === undefined) {
      this.log(segment.given)
      this.tell()
    }
    if (segment.given === undefined) this.toldAtMs = undefined
    // A lone broker's own disk is its only replica: nothing but an end needs the clock.
    const follows = copy.pending.size > 0 && copy.open.replicas.length > 1
    if (segment.given !== undefined || follows) context.ticking.add(this)
  }

  private log({ end, highWatermark, failed }: LeadersEnd): void {
    if (failed.length === 0) return
    const { context, copy } = this.leader
    context.counters.endsWithoutFollowers.add(1)
    const what = 'a segment ends because followers have failed'
    context.log.warn(what, { ...copy.fields, end, highWatermark, failed })
  }

  private tell(): void {
    const { segment, context, copy } = this.leader
    if (segment?.given === undefined) return
    this.toldAtMs = context.clock.monotonic()
    context.hooks.gave(copy.key, segment.given)
  }

  tick(nowMs: number, stalledMs: number): boolean {
    const { leader } = this
    const { segment, copy, context } = leader
    if (segment === undefined || copy.status !== 'live') return false
    segment.tick(nowMs, stalledMs)
    leader.moved()
    if (copy.pending.size > 0) leader.lookForLease(nowMs)
    if (segment.given === undefined) return copy.pending.size > 0
    if (this.toldAtMs === undefined || nowMs - this.toldAtMs >= context.timing.retryMs) this.tell()
    if (segment.wantsCancel) this.cancel(segment.given.attempt, nowMs)
    return true
  }

  private cancel(attempt: number, nowMs: number): void {
    const { copy, context } = this.leader
    if (this.cancelling || nowMs < this.cancelAgainAtMs) return
    this.cancelling = true
    this.cancelAgainAtMs = nowMs + CANCEL_RETRY_MS
    context.counters.endsTakenBack.add(1)
    context.log.warn('nothing became of the end of a segment: it is taken back', copy.fields)
    const { topicId, range, segment } = copy.key
    context.metadata.propose({ kind: 'CancelEnd', topicId, range, segment, attempt }).then(
      () => {
        this.cancelling = false
      },
      (error: unknown) => {
        this.cancelling = false
        if (!(error instanceof EastGuardError)) throw error
      },
    )
  }

  clear(): void {
    this.toldAtMs = undefined
    this.leader.context.ticking.delete(this)
  }
}
