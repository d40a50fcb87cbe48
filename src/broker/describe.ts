import type { MetadataView } from '../core/metadata/types.ts'
import type { NodeId } from '../model/ids.ts'
import type { DiskSpace } from '../ports/disk.ts'
import type { DescribeClusterResponse } from '../wire/native/describe-cluster.ts'
import type { BrokerOptions } from './options.ts'

export function describeCluster(
  options: BrokerOptions,
  state: MetadataView,
  space: DiskSpace,
): DescribeClusterResponse {
  const numberOf = (node: NodeId): number => state.nodes.get(node)?.number ?? 0
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
        nodeNumber: numberOf(options.nodeId),
        displayName: options.displayName,
        host: options.advertised.host,
        clientPort: options.advertised.port(),
        alive: true,
        version: options.version,
        diskTotalBytes: space.totalBytes,
        diskFreeBytes: space.freeBytes,
      },
      ...options.others().map(({ nodeId, displayName, client }) => ({
        nodeId,
        nodeNumber: numberOf(nodeId),
        displayName,
        host: client.host,
        clientPort: client.port,
        alive: true,
        version: '',
        diskTotalBytes: 0,
        diskFreeBytes: 0,
      })),
    ],
  }
}
