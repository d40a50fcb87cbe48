// A shard that this broker leads, for as long as it does in one term: which brokers lead open segments in it, so that a leader
// that asks for its leases no more is noticed without a look at every segment.

import type { Topic } from '../../core/metadata/types.ts'
import type { LeaseDesk } from '../../core/segment/lease-desk.ts'
import type { SegmentTiming } from '../../core/segment/types.ts'
import type { NodeId, TopicId } from '../../model/ids.ts'

interface Leading {
  /** Open segments. */
  count: number
  /** Who has only just begun to lead may not have asked yet. */
  readonly sinceMs: number
  lapsed: boolean
}

interface LedShardOptions {
  readonly shard: number
  readonly term: number
  /** All of the shard. */
  readonly topics: Iterable<Topic>
  readonly desk: LeaseDesk
  /** No earlier than its election. */
  readonly nowMs: number
}

export class LedShard {
  readonly shard: number
  readonly term: number
  private readonly desk: LeaseDesk
  private readonly leading = new Map<NodeId, Leading>()
  /** Of each topic, who leads its open segments. */
  private readonly leaders = new Map<TopicId, readonly NodeId[]>()

  constructor({ shard, term, topics, desk, nowMs }: LedShardOptions) {
    this.shard = shard
    this.term = term
    this.desk = desk
    desk.leads(shard, nowMs)
    for (const topic of topics) this.changed(topic.topicId, topic, nowMs)
  }

  /** `topic` undefined: it was deleted. */
  changed(topicId: TopicId, topic: Topic | undefined, nowMs: number): void {
    const before = this.leaders.get(topicId) ?? []
    const now = topic === undefined ? [] : leadersOf(topic)
    if (topic === undefined) this.leaders.delete(topicId)
    else this.leaders.set(topicId, now)
    // Who comes first and who goes afterwards: who stays is not forgotten in between.
    for (const node of now) this.count(node, nowMs)
    for (const node of before) this.uncount(node)
  }

  private count(node: NodeId, nowMs: number): void {
    const leading = this.leading.get(node)
    if (leading !== undefined) leading.count++
    else this.leading.set(node, { count: 1, sinceMs: nowMs, lapsed: false })
  }

  private uncount(node: NodeId): void {
    const leading = this.leading.get(node)
    if (leading !== undefined && --leading.count === 0) this.leading.delete(node)
  }

  /** From when its lease is counted. */
  confirmedMs(node: NodeId): number {
    const { sinceMs = 0 } = this.leading.get(node) ?? {}
    return Math.max(sinceMs, this.desk.lastConfirmedMs(this.shard, node))
  }

  /** Everyone's lease is counted from now: who asked meanwhile was not heard. */
  woke(nowMs: number): void {
    this.desk.leads(this.shard, nowMs)
  }

  lapsed(node: NodeId): boolean {
    return this.leading.get(node)?.lapsed ?? false
  }

  /** Whether the lease of another leader has run out since the last look. */
  lapse(nowMs: number, { leaseGraceMs }: SegmentTiming): boolean {
    let found = false
    for (const [node, leading] of this.leading) {
      const lapsed = nowMs - this.confirmedMs(node) >= leaseGraceMs
      if (lapsed && !leading.lapsed) found = true
      leading.lapsed = lapsed
    }
    return found
  }
}

function leadersOf(topic: Topic): readonly NodeId[] {
  return topic.active.flatMap(({ segments }) => segments.at(-1)?.replicas[0] ?? [])
}
