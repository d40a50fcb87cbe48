// A shard that this broker leads, for as long as it does in one term: whose leases it has confirmed, and which brokers lead
// open segments in it, so that a leader that asks for its lease no more is noticed without a look at every segment.

import type { Topic } from '../../core/metadata/types.ts'
import type { NodeId, TopicId } from '../../model/ids.ts'

interface Leading {
  /** Open segments. */
  count: number
  /** A new coordinator counts as if it had confirmed everyone at its election, and a new leader is confirmed by the entry that made it one. */
  readonly sinceMs: number
  confirmedMs: number
  lapsed: boolean
}

export class LedShard {
  readonly shard: number
  readonly term: number
  /** No earlier than that: leases that its predecessor confirmed are counted from here. */
  readonly electedAtMs: number
  private readonly leading = new Map<NodeId, Leading>()
  /** Of each topic, who leads its open segments. */
  private readonly leaders = new Map<TopicId, readonly NodeId[]>()

  constructor(shard: number, term: number, topics: Iterable<Topic>, nowMs: number) {
    this.shard = shard
    this.term = term
    this.electedAtMs = nowMs
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
    else this.leading.set(node, { count: 1, sinceMs: nowMs, confirmedMs: nowMs, lapsed: false })
  }

  private uncount(node: NodeId): void {
    const leading = this.leading.get(node)
    if (leading !== undefined && --leading.count === 0) this.leading.delete(node)
  }

  confirmed(node: NodeId, nowMs: number): void {
    const leading = this.leading.get(node)
    if (leading === undefined) return
    leading.confirmedMs = nowMs
    leading.lapsed = false
  }

  /** When it last may have been told that it may accept. */
  confirmedMs(node: NodeId): number {
    return this.leading.get(node)?.confirmedMs ?? this.electedAtMs
  }

  lapsed(node: NodeId): boolean {
    return this.leading.get(node)?.lapsed ?? false
  }

  /** Whether the lease of another leader has run out since the last look. */
  lapse(nowMs: number, graceMs: number): boolean {
    let found = false
    for (const leading of this.leading.values()) {
      if (leading.lapsed || nowMs - leading.confirmedMs < graceMs) continue
      leading.lapsed = true
      found = true
    }
    return found
  }
}

function leadersOf(topic: Topic): readonly NodeId[] {
  return topic.active.flatMap(({ segments }) => segments.at(-1)?.replicas[0] ?? [])
}
