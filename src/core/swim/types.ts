// What a member is set up with, what it wants done, and what others see of it. The messages are in model/swim.ts.

import type { Address } from '../../base/address.ts'
import type { NodeId } from '../../model/ids.ts'
import type {
  ClusterIdentity,
  Life,
  Member,
  MemberState,
  Packet,
  PacketBody,
  Profile,
  ShardHint,
  SyncRequest,
  Update,
} from '../../model/swim.ts'

export interface SwimSettings {
  /** One member is probed per period. Longer: fewer packets, later detection. */
  readonly periodMs: number
  /** Until others are asked to try. Above the round trip of a busy network. */
  readonly pingTimeoutMs: number
  /** How many are asked to try. */
  readonly helpers: number
  /** A suspicion that others confirm lasts this many periods, times log10 of the members; an unconfirmed one SUSPICION_SPREAD times as long. */
  readonly suspicionPeriods: number
  /** While there is news, it is told between the probes as well. */
  readonly gossipMs: number
  readonly gossipTargets: number
  /** News is told this many times log10 of the members, by each. */
  readonly retransmits: number
  readonly syncEveryMs: number
  readonly syncTimeoutMs: number
  /** How often a seed is tried at whose address no member lives. */
  readonly seedRetryMs: number
  /** The dead are probed again after the first, doubling up to the second. */
  readonly deadProbeMinMs: number
  readonly deadProbeMaxMs: number
  /** The dead and those who left are forgotten after this time, and the oldest of more than `deadMax`. */
  readonly forgetMs: number
  readonly deadMax: number
  /** A member that comes and goes is held back so long at first, doubling up to the second. */
  readonly holdMs: number
  readonly holdMaxMs: number
  /** One return or so is forgiven per this time. */
  readonly flapForgivenMs: number
  /** A leaving member tells so this long. */
  readonly leaveMs: number
  /** Changes of capacity and load alone are told this often at most. */
  readonly loadEveryMs: number
  readonly hintsPerPacket: number
}

export const SWIM_SETTINGS: SwimSettings = {
  periodMs: 1000,
  pingTimeoutMs: 300,
  helpers: 3,
  suspicionPeriods: 3,
  gossipMs: 200,
  gossipTargets: 3,
  retransmits: 4,
  syncEveryMs: 30_000,
  syncTimeoutMs: 5000,
  seedRetryMs: 60_000,
  deadProbeMinMs: 2000,
  deadProbeMaxMs: 30_000,
  forgetMs: 3 * 86_400_000,
  deadMax: 256,
  holdMs: 10_000,
  holdMaxMs: 600_000,
  flapForgivenMs: 300_000,
  leaveMs: 2000,
  loadEveryMs: 5000,
  hintsPerPacket: 16,
}

/** How large things are in bytes, which the codec knows. */
export interface PacketSizes {
  /** For the updates and hints beside this body in one packet. */
  room(body: PacketBody): number
  update(update: Update): number
  readonly hint: number
}

export interface SwimOptions extends Life {
  readonly node: NodeId
  /** Undefined: new, and learned by joining. */
  readonly cluster: ClusterIdentity | undefined
  /** Where others of the cluster were met before this start. */
  readonly peers: readonly Address[]
  readonly profile: Profile
  readonly settings: SwimSettings
  readonly sizes: PacketSizes
  /** In [0, 1). */
  readonly chance: () => number
}

export type SwimEvent =
  /** A new broker belongs to this cluster from now on: to be written down. */
  | { readonly kind: 'cluster'; readonly cluster: ClusterIdentity }
  /** The state of others was learned; a broker without seeds joins itself. */
  | { readonly kind: 'joined' }
  /** `was` undefined: not known before. `restarted`: another life than before. */
  | {
      readonly kind: 'member'
      readonly member: Member
      readonly was: MemberState | undefined
      readonly restarted: boolean
    }
  | { readonly kind: 'forgotten'; readonly node: NodeId }
  /** It comes and goes, and is kept out of the view for so long. `leftOut`: as long as ever. */
  | {
      readonly kind: 'held'
      readonly node: NodeId
      readonly holdMs: number
      readonly leftOut: boolean
    }
  | { readonly kind: 'hint'; readonly hint: ShardHint }
  /** Once for each and verdict: packets or syncs of another cluster arrive. `yields`: this broker's is the mistake, if it founded it. */
  | {
      readonly kind: 'foreign-cluster'
      readonly cluster: ClusterIdentity
      readonly from: Address | undefined
      readonly yields: boolean
    }
  /** Peers remember this boot count or a higher one of this node, from another life: this one takes no part any more. */
  | { readonly kind: 'refused'; readonly boot: number }
  /** All seeds were this broker itself: it founds a cluster, if it has none. */
  | { readonly kind: 'no-seeds' }
  /** Leaving is over: nobody need wait for this broker's packets. */
  | { readonly kind: 'departed' }

/** In any order, at once: nothing here waits for a disk. */
export interface Effects {
  readonly packets: readonly { readonly to: Address; readonly packet: Packet }[]
  /** To be carried over a stream; `syncAnswered` or `syncFailed` brings the outcome. */
  readonly syncs: readonly { readonly to: Address; readonly request: SyncRequest }[]
  readonly events: readonly SwimEvent[]
}

export interface ViewMember {
  readonly member: Member
  /** It comes and goes: not to be counted on. */
  readonly held: boolean
}

/** Who is there. */
export interface View {
  /** Grows with every change of who is there and counted on, in which life, and where. */
  readonly version: number
  /** Undefined while the view moves: this broker joins, or somebody who counts is suspect. Nobody acts on a view that moves. */
  readonly stableSince: number | undefined
  /** Alive or suspect, this broker among them, by node id. */
  readonly members: readonly ViewMember[]
}

export interface Counters {
  /** Packets and syncs of other clusters. */
  foreign: number
  /** Of an earlier life of their sender. */
  outdated: number
  probes: number
  probesFailed: number
  /** Suspicions that this member began itself. */
  suspicions: number
  refutations: number
  syncs: number
  syncsFailed: number
  /** Pings that were meant for another node. */
  misdirected: number
  /** News and requests for which there was no room. */
  dropped: number
}
