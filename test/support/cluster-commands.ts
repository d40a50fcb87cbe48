// What passes between a test and the brokers of its cluster (cluster-broker-main.ts), by Node's channel between a process and
// its parent.

import type { Neighbour } from '../../src/broker/options.ts'
import type { ShardView } from '../../src/broker/shards/types.ts'
import type { MembersChange } from '../../src/core/raft/types.ts'
import type { ClusterId, NodeId } from '../../src/model/ids.ts'
import type { Refusal } from '../../src/model/raft.ts'
import type { Address } from '../../src/ports/streams.ts'

/** A broker's first word. */
export interface ClusterStart {
  /** 0: one that is free. */
  readonly port: number
  /** Absent: it founds a cluster, or goes on as what it is. */
  readonly joins?: ClusterId
  readonly neighbours: readonly Neighbour[]
}

/** Of one shard; done by the broker that leads it. */
export interface MembershipStep {
  readonly shard: number
  readonly step: MembersChange | { readonly kind: 'hand-over'; readonly node: NodeId }
}

export type ClusterCommand =
  | { readonly kind: 'neighbours'; readonly neighbours: readonly Neighbour[] }
  | { readonly kind: 'look'; readonly id: number }
  | { readonly kind: 'steps'; readonly id: number; readonly steps: readonly MembershipStep[] }

export type ClusterReport =
  | { readonly kind: 'member'; readonly nodeId: NodeId; readonly cluster: Address }
  /** By shard; null: it has never been a member. */
  | { readonly kind: 'views'; readonly id: number; readonly views: readonly (ShardView | null)[] }
  /** By step; null: it was begun. */
  | { readonly kind: 'begun'; readonly id: number; readonly refusals: readonly (Refusal | null)[] }
