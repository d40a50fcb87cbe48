// What a broker is told at its start: the part of the configuration that it needs, and the ports it runs on.

import { SEGMENT_TIMING, type SegmentTiming } from '../core/segment/types.ts'
import type { NodeId } from '../model/ids.ts'
import type { TopicPolicy } from '../model/policy.ts'
import type { MemberState } from '../model/swim.ts'
import type { Clock } from '../ports/clock.ts'
import type { Compute } from '../ports/compute.ts'
import type { DiskSpace } from '../ports/disk.ts'
import type { Log } from '../ports/log.ts'
import type { Metrics } from '../ports/metrics.ts'
import type { Random } from '../ports/random.ts'
import type { Address } from '../ports/streams.ts'
import type { LogStore } from '../storage/types.ts'
import type { DataLinks } from './data/types.ts'
import type { MetadataLog } from './metadata/types.ts'
import type { Control, Replicas } from './replica/types.ts'

interface BrokerPorts {
  readonly clock: Clock
  readonly random: Random
  readonly compute: Compute
  readonly log: Log
  readonly metrics: Metrics
}

/** Who keeps a part of the metadata, as far as is known. */
interface ShardPlace {
  readonly members: readonly NodeId[]
  readonly leader: NodeId | undefined
}

/** Another broker of the cluster. */
export interface Neighbour {
  readonly nodeId: NodeId
  readonly displayName: string
  readonly hostLabel: string
  readonly rackLabel: string
  readonly state: MemberState
  /** Of its present start, as far as known. */
  readonly boot: number | undefined
  /** Where brokers reach it, where clients do, and where what brokers replicate goes. */
  readonly cluster: Address
  readonly client: Address
  readonly data: Address
}

/** How replicas deal with one another. */
export interface ReplicationOptions {
  readonly segmentTiming: SegmentTiming
  /** How often leases are asked for. */
  readonly leaseSyncMs: number
  /** A replica without news of its segment's high watermark for so long sends readers elsewhere. */
  readonly hwStaleMs: number
}

export const REPLICATION_DEFAULTS: ReplicationOptions = {
  segmentTiming: SEGMENT_TIMING,
  leaseSyncMs: 100,
  hwStaleMs: 2000,
}

export interface BrokerOptions extends ReplicationOptions {
  readonly nodeId: NodeId
  readonly clusterId: string
  readonly displayName: string
  readonly version: string
  /** Where clients are told to connect. */
  readonly advertised: Address
  readonly hostLabel: string
  readonly rackLabel: string
  /** The other brokers of the cluster, as far as they are known. */
  others(): readonly Neighbour[]
  /** How the metadata is spread over them. */
  shards(): readonly ShardPlace[]
  /** The policy of a topic whose creator decides nothing but the number of replicas. */
  readonly defaultPolicy: (replicationFactor: number) => TopicPolicy
  readonly defaultReplicationFactor: number
  readonly retentionCheckMs: number
  readonly producerIdExpiryMs: number
  /** How often this node has started, this start included. */
  readonly boot: number
  /** Bytes of produces that may wait for a range to load or roll, or for room, over the whole broker. */
  readonly heldBytesMax: number
}

export interface BrokerParts {
  /** The links on the data port; what they receive goes to `Broker.received`. Absent: this broker reaches no other. */
  readonly data?: DataLinks
  /** What decides over the replicas here. */
  readonly control: (replicas: Replicas) => Control
  readonly ports: BrokerPorts
  readonly metadata: MetadataLog
  readonly store: LogStore
  /** Of the disk that the data lies on. */
  space(): Promise<DiskSpace>
}
