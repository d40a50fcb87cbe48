// What this broker keeps running for one topic: a leader per active range that it leads, found by partition.

import { fromHex } from '../../base/bytes.ts'
import { activeRange, openOf } from '../../core/metadata/lookup.ts'
import type { Range, Segment, Topic } from '../../core/metadata/types.ts'
import { isSystemTopic } from '../../model/topic-name.ts'
import type { RangeContext } from '../range/context.ts'
import { RangeLeader } from '../range/leader.ts'

export class TopicRuntime {
  topic: Topic
  readonly idBytes: Uint8Array
  /** Written by the broker itself only. */
  readonly system: boolean
  deleted = false
  private readonly leaders = new Map<number, RangeLeader>()
  private readonly context: RangeContext
  /** The leader of each partition: the produce path's one lookup. */
  private byPartition: (RangeLeader | undefined)[] = []

  /** `restarted`: the topic was there before this broker's start, so that its open segments are fenced. */
  constructor(context: RangeContext, topic: Topic, restarted: boolean) {
    this.context = context
    this.topic = topic
    this.idBytes = fromHex(topic.topicId)
    this.system = isSystemTopic(topic.name)
    this.arrange(restarted)
  }

  leaderOf(partition: number): RangeLeader | undefined {
    return this.byPartition[partition]
  }

  allLeaders(): IterableIterator<RangeLeader> {
    return this.leaders.values()
  }

  update(topic: Topic): void {
    this.topic = topic
    this.arrange(false)
  }

  private arrange(restarted: boolean): void {
    const { topic } = this
    let widened = topic.policy.partitions !== this.byPartition.length
    for (const range of topic.active) {
      if (!this.leadsHere(range)) continue
      const leader = this.leaders.get(range.range)
      if (leader !== undefined) leader.update(topic, range)
      else {
        this.leaders.set(range.range, new RangeLeader(this.context, topic, range, restarted))
        widened = true
      }
    }
    for (const [number, leader] of this.leaders) {
      const active = activeRange(topic, leader.range.firstPartition)
      if (active?.range === number && this.leadsHere(active)) continue
      this.leaders.delete(number)
      leader.end('gone', 'NOT_LEADER', `this broker leads range ${number} of ${topic.name} no more`)
      widened = true
    }
    if (!widened) return
    this.byPartition = Array.from({ length: topic.policy.partitions })
    for (const leader of this.leaders.values()) {
      const { firstPartition, endPartition } = leader.range
      this.byPartition.fill(leader, firstPartition, endPartition)
    }
  }

  private leadsHere(range: Range): boolean {
    return openOf(range)?.replicas[0] === this.context.nodeId
  }

  /** The open segment that the partition is written to; undefined when there is no such partition. */
  openSegment(partition: number): Segment | undefined {
    const range = activeRange(this.topic, partition)
    return range === undefined ? undefined : openOf(range)
  }

  /** Everybody who waits here is told that the topic is gone. */
  delete(): void {
    this.deleted = true
    const message = `the topic ${this.topic.name} was deleted`
    for (const leader of this.leaders.values()) leader.end('gone', 'UNKNOWN_TOPIC', message)
  }

  stop(): void {
    for (const leader of this.leaders.values()) {
      leader.end('gone', 'BROKER_STOPPED', 'the broker stopped')
    }
  }
}
