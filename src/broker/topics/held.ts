// A topic as it is shown: what the metadata says, and of each segment what this broker has of it.

import type { Topic } from '../../core/metadata/types.ts'
import type { SegmentView, TopicView } from '../../model/metadata.ts'
import type { LogStore } from '../../storage/types.ts'

export function withHeld(topic: Topic, store: Pick<LogStore, 'find'>): TopicView {
  const { topicId } = topic
  const held = (range: number, view: SegmentView): SegmentView => {
    const log = store.find({ topicId, range, segment: view.segment })
    return log === undefined
      ? view
      : { ...view, held: { entries: log.durableEnd, bytes: log.bytes } }
  }
  return {
    ...topic,
    ranges: topic.ranges.map((range) => ({
      ...range,
      segments: range.segments.map((segment) => held(range.range, segment)),
    })),
  }
}
