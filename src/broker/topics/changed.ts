// What a change of a topic has touched. Values of the metadata are immutable and share all that stayed the same, so what is the
// same object needs no second look: a topic may have very many segments, of which a roll touches two.

import { rangeByNumber, segmentByNumber } from '../../core/metadata/lookup.ts'
import type { Range, Segment, Topic } from '../../core/metadata/types.ts'

interface SegmentOfRange {
  readonly range: Range
  readonly segment: Segment
}

/** Segments that are new or other than they were; of a topic that was not known before, all. */
export function* changedSegments(
  topic: Topic,
  before: Topic | undefined,
): Generator<SegmentOfRange> {
  for (const range of topic.ranges) {
    const old = before === undefined ? undefined : rangeByNumber(before, range.range)
    if (old === range) continue
    for (const segment of range.segments) {
      if (old !== undefined && segmentByNumber(old, segment.segment) === segment) continue
      yield { range, segment }
    }
  }
}
