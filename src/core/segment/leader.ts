// One open segment, on its leader. It counts: how much it has appended, how much of that is durable here and at each follower,
// and below which entry everything is durable everywhere: the high watermark. Entries themselves it never sees.
//
//   open ──── roll: what is in flight commits ───────> closing ─┐
//    │ ^                                 │ a follower fails     │ end = high watermark
//    │ │                                 v                      v
//    └─┼──── a follower fails ───────> holding ─────────────> frozen ──── the seal commits ────> ended
//      │      all others, and it itself, ^ have everything      │
//      │                                 └── some have failed ──┤ CancelEnd of the attempt given commits
//      └──────────────────────────────────── none has ──────────┘ (the leader itself asks for it only then)
//
//   from each of them: a fence ──> fenced, for ever                                 a seal ──> ended
//
// An end that is given is everything appended: nothing is ever cut. While it is given, nothing is appended and the high watermark
// stands still, because the end may commit at any time, and what is acknowledged above it would be lost. Only the log of the
// shard ends that, never a clock: the segment is sealed, or its attempt is greater than the one given.
//
// A follower that failed stays failed: it may have restarted, and holds what it acknowledged before, but nobody asks it. Its
// acknowledgements no longer count, and the high watermark waits at the last that did. The segment can only be ended.

import { assert } from '../../base/assert.ts'
import type { NodeId } from '../../model/ids.ts'
import type { EndReason, FailedReplica, LeadersEnd, SegmentTiming } from './types.ts'

export type LeaderMode = 'open' | 'closing' | 'holding' | 'frozen' | 'fenced' | 'ended'

/** What a linearizable read, or an applied entry of the shard's log, says of the segment. */
export type SegmentNews =
  | { readonly state: 'open'; readonly attempt: number }
  | { readonly state: 'sealed'; readonly endEntry: number }

interface Following {
  readonly node: NodeId
  acked: number
  /** It has had something to acknowledge, and acknowledged nothing, since. */
  behindSinceMs: number
  failure: FailedReplica | undefined
}

export interface SegmentLeaderOptions {
  readonly followers: readonly NodeId[]
  /** The segment's own, from the metadata. */
  readonly attempt: number
  readonly timing: SegmentTiming
}

export class SegmentLeader {
  end = 0
  durableEnd = 0
  /** Everything below is durable on every replica, or sealed. */
  highWatermark = 0
  mode: LeaderMode = 'open'
  /** To be told to the coordinator again and again, while frozen. */
  given: LeadersEnd | undefined
  /** Nothing became of the end for too long: CancelEnd is to be asked for, again and again. */
  wantsCancel = false
  /** An end that was given may still commit. */
  private endIsOut = false
  private attempt: number
  private why: EndReason = 'policy'
  private frozenSinceMs: number | undefined
  private readonly following: readonly Following[]
  private readonly timing: SegmentTiming

  constructor({ followers, attempt, timing }: SegmentLeaderOptions) {
    this.following = followers.map((node) => {
      return { node, acked: 0, behindSinceMs: 0, failure: undefined }
    })
    this.attempt = attempt
    this.timing = timing
  }

  /** The lease is for the caller to see to. */
  get mayAppend(): boolean {
    return this.mode === 'open'
  }

  /** It may be sealed already, and others know more of it: this leader learns of that from the log only. */
  get mayBeSealed(): boolean {
    return this.endIsOut || this.mode === 'fenced' || this.mode === 'ended'
  }

  /** What of a follower counts. */
  ackedEnd(node: NodeId): number {
    return this.followerOf(node).acked
  }

  /** Those that the segment goes on without, until it has ended. */
  get failedReplicas(): readonly FailedReplica[] {
    return this.following.flatMap(({ failure }) => (failure === undefined ? [] : [failure]))
  }

  // What happens to entries.

  /** One entry more: numbered, in the WAL's queue, on its way to the followers. */
  appended(nowMs: number): void {
    assert(this.mayAppend, `a leader appends only to a segment that is open, not ${this.mode}`)
    for (const follower of this.following) {
      if (follower.acked === this.end) follower.behindSinceMs = nowMs
    }
    this.end++
  }

  durable(end: number): void {
    assert(end <= this.end, `${end} entries are durable of ${this.end} appended`)
    if (end <= this.durableEnd) return
    this.durableEnd = end
    this.moved()
  }

  acked(node: NodeId, end: number, nowMs: number): void {
    const follower = this.followerOf(node)
    if (follower.failure !== undefined || end <= follower.acked) return
    if (end > this.end) {
      const why = `it acknowledges entries up to ${end}, there are ${this.end}`
      return this.failed(node, why)
    }
    follower.acked = end
    follower.behindSinceMs = nowMs
    this.moved()
  }

