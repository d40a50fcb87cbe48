// The segments that have data here, by key and by topic: dropping one topic must not cost a walk over all.

import type { TopicId } from '../model/ids.ts'
import { keyText, type SegmentKey } from '../model/segment-key.ts'
import type { StoredSegment } from './segment/types.ts'

export class SegmentMap {
  private readonly byTopic = new Map<TopicId, Map<string, StoredSegment>>()

  get(key: SegmentKey): StoredSegment | undefined {
    return this.byTopic.get(key.topicId)?.get(keyText(key))
  }

  set(segment: StoredSegment): void {
    const { key } = segment
    const own = this.byTopic.get(key.topicId) ?? new Map<string, StoredSegment>()
    this.byTopic.set(key.topicId, own.set(keyText(key), segment))
  }

  delete(key: SegmentKey): void {
    const own = this.byTopic.get(key.topicId)
    own?.delete(keyText(key))
    if (own?.size === 0) this.byTopic.delete(key.topicId)
  }

  /** A copy: it may change while it is walked. */
  ofTopic(topicId: TopicId): readonly StoredSegment[] {
    return [...(this.byTopic.get(topicId)?.values() ?? [])]
  }

  topics(): Iterable<TopicId> {
    return this.byTopic.keys()
  }

  *all(): Generator<StoredSegment> {
    for (const own of this.byTopic.values()) yield* own.values()
  }
}
