import type { MetadataView } from '../../core/metadata/types.ts'
import type { NodeId } from '../../model/ids.ts'
import type { Catalog, CatalogSegment } from '../../storage/types.ts'

/** What the log store of a node may ask of the metadata: which segments should be there, those of others are not. */
export function catalogOf(state: MetadataView, node: NodeId): Catalog {
  return {
    topicName: (topicId) => state.topics.get(topicId)?.name,
    segments: () => segmentsOf(state, node),
  }
}

function* segmentsOf(state: MetadataView, node: NodeId): Generator<CatalogSegment> {
  for (const { topicId, ranges } of state.topics.values()) {
    for (const { range, segments } of ranges) {
      for (const { segment, endEntry, replicas } of segments) {
        if (!replicas.includes(node)) continue
        const key = { topicId, range, segment }
        const elsewhere = replicas.length > 1
        yield endEntry === undefined ? { key, elsewhere } : { key, endEntry, elsewhere }
      }
    }
  }
}