  // What ends the segment.

  /** The follower refuses, is another start of its broker, or cannot go on where it was. */
  failed(node: NodeId, why: string): void {
    const follower = this.followerOf(node)
    follower.failure ??= { node, why }
    if (this.mode === 'open' || this.mode === 'closing') {
      this.mode = 'holding'
      this.why = 'follower-failed'
    }
    this.moved()
  }

  /** Planned: what is in flight commits first. Nothing happens when an end is on its way already. */
  roll(why: EndReason): void {
    if (this.mode !== 'open') return
    this.mode = 'closing'
    this.why = why
    this.moved()
  }

  /** Answers how many entries are before the fence in the WAL: the high watermark never goes beyond. */
  fence(): number {
    if (this.mode === 'ended') return this.highWatermark
    this.mode = 'fenced'
    this.given = undefined
    this.wantsCancel = false
    return this.end
  }

  /** Only from what is committed: an answer of a coordinator that may be deposed is no news. */
  learned(news: SegmentNews): void {
    if (this.mode === 'ended') return
    if (news.state === 'sealed') return this.sealed(news.endEntry)
    if (news.attempt <= this.attempt) return
    this.attempt = news.attempt
    if (this.mode === 'frozen') this.goOn()
  }

  /**
   * Every few tens of milliseconds while something is in flight or asked for. `stalledMs`: before now, in which the leader's broker
   * itself did nothing: acknowledgements may have come, and were not read.
   */
  tick(nowMs: number, stalledMs: number = 0): void {
    const { mode, timing } = this
    if (mode === 'frozen') {
      this.frozenSinceMs ??= nowMs
      // Without a follower it cannot go on, and would give the same end again: what was done for this one would be done for nothing.
      if (this.failedReplicas.length > 0) this.wantsCancel = false
      else this.wantsCancel = nowMs - this.frozenSinceMs >= timing.frozenTimeoutMs
      return
    }
    if (mode === 'fenced' || mode === 'ended') return
    for (const follower of this.following) {
      const { node, acked, failure } = follower
      if (failure !== undefined || acked === this.end) continue
      follower.behindSinceMs = Math.min(nowMs, follower.behindSinceMs + stalledMs)
      const silentMs = nowMs - follower.behindSinceMs
      if (silentMs < timing.replicaAckTimeoutMs) continue
      this.failed(node, `it has acknowledged nothing for ${Math.round(silentMs)} ms`)
    }
  }

  /** What comes behind the end that was given is being handed on: until then, that goes for news of it. */
  handsOn(untilMs: number): void {
    this.frozenSinceMs = untilMs
  }

  // Leaf functions.

  private followerOf(node: NodeId): Following {
    const follower = this.following.find((one) => one.node === node)
    assert(follower !== undefined, `${node} is a follower of the segment`)
    return follower
  }

  /** Something is durable that was not, or is not waited for any more. */
  private moved(): void {
    const { mode } = this
    // An end that was given may commit as it is, also behind a fence.
    if (this.endIsOut || mode === 'ended') return
    let everywhere = this.durableEnd
    for (const { acked } of this.following) everywhere = Math.min(everywhere, acked)
    this.highWatermark = Math.max(this.highWatermark, everywhere)
    if (mode === 'closing' && this.highWatermark === this.end) this.give()
    else if (mode === 'holding' && this.unnamedHaveAll()) this.give()
  }

  private unnamedHaveAll(): boolean {
    if (this.durableEnd < this.end) return false
    return this.following.every(({ acked, failure }) => failure !== undefined || acked === this.end)
  }

  private give(): void {
    const { attempt, end, highWatermark, failedReplicas: failed, why } = this
    this.mode = 'frozen'
    this.given = { attempt, end, highWatermark, failed, why }
    this.endIsOut = true
    this.frozenSinceMs = undefined
  }

  /** The end that was given can never commit any more. */
  private goOn(): void {
    this.given = undefined
    this.endIsOut = false
    this.wantsCancel = false
    const failed = this.failedReplicas.length > 0
    if (failed) this.why = 'follower-failed'
    this.mode = failed ? 'holding' : 'open'
    this.moved()
  }

  private sealed(endEntry: number): void {
    assert(endEntry <= this.end, `a segment of ${this.end} entries is sealed at ${endEntry}`)
    this.mode = 'ended'
    this.given = undefined
    this.wantsCancel = false
    this.highWatermark = endEntry
  }
}
