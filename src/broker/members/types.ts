// What a broker's part in the membership is made with, and what it tells its owner.

import type { Address } from '../../base/address.ts'
import type { SwimSettings, View } from '../../core/swim/types.ts'
import type { NodeId } from '../../model/ids.ts'
import type { ClusterIdentity, Member, MemberState, Profile, ShardHint } from '../../model/swim.ts'
import type { Clock } from '../../ports/clock.ts'
import type { Datagrams } from '../../ports/datagrams.ts'
import type { Log } from '../../ports/log.ts'
import type { Metrics } from '../../ports/metrics.ts'
import type { Random } from '../../ports/random.ts'
import type { Streams } from '../../ports/streams.ts'
import type { ClusterKeys } from '../seal/cluster-keys.ts'

interface MembersPorts {
  readonly clock: Clock
  readonly random: Random
  readonly datagrams: Datagrams
  readonly streams: Streams
  readonly log: Log
  readonly metrics: Metrics
}

interface MembersHooks {
  /**
   * A new broker belongs to this cluster from now on, and `founder` says that it has just founded it. Until this resolves it
   * sends nothing; what it rejects with is what `join` rejects with.
   */
  onCluster(cluster: ClusterIdentity, founder: boolean): Promise<void>
  /** `was` undefined: not known before. `restarted`: another life than before. */
  onMember?(member: Member, was: MemberState | undefined, restarted: boolean): void
  /** Others remember a start of this node that this one does not come after: it takes no part, and must stop. */
  onRefused(boot: number): void
  /** Brokers of another cluster are there, once for each and verdict. `yields`: if this broker founded its own, that was a mistake, and it must stop (`foundedByMistake`). */
  onForeign(cluster: ClusterIdentity, yields: boolean, from: Address | undefined): void
  /** Who leads a shard, as far as that was heard: `leader` may be this broker. */
  onHint?(hint: ShardHint): void
}

export interface MembersOptions {
  readonly ports: MembersPorts
  readonly nodeId: NodeId
  readonly bootCount: number
  /** Undefined: new. It joins a cluster, or founds one. */
  readonly cluster: ClusterIdentity | undefined
  /** Where others of it were met before this start: they are asked as seeds are. */
  readonly peers: readonly Address[]
  /** Of a cluster that it founds: a power of two, at most SHARDS_MAX. */
  readonly metadataShards: number
  /** A cluster port of 0 becomes the one that is listened on. */
  readonly profile: Profile
  readonly settings?: Partial<SwimSettings>
  /** Undefined: everything goes in the clear. */
  readonly clusterKeys?: ClusterKeys | undefined
  readonly hooks: MembersHooks
}

export type ViewListener = (view: View) => void
