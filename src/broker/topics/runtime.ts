// What this broker keeps running for one topic: a copy of each active range that it has a replica of, and its part in it, found
// by partition. Both follow from the metadata and from nothing else.

import { fromHex } from '../../base/bytes.ts'
import { activeRange, openOf, rangeByNumber, segmentByNumber } from '../../core/metadata/lookup.ts'
import type { Range, Segment, Topic } from '../../core/metadata/types.ts'
import { isSystemTopic } from '../../model/topic-name.ts'
import type { RangeContext } from '../range/context.ts'
import { type Fault, RangeCopy } from '../range/copy.ts'
import { RangeFollower } from '../range/follower.ts'
import { RangeLeader } from '../range/leader.ts'

export class TopicRuntime {
  topic: Topic
  readonly idBytes: Uint8Array
  /** Written by the broker itself only. */
  readonly system: boolean
  deleted = false
  private readonly copies = new Map<number, RangeCopy>()
  private readonly context: RangeContext
  /** The leader of each partition: the produce path's one lookup. */
  private leaderBy: (RangeLeader | undefined)[] = []
  private copyBy: (RangeCopy | undefined)[] = []

  /** `restarted`: the topic was there before this broker's start, so that its open segments are fenced. */
  constructor(context: RangeContext, topic: Topic, restarted: boolean) {
    this.context = context
    this.topic = topic
    this.idBytes = fromHex(topic.topicId)
    this.system = isSystemTopic(topic.name)
    this.arrange(restarted)
  }

  leaderOf(partition: number): RangeLeader | undefined {
    return this.leaderBy[partition]
  }

  copyOf(partition: number): RangeCopy | undefined {
    return this.copyBy[partition]
  }

  copyOfRange(range: number): RangeCopy | undefined {
    return this.copies.get(range)
  }

  *allLeaders(): Generator<RangeLeader> {
    for (const { role } of this.copies.values()) if (role instanceof RangeLeader) yield role
  }

  update(topic: Topic): void {
    this.topic = topic
    this.arrange(false)
  }

  private arrange(restarted: boolean): void {
    const { topic } = this
    let changed = topic.policy.partitions !== this.leaderBy.length
    for (const range of topic.active) {
      const copy = this.copies.get(range.range)
      const open = openOf(range)
      if (open === undefined) continue
      if (copy === undefined) changed = this.begin(range, open, restarted) || changed
      else changed = this.follow(copy, range, open) || changed
    }
    for (const [number, copy] of this.copies) {
      if (activeRange(topic, copy.range.firstPartition)?.range === number) continue
      this.leave(copy, rangeByNumber(topic, number))
      changed = true
    }
    if (changed) this.index()
  }

  private begin(range: Range, open: Segment, restarted: boolean): boolean {
    if (!open.replicas.includes(this.context.nodeId)) return false
    const copy = new RangeCopy(this.context, this.topic, range, restarted || open.token !== '')
    if (!restarted && copy.fenced) copy.fenced = this.isOld(copy, open)
    this.copies.set(range.range, copy)
    this.takePart(copy)
    return true
  }

  /** A range that this broker has had no part in until now: what it staged for it in this start goes on. */
  private isOld({ key }: RangeCopy, { token }: Segment): boolean {
    return this.context.store.find(key) !== undefined || !this.context.staged.has(key, token)
  }

  /** The same range as before; perhaps another segment is open now. */
  private follow(copy: RangeCopy, range: Range, open: Segment): boolean {
    const before = copy.open.segment
    if (!copy.update(this.topic, range)) {
      if (copy.role instanceof RangeLeader) copy.role.learned()
      return false
    }
    const end = segmentByNumber(range, before)?.endEntry
    if (copy.role instanceof RangeLeader && end !== undefined) copy.role.sealed(end)
    this.context.counters.rolls.add(1)
    if (!open.replicas.includes(this.context.nodeId)) {
      this.copies.delete(range.range)
      copy.stop('gone', this.notLedHere(range, open))
      return true
    }
    return this.takePart(copy)
  }

  /** True: it is another part than before. */
  private takePart(copy: RangeCopy): boolean {
    const { role, open } = copy
    const leads = open.replicas[0] === this.context.nodeId
    this.context.census.note(copy, leads)
    if (leads && role instanceof RangeLeader) {
      role.opened()
      return false
    }
    if (!leads && role instanceof RangeFollower) {
      role.opened()
      return false
    }
    role.ended(this.notLedHere(copy.range, open))
    copy.role = leads ? new RangeLeader(copy) : new RangeFollower(copy)
    // What a follower has folded is what the leader's first entry is checked against.
    if (!leads && !copy.fenced) copy.ensureLoaded()?.catch(() => {})
    return true
  }

  /** The range is active no more: split, merged. */
  private leave(copy: RangeCopy, range: Range | undefined): void {
    const end = range === undefined ? undefined : segmentByNumber(range, copy.key.segment)?.endEntry
    if (end !== undefined) copy.context.seals.seal(copy.key, copy.log, end)
    this.copies.delete(copy.range.range)
    const { range: number } = copy.range
    const message = `range ${number} of ${this.topic.name} is not active any more`
    copy.stop('gone', { code: 'NOT_LEADER', message })
  }

  private index(): void {
    const length = this.topic.policy.partitions
    this.leaderBy = Array.from({ length })
    this.copyBy = Array.from({ length })
    for (const copy of this.copies.values()) {
      const { firstPartition, endPartition } = copy.range
      this.copyBy.fill(copy, firstPartition, endPartition)
      if (copy.role instanceof RangeLeader) {
        this.leaderBy.fill(copy.role, firstPartition, endPartition)
      }
    }
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
    for (const copy of this.copies.values()) copy.stop('gone', { code: 'UNKNOWN_TOPIC', message })
  }

  stop(): void {
    for (const copy of this.copies.values()) {
      copy.stop('gone', { code: 'BROKER_STOPPED', message: 'the broker stopped' })
    }
  }

  private notLedHere({ range }: Range, { segment, replicas }: Segment): Fault {
    const [leader] = replicas
    return {
      code: 'NOT_LEADER',
      message: `range ${range} of topic ${this.topic.name} is led by node ${leader ?? 'none'} now`,
      redirect: { segment, brokers: this.context.reachable(leader === undefined ? [] : [leader]) },
    }
  }
}
