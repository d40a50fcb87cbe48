// What the control of segments is made with: what it sees of the metadata, of the other brokers and of this one.

import type { SegmentTiming } from '../../core/segment/types.ts'
import type { NodeId } from '../../model/ids.ts'
import type { SegmentKey } from '../../model/segment-key.ts'
import type { Clock } from '../../ports/clock.ts'
import type { Log } from '../../ports/log.ts'
import type { Metrics } from '../../ports/metrics.ts'
import type { Random } from '../../ports/random.ts'
import type { SegmentMessage } from '../../wire/peer/segments.ts'
import type { ShardLeader } from '../../wire/peer/types.ts'
import type { MetadataLog } from '../metadata/types.ts'
import type { Replicas } from '../replica/types.ts'
import type { Shards } from '../shards/shards.ts'

/** A broker of the cluster, as this one sees it now. */
export interface SeenBroker {
  readonly node: NodeId
  readonly hostLabel: string
  readonly rackLabel: string
  /** SWIM does not hold it dead or left. */
  readonly alive: boolean
  /** Of its present start, as far as known. */
  readonly boot: number | undefined
}

interface ControlPorts {
  readonly clock: Clock
  readonly random: Random
  readonly log: Log
  readonly metrics: Metrics
}

export interface ControlOptions {
  readonly ports: ControlPorts
  readonly nodeId: NodeId
  readonly boot: number
  readonly metadata: MetadataLog
  readonly shards: Pick<Shards, 'count' | 'leads' | 'holdsLease' | 'copyOf'> & {
    leaderOf(shard: number): ShardLeader | undefined
  }
  readonly timing: SegmentTiming
  /** How often leases are asked for. */
  readonly leaseSyncMs: number
  /** All that are known, this one among them. */
  brokers(): readonly SeenBroker[]
  /** Age of the oldest write or sync of this broker's log store that is under way; 0: none is. */
  oldestSyncMs(): number
  /** Writes are refused here for want of space. */
  diskFull(): boolean
  /** To another broker, in order, unless it is lost on the way. */
  send(to: NodeId, messages: readonly SegmentMessage[]): void
  /** What this broker holds. */
  readonly replicas: Replicas
}

/** A range that is not well, for people. */
export interface RangeTrouble {
  readonly key: SegmentKey
  readonly text: string
  /** Nothing can be written before a replica returns, or an operator forces an end, though all brokers may be there. */
  readonly stuck?: boolean
}
