// What a whole broker stands on, what it is told, and what its owner gets back.

import type { MembersOptions } from '../broker/members/types.ts'
import type { BrokerOptions, Neighbour, ReplicationOptions } from '../broker/options.ts'
import type { Shards } from '../broker/shards/shards.ts'
import type { ShardTiming } from '../broker/shards/types.ts'
import type { NativeDoorSettings } from '../doors/native/settings.ts'
import type { ClusterId, NodeId } from '../model/ids.ts'
import type { Clock } from '../ports/clock.ts'
import type { Compute } from '../ports/compute.ts'
import type { Datagrams } from '../ports/datagrams.ts'
import type { Disk } from '../ports/disk.ts'
import type { Http } from '../ports/http.ts'
import type { Log } from '../ports/log.ts'
import type { Metrics } from '../ports/metrics.ts'
import type { Random } from '../ports/random.ts'
import type { Secrets } from '../ports/secrets.ts'
import type { Address, Streams } from '../ports/streams.ts'
import type { LogStoreOptions } from '../storage/types.ts'

export interface ServerPorts {
  readonly clock: Clock
  readonly random: Random
  readonly compute: Compute
  readonly secrets: Secrets
  /** The data directory. */
  readonly disk: Disk
  readonly streams: Streams
  readonly datagrams: Datagrams
  readonly http: Http
  readonly log: Log
  readonly metrics: Metrics
}

/** By the names of the configuration, docs/reference/config.md. */
export interface ServerSettings
  extends LogStoreOptions,
    NativeDoorSettings,
    ReplicationOptions,
    Pick<
      BrokerOptions,
      | 'displayName'
      | 'defaultPolicy'
      | 'defaultReplicationFactor'
      | 'retentionCheckMs'
      | 'producerIdExpiryMs'
    > {
  readonly host: string
  /** Brokers with the same one are taken to fail together. */
  readonly hostLabel: string
  readonly advertiseHost: string
  readonly clientPort: number
  /** Opened only by a broker that has others. */
  readonly dataPort: number
  readonly httpPort: number
  readonly drainTimeoutMs: number
  /** A file of the metadata journal; when one is full a snapshot frees those before it. */
  readonly journalFileBytes: number
  /** A power of two; counts when this broker founds its cluster. */
  readonly metadataShards: number
  readonly metadataTiming: ShardTiming
  /** Entries of each shard that stay in memory behind a snapshot; default: as many as seldom anybody lacks. */
  readonly metadataEntriesKept?: number
  /** How it finds the others and they it. Absent: it stays alone, or is told who they are. */
  readonly membership?: MembershipSettings
  /** Told by hand, for tests: who the others are, and what becomes of the shards' members is decided there too. */
  readonly cluster?: ClusterSettings
}

type SwimChanges = NonNullable<MembersOptions['settings']>

export interface MembershipSettings {
  /** UDP and TCP. */
  readonly port: number
  /** Cluster addresses; without any but its own a new broker founds a cluster. */
  readonly seeds: readonly Address[]
  /** Racks fail together. Empty: not known. */
  readonly rackLabel: string
  /** Brokers that hold each metadata shard, if there are so many. */
  readonly metadataReplicationFactor: number
  /** Tokens of each broker on the ring. */
  readonly vnodesPerNode: number
  /** A view of the brokers must have stood still for so long before the members of shards follow it. */
  readonly stableMs: number
  /** A broker that has been gone for longer loses its place in the shards. */
  readonly replaceMs: number
  readonly swim?: SwimChanges
  /** What brokers say to one another is sealed with the first; all of them open. None: it goes in the clear. */
  readonly clusterKeys?: readonly Uint8Array[]
}

interface ClusterSettings {
  readonly port: number
  /** The cluster that a new broker becomes part of; absent: it founds one. */
  readonly joins?: ClusterId
  /** All brokers of the cluster that are known; this one may be among them. Asked again and again. */
  neighbours(): readonly Neighbour[]
}

/** The shards of a broker, as far as its owner may have to do with them. */
type ShardsControl = Pick<
  Shards,
  'count' | 'view' | 'leaderOf' | 'change' | 'handOver' | 'copyOf' | 'committed'
>

export interface BrokerHooks {
  /**
   * The broker cannot go on: the disk failed and nothing more is acknowledged, or other brokers have refused the data
   * directory as an older copy (DATA_DIR_MISMATCH). The process should end, see app/exit-codes.ts. Called at most once.
   */
  onFatal(error: Error): void
  /** It was removed from its cluster and holds no shard and no segment any more: to be stopped. Without it nobody looks. */
  onRemoved?(): void
  /** The broker takes part in the metadata, before it is up to date and long before it is ready. */
  onMetadata?(part: {
    readonly nodeId: NodeId
    readonly cluster: Address | undefined
    readonly shards: ShardsControl
  }): void
}

export interface RunningBroker {
  /** The native door, with the port that was chosen when 0 was asked for. */
  readonly client: Address
  /** Health, readiness and metrics; undefined when that door is off. */
  readonly http: Address | undefined
  /** Where other brokers reach it, and where what they replicate goes; undefined when it stays alone. */
  readonly cluster: Address | undefined
  readonly data: Address | undefined
  readonly shards: ShardsControl
  readonly nodeId: NodeId
  readonly clusterId: ClusterId
  /** Stops taking requests, answers those in flight within the drain time, flushes and closes. */
  stop(): Promise<void>
}
