// What a fake broker may do with a partition, and what it tells of the topic. The broker of most tests is alone and leads
// everything; those of a cluster (fake-cluster.ts) know only what they have heard.

import type { ErrorCode } from '../../../src/base/errors.ts'
import { type NodeId, nodeId } from '../../../src/model/ids.ts'
import type { TopicView } from '../../../src/model/metadata.ts'
import type { Address } from '../../../src/ports/streams.ts'
import type { DescribeClusterResponse } from '../../../src/wire/native/describe-cluster.ts'
import type { Redirecting } from '../../../src/wire/native/redirect.ts'
import type { FakeTopic } from './fake-log.ts'
import type { FakeStreams } from './fake-streams.ts'

export interface Refused extends Redirecting {
  readonly error: ErrorCode
}

export type FakeBrokerView = DescribeClusterResponse['brokers'][number]

export interface Ruling {
  readonly node: NodeId
  readonly topics: Map<string, FakeTopic>
  nextProducerId(): number
  view(topic: FakeTopic): TopicView
  brokers(own: Address): readonly FakeBrokerView[]
  /** Why it takes no writes and does not tell the ends; undefined: it does. */
  notLeader(topic: FakeTopic, partition: number): Refused | undefined
  /** How far a reader that stands at `offset` may read here, or why it may not. */
  reads(topic: FakeTopic, partition: number, offset: number): { readonly end: number } | Refused
  /** A batch was stored here: who is to push it? */
  stored(own: FakeStreams): void
}

export function viewOf(topic: FakeTopic, version: number, ranges: TopicView['ranges']): TopicView {
  return {
    name: topic.name,
    topicId: topic.id,
    policy: topic.policy,
    createdAtMs: 0,
    version,
    logStartOffsets: topic.partitions.map((p) => p.start),
    ranges,
  }
}

export function brokerView(
  node: NodeId,
  { host, port }: Address,
  how: Partial<FakeBrokerView> = {},
): FakeBrokerView {
  return {
    nodeId: node,
    nodeNumber: 1,
    displayName: 'fake',
    host,
    clientPort: port,
    state: 'alive',
    role: 'member',
    hostLabel: host,
    rackLabel: '',
    shards: 1,
    leads: 1,
    version: 'fake',
    diskTotalBytes: 1,
    diskFreeBytes: 1,
    diskFull: false,
    ...how,
  }
}

export class LoneRuling implements Ruling {
  readonly node: NodeId = nodeId('0'.repeat(31) + '1')
  readonly topics: Map<string, FakeTopic> = new Map()
  private producerIds = 1

  nextProducerId(): number {
    return this.producerIds++
  }

  view(topic: FakeTopic): TopicView {
    const open = {
      segment: 1,
      state: 'open' as const,
      replicas: [this.node],
      firstOffsets: topic.partitions.map(() => 0),
      openedAtMs: 0,
    }
    const range = {
      range: 0,
      state: 'active' as const,
      firstPartition: 0,
      endPartition: topic.partitions.length,
      parents: [],
      children: [],
      segments: [open],
    }
    return viewOf(topic, 1, [range])
  }

  brokers(own: Address): readonly FakeBrokerView[] {
    return [brokerView(this.node, own)]
  }

  notLeader(): undefined {
    return undefined
  }

  reads(topic: FakeTopic, partition: number, offset: number): { readonly end: number } | Refused {
    const log = topic.partitions[partition]
    if (log === undefined) return { error: 'UNKNOWN_PARTITION' }
    if (offset < log.start || offset > log.end) return { error: 'OFFSET_OUT_OF_RANGE' }
    return { end: log.end }
  }

  stored(own: FakeStreams): void {
    own.pump()
  }
}
