import type { MetadataView } from '../../core/metadata/types.ts'
import type { Catalog, SegmentKey } from '../../storage/types.ts'

/** What the log store may ask of the metadata. */
export function catalogOf(state: MetadataView): Catalog {
  return {
    topicName: (topicId) => state.topics.get(topicId)?.name,
    segments: () => allSegments(state),
  }
}

function* allSegments(
  state: MetadataView,
): Generator<{ readonly key: SegmentKey; readonly endEntry?: number }> {
  for (const { topicId, ranges } of state.topics.values()) {
    for (const { range, segments } of ranges) {
      for (const { segment, endEntry } of segments) {
        const key = { topicId, range, segment }
        yield endEntry === undefined ? { key } : { key, endEntry }
      }
    }
  }
}
