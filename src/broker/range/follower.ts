// A follower of one active range: takes the entries that the segment's leader has numbered, in their order and no other, folds
// them, and tells the leader how far they are durable.
//
//   append from the leader ──> checked: my leader, my next entry, the partition's next offset ──> WAL, fold
//     durable ──> acknowledged, once per sync       high watermark heard ──> readers here see more
//
// What may be taken and acknowledged is core/segment's to say (SegmentFollower).

import { SegmentFollower } from '../../core/segment/follower.ts'
import { ENVELOPE_BYTES, type Entry, type SegmentPlace } from '../../model/entry.ts'
import type { NodeId } from '../../model/ids.ts'
import { placeOfKey } from '../../model/segment-key.ts'
import { ACKS_NONE } from '../sinks.ts'
import type { RangeContext } from './context.ts'
import type { RangeCopy, RangeRole } from './copy.ts'

/** The connection on which the leader's stream is open. */
export interface FollowerEnds {
  /** When the leader last said that nothing is new but what it told. */
  readonly heardAtMs: number
  /** More may be acknowledged than before. */
  acked(follower: RangeFollower): void
  /** What still comes on its stream is of a segment that has ended, or of nobody's concern any more. */
  left(follower: RangeFollower): void
}

export class RangeFollower implements RangeRole {
  readonly copy: RangeCopy
  readonly context: RangeContext
  segment: SegmentFollower
  /** Of the segment. */
  place: SegmentPlace
  /** While the leader's stream is open. */
  private ends: FollowerEnds | undefined
  /** When the leader was last heard of on a stream that is over; undefined: not since this broker's start. */
  private heardBeforeMs: number | undefined
  /** Of the broker that leads, when it first opened its stream. */
  leaderBoot: number | undefined
  /** Came, and there was no room for it yet. */
  private parked: Entry[] = []

  constructor(copy: RangeCopy) {
    this.copy = copy
    this.context = copy.context
    this.segment = this.makeSegment()
    this.place = placeOfKey(copy.key)
    // Where the segment begins all before it is committed: that is news, too.
    if (!copy.fenced) this.heardBeforeMs = copy.context.clock.monotonic()
  }

  private makeSegment(): SegmentFollower {
    const { copy, context } = this
    const log = copy.log ?? context.store.find(copy.key)
    return new SegmentFollower({
      leader: copy.open.replicas[0] as NodeId,
      next: log?.durableEnd ?? 0,
      fencedByRestart: copy.fenced,
      highWatermark: log?.knownHighWatermark ?? 0,
    })
  }

  /** The copy's open segment is one that this broker follows, and it was not followed before. */
  opened(): void {
    this.leave()
    this.leaderBoot = undefined
    this.segment = this.makeSegment()
    this.place = placeOfKey(this.copy.key)
  }

  loaded(): void {}

  /** When the leader was last heard of; undefined: not since this broker's start. */
  get heardAtMs(): number | undefined {
    return this.ends?.heardAtMs ?? this.heardBeforeMs
  }

  /** The leader's stream begins, or begins anew, at the next entry. */
  begin(ends: FollowerEnds): SegmentFollower {
    this.ends = ends
    this.parked = []
    return this.segment
  }

  /** Entries of an append, in order. Answers why they are refused, which ends the stream. */
  take(from: NodeId, entries: readonly Entry[]): { entryNumber: number; why: string } | undefined {
    let taken = false
    for (const [i, entry] of entries.entries()) {
      if (this.parked.length > 0) {
        this.parked.push(...entries.slice(i))
        break
      }
      const refusal = this.takeOne(from, entry)
      if (refusal === 'wait') {
        this.parked.push(...entries.slice(i))
        this.context.parked.add(this)
        break
      }
      if (refusal !== undefined) {
        if (taken) this.context.store.commit()
        return { entryNumber: entry.entryNumber, why: refusal }
      }
      taken = true
    }
    if (taken) this.context.store.commit()
    return undefined
  }

  /** There is room again. */
  resume(): void {
    const { parked } = this
    this.parked = []
    const refused = this.take(this.segment.leader, parked)
    if (refused !== undefined) this.onRefused(refused.entryNumber, refused.why)
  }

  /** Something that had been parked is refused. */
  onRefused: (entryNumber: number, why: string) => void = () => {}

  private takeOne(from: NodeId, entry: Entry): string | undefined {
    const { copy, segment } = this
    const { state } = copy
    if (state === undefined || copy.status !== 'live') return 'the range is not served here'
    const checked = segment.check(from, entry.entryNumber)
    if (checked !== 'take') return checked.refuse
    const { partition, baseOffset } = entry
    if (partition < copy.range.firstPartition || partition >= copy.range.endPartition) {
      return `partition ${partition} is not in the range`
    }
    const next = state.nextOffset(partition)
    if (baseOffset !== next) {
      return `offset ${baseOffset} of partition ${partition} came, ${next} would be next`
    }
    const room = this.context.store.room(entry.batch.length + ENVELOPE_BYTES)
    if (room === 'wait') return 'wait'
    if (room === 'full') return 'its disk is full'
    copy.append(entry, undefined, 0, ACKS_NONE)
    segment.took()
    return undefined
  }

  durable(): void {
    const { copy, segment } = this
    if (copy.log === undefined) return
    const before = segment.ackable
    segment.durable(copy.log.durableEnd)
    if (segment.ackable > before) this.ends?.acked(this)
    copy.commitTo(segment.highWatermark)
  }

  /** What the leader says of its high watermark. */
  heard(highWatermark: number): void {
    this.segment.heard(highWatermark)
    this.copy.commitTo(this.segment.highWatermark)
  }

  ended(): void {
    this.leave()
  }

  private leave(): void {
    const { ends } = this
    ends?.left(this)
    if (ends !== undefined) this.over(ends)
    this.parked = []
  }

  /** The stream is over. */
  over(ends: FollowerEnds): void {
    if (this.ends !== ends) return
    this.heardBeforeMs = ends.heardAtMs
    this.ends = undefined
  }
}
