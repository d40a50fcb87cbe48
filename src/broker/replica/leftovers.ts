// What lies here and is not needed any more, by what the metadata says: states and tails that were staged under tokens that did
// not commit, or have done their part; segments that were dropped; copies that others have been given instead.
//
// Only positive evidence counts, from what is committed (PROTOCOLS §5): a segment that the metadata does not know yet may be
// about to commit, and what is not known to be elsewhere stays. A copy is given up only after a fresh read.

import { EastGuardError } from '../../base/errors.ts'
import { openOf, rangeByNumber, segmentByNumber } from '../../core/metadata/lookup.ts'
import type { Range, Segment, Topic } from '../../core/metadata/types.ts'
import type { TopicId } from '../../model/ids.ts'
import { keyText, type SegmentKey } from '../../model/segment-key.ts'
import type { RangeContext } from '../range/context.ts'
import { changedSegments } from '../topics/changed.ts'

interface Staged {
  readonly key: SegmentKey
  readonly token: string
}

export class Leftovers {
  private readonly context: RangeContext
  /** By topic; tails by the segment that they end. */
  private readonly states = new Map<TopicId, Staged[]>()
  private readonly tails = new Map<TopicId, Staged[]>()
  private readonly giving = new Set<string>()
  /** Topics of which nobody could say whether a copy is needed. */
  private readonly again = new Set<TopicId>()

  constructor(context: RangeContext) {
    this.context = context
  }

  /** What earlier starts have left. */
  async look(): Promise<void> {
    const { states, tails } = await this.context.store.staged()
    for (const { key, token } of states) note(this.states, key, token)
    for (const { key, token } of tails) note(this.tails, key, token)
    for (const topic of this.context.metadata.state.topics.values())
      this.topicChanged(topic, undefined)
  }

  /** A package for the segment `key` is stored here. */
  staged(key: SegmentKey, token: string): void {
    note(this.states, key, token)
    note(this.tails, { ...key, segment: key.segment - 1 }, token)
  }

  topicGone(topicId: TopicId): void {
    for (const { key } of this.states.get(topicId) ?? []) this.context.staged.forget(key)
    this.states.delete(topicId)
    this.tails.delete(topicId)
    this.again.delete(topicId)
  }

  topicChanged(topic: Topic, before: Topic | undefined): void {
    this.dropStates(topic)
    this.dropTails(topic)
    if (before !== undefined) this.dropDropped(topic, before)
    const known = this.again.delete(topic.topicId) ? undefined : before
    for (const { range, segment } of changedSegments(topic, known)) {
      this.giveUp(topic, range, segment)
    }
  }

  private dropStates(topic: Topic): void {
    const all = this.states.get(topic.topicId)
    if (all === undefined) return
    const left: Staged[] = []
    const passed = new Map<number, Segment>()
    for (const one of all) {
      const range = rangeByNumber(topic, one.key.range)
      const open = range === undefined ? undefined : openOf(range)
      if (open === undefined || open.segment < one.key.segment) left.push(one)
      else {
        passed.set(one.key.range, open)
        // Whoever goes on with it has done so by now, or asks the disk.
        this.context.staged.forget(one.key)
      }
    }
    if (left.length > 0) this.states.set(topic.topicId, left)
    else this.states.delete(topic.topicId)
    for (const [range, { segment, token }] of passed) {
      const key = { topicId: topic.topicId, range, segment }
      this.done(this.context.store.keepState(key, token), 'a range state')
    }
  }

  private dropTails(topic: Topic): void {
    const all = this.tails.get(topic.topicId)
    if (all === undefined) return
    const left = all.filter(({ key, token }) => this.mayBeNeeded(topic, key, token))
    if (left.length === all.length) return
    if (left.length > 0) this.tails.set(topic.topicId, left)
    else this.tails.delete(topic.topicId)
    for (const one of all) {
      if (left.includes(one)) continue
      this.done(this.context.store.dropTail(one.key, one.token), 'the tail of a segment')
    }
  }

  private mayBeNeeded(topic: Topic, key: SegmentKey, token: string): boolean {
    const range = rangeByNumber(topic, key.range)
    if (range === undefined) return key.range >= topic.nextRange
    const first = range.segments[0]?.segment ?? 0
    const segment = segmentByNumber(range, key.segment)
    if (segment === undefined) return key.segment >= first
    // Open: the proposal that names it may still commit.
    return segment.state === 'open' || segment.tail?.token === token
  }

  /** Retention has dropped segments, on every replica. */
  private dropDropped(topic: Topic, before: Topic): void {
    const { topicId } = topic
    const fell = before.ranges.some((old) => {
      const now = rangeByNumber(topic, old.range)
      if (now === old) return false
      return now === undefined || (now.segments[0]?.segment ?? 0) > (old.segments[0]?.segment ?? 0)
    })
    if (!fell) return
    const dropped = this.context.store.keys(topicId).filter((key) => {
      if (key.range >= topic.nextRange) return false
      const range = rangeByNumber(topic, key.range)
      return range === undefined || key.segment < (range.segments[0]?.segment ?? 0)
    })
    if (dropped.length > 0) this.done(this.context.store.dropSegments(dropped), 'dropped segments')
  }

  /** A sealed segment whose replicas are all proven, without this broker. */
  private giveUp(topic: Topic, { range }: Range, segment: Segment): void {
    const { topicId } = topic
    const key = { topicId, range, segment: segment.segment }
    if (!this.isElsewhere(segment) || this.context.store.find(key) === undefined) return
    const text = keyText(key)
    if (this.giving.has(text)) return
    this.giving.add(text)
    void this.giveUpFresh(key).finally(() => this.giving.delete(text))
  }

  private isElsewhere({ state, digest, replicas }: Segment): boolean {
    return state === 'sealed' && digest !== '' && !replicas.includes(this.context.nodeId)
  }

  private async giveUpFresh(key: SegmentKey): Promise<void> {
    const { metadata, store, log } = this.context
    const { topicId } = key
    try {
      await metadata.fresh({ topicId })
    } catch (error) {
      // Looked at again with the next change of the topic, or at the next start.
      if (!(error instanceof EastGuardError)) throw error
      this.again.add(topicId)
      return
    }
    const topic = metadata.state.topics.get(topicId)
    const range = topic === undefined ? undefined : rangeByNumber(topic, key.range)
    const segment = range === undefined ? undefined : segmentByNumber(range, key.segment)
    if (segment === undefined || !this.isElsewhere(segment)) return
    log.info('a segment that other brokers hold is removed here', { ...key })
    this.done(store.dropSegments([key]), 'a segment that others hold')
  }

  private done(work: Promise<void>, what: string): void {
    work.catch((error: unknown) => {
      // A deleted topic has none. What stays otherwise is found at the next start.
      this.context.log.info(`${what} that is needed no more could not be removed`, { err: error })
    })
  }
}

function note(all: Map<TopicId, Staged[]>, key: SegmentKey, token: string): void {
  const ofTopic = all.get(key.topicId)
  if (ofTopic === undefined) all.set(key.topicId, [{ key, token }])
  else ofTopic.push({ key, token })
}
