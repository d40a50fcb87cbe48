import type { MetadataView } from '../core/metadata/types.ts'
import type { BrokerView } from '../model/metadata.ts'
import type { BrokerOptions } from './options.ts'

export interface DescribedCluster {
  readonly clusterId: string
  readonly topics: number
  readonly ranges: number
  readonly segments: number
  readonly brokers: readonly (BrokerView & { readonly version: string })[]
}

export function describeCluster(options: BrokerOptions, state: MetadataView): DescribedCluster {
  let ranges = 0
  let segments = 0
  for (const topic of state.topics.values()) {
    ranges += topic.active.length
    for (const range of topic.ranges) segments += range.segments.length
  }
  return {
    clusterId: options.clusterId,
    topics: state.topics.size,
    ranges,
    segments,
    brokers: [
      {
        nodeId: options.nodeId,
        nodeNumber: 1,
        displayName: options.displayName,
        host: options.advertised.host,
        clientPort: options.advertised.port(),
        alive: true,
        version: options.version,
      },
    ],
  }
}
