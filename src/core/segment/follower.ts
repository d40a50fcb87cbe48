// One open segment, on a follower, which takes what comes in order and promises little:
//
//            0            hw        durable      next
//   entries  ├─────────────┼───────────┼──────────┤<── the leader's next one, and no other
//                          ^           ^ acknowledged, as soon as it is synced
//                          └ read by consumers
//
//   taking ── fence() ──> fencing ── fenceDurable() ──> fenced ── seal ──> sealed
//                         nothing is taken from now on, for ever
//
// The fence is a record in the WAL. The answer is the number of entries before it, and is given when the record is durable: so
// those before it are too, and the leader is never told of more. What a coordinator decides from that answer stays right,
// whatever the old leader believes.
//
// A broker that restarts has its open segments fenced for ever, its own as well: one that it led is held by this machine too,
// with itself as the leader, from whom nothing comes any more.

import { assert } from '../../base/assert.ts'
import type { NodeId } from '../../model/ids.ts'

export interface SegmentFollowerOptions {
  readonly leader: NodeId
  /** Entries that are here and durable: none, or those that recovery found and made durable. */
  readonly next: number
  readonly fencedByRestart: boolean
  /** The greatest that envelopes say after a restart. */
  readonly highWatermark?: number
}

/** What the coordinator is told; the broker adds who it is and whether it is sure. */
interface Answer {
  readonly end: number
  readonly highWatermark: number
}

type Check = 'take' | { readonly refuse: string }

export class SegmentFollower {
  readonly leader: NodeId
  next: number
  durableEnd: number
  /** Entries before the fence, once there is one. */
  private fencedAt: number | undefined
  private fenceIsDurable = false
  private sealedAt: number | undefined
  private heardHighWatermark: number

  constructor({ leader, next, fencedByRestart, highWatermark = 0 }: SegmentFollowerOptions) {
    this.leader = leader
    this.next = next
    this.durableEnd = next
    this.heardHighWatermark = highWatermark
    if (fencedByRestart) {
      this.fencedAt = next
      this.fenceIsDurable = true
    }
  }

  /** Consumers read below it: never what is not durable here. */
  get highWatermark(): number {
    return Math.min(this.heardHighWatermark, this.durableEnd)
  }

  /** What the leader may be told. */
  get ackable(): number {
    return Math.min(this.durableEnd, this.fencedAt ?? this.durableEnd)
  }

  get fenced(): boolean {
    return this.fencedAt !== undefined
  }

  /** Exactly the next one, from the leader, and nothing behind a fence. A refusal is final: nothing is numbered anew. */
  check(from: NodeId, entryNumber: number): Check {
    const { leader, next, fencedAt, sealedAt } = this
    if (from !== leader) return { refuse: `${from} does not lead the segment, ${leader} does` }
    if (sealedAt !== undefined) return { refuse: `the segment is sealed at entry ${sealedAt}` }
    if (fencedAt !== undefined) return { refuse: `the segment is fenced here at entry ${fencedAt}` }
    if (entryNumber !== next) {
      return { refuse: `entry ${entryNumber} came, entry ${next} would be next` }
    }
    return 'take'
  }

  /** An entry that was checked is in the WAL's queue. */
  took(): void {
    assert(!this.fenced && this.sealedAt === undefined, 'nothing is taken behind a fence or a seal')
    this.next++
  }

  durable(end: number): void {
    // A sync that was under way may end after the seal, with entries that the seal has cut off.
    const kept = Math.min(end, this.sealedAt ?? end)
    assert(kept <= this.next, `${kept} entries are durable of ${this.next} taken`)
    this.durableEnd = Math.max(this.durableEnd, kept)
  }

  /** The leader's high watermark. */
  heard(highWatermark: number): void {
    if (this.fenced) return
    this.heardHighWatermark = Math.max(this.heardHighWatermark, highWatermark)
  }

  /** The fence is in the WAL's queue, behind everything taken so far. */
  fence(): void {
    this.fencedAt ??= this.next
  }

  /** It is synced, and so is everything before it. */
  fenceDurable(): void {
    assert(this.fencedAt !== undefined, 'what is durable was queued')
    this.durable(this.fencedAt)
    this.fenceIsDurable = true
  }

  /** Undefined before the fence is durable. */
  get answer(): Answer | undefined {
    if (!this.fenceIsDurable) return undefined
    // Not cut to what is durable: more than that heard of is damage, and the coordinator must come to know.
    return { end: this.durableEnd, highWatermark: this.heardHighWatermark }
  }

  /** As the shard's log says. What is here above the end was never acknowledged; what is missing below it is for repair. */
  seal(end: number): void {
    this.sealedAt = end
    this.next = Math.min(this.next, end)
    this.durableEnd = Math.min(this.durableEnd, end)
    this.heardHighWatermark = end
  }
}
