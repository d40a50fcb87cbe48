// What the metadata knows of segments, for whoever has to tell what is missing of them, and the state that a range goes on
// with when its own is lost.

import { rangeByNumber } from '../../core/metadata/lookup.ts'
import type { MetadataView, Range, Segment, Topic } from '../../core/metadata/types.ts'
import { RangeState } from '../../core/producers/range-state.ts'
import type { NodeId } from '../../model/ids.ts'
import type { SegmentFacts } from '../../storage/repair/types.ts'

/** Every segment of which this node has the only copy. Of others what is damaged here is copied again, and nothing is lost. */
export function segmentFacts(state: MetadataView, node: NodeId): readonly SegmentFacts[] {
  const found: SegmentFacts[] = []
  for (const topic of state.topics.values()) {
    for (const range of topic.ranges) {
      for (const [at, segment] of range.segments.entries()) {
        if (segment.replicas.length > 1 || !segment.replicas.includes(node)) continue
        found.push({
          key: { topicId: topic.topicId, range: range.range, segment: segment.segment },
          topicName: topic.name,
          firstPartition: range.firstPartition,
          firstOffsets: segment.firstOffsets,
          endEntry: segment.endEntry,
          endOffsets:
            range.segments[at + 1]?.firstOffsets ?? childrensOffsets(topic, range, segment),
          token: segment.token,
        })
      }
    }
  }
  return found
}

/** Where the children of a split or merged range began; undefined while it is active, or when they are not kept. */
function childrensOffsets(
  topic: Topic,
  range: Range,
  segment: Segment,
): readonly number[] | undefined {
  if (range.children.length === 0) return undefined
  const offsets = segment.firstOffsets.slice()
  for (const number of range.children) {
    const child = rangeByNumber(topic, number)
    const first = child?.segments[0]
    if (child === undefined || first === undefined) return undefined
    for (let p = range.firstPartition; p < range.endPartition; p++) {
      const offset = first.firstOffsets[p - child.firstPartition]
      if (p >= child.firstPartition && offset !== undefined) {
        offsets[p - range.firstPartition] = offset
      }
    }
  }
  return offsets
}

/** The range state at the start of a segment, knowing no producer. */
export function freshState({ firstPartition, firstOffsets }: SegmentFacts): Uint8Array {
  return new RangeState(firstPartition, firstOffsets, Number.MAX_SAFE_INTEGER).encode()
}
