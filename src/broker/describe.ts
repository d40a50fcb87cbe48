import type { MetadataView } from '../core/metadata/types.ts'
import type { DiskSpace } from '../ports/disk.ts'
import type { DescribeClusterResponse } from '../wire/native/describe-cluster.ts'
import type { BrokerOptions } from './options.ts'

export function describeCluster(
  options: BrokerOptions,
  state: MetadataView,
  space: DiskSpace,
): DescribeClusterResponse {
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
        diskTotalBytes: space.totalBytes,
        diskFreeBytes: space.freeBytes,
      },
    ],
  }
}
