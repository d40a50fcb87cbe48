// What brokers tell one another about who is there: SWIM's words as values (Das, Gupta and Motivala, 2002, with the
// corrections of Dadgar, Phillips and Currey, "Lifeguard", 2017). core/swim decides by them, wire/swim puts them into bytes.
//
//   packets   ping, ping-request, ack, nack, gossip, refused: UDP, at most PACKET_BYTES_MAX, any of them may be lost
//   syncs     all that one knows for all that the other knows: over a stream, on joining and now and then

import type { Address } from '../base/address.ts'
import type { ClusterId, NodeId } from './ids.ts'

/** The whole payload of one datagram: no network on the way has to cut it up. */
export const PACKET_BYTES_MAX = 1400
/** Of that, kept free for what encrypting and authenticating a packet adds. */
export const PACKET_SEAL_BYTES = 40
/** Nodes that vouch for a suspicion: more change nothing. */
export const SUSPECTERS_MAX = 3
/** In UTF-8: the longest DNS name. */
export const HOST_BYTES_MAX = 253
/** In UTF-8: display names and labels. */
export const NAME_BYTES_MAX = 64
/** No member gets there by itself; what claims more could not be contradicted. */
export const INCARNATION_MAX: number = 2 ** 52
/** Shards are numbered below this. */
export const SHARDS_MAX = 4096
/** Members that one broker keeps in mind, the dead ones with them. */
export const MEMBERS_MAX = 2000

/** What a broker says of itself. */
export interface Profile {
  readonly name: string
  /** UDP for packets and TCP for syncs, on one port. */
  readonly cluster: Address
  readonly client: Address
  /** For what brokers replicate: TCP. */
  readonly data: Address
  /** Brokers of one host, or one rack, fail together. */
  readonly hostLabel: string
  readonly rackLabel: string
  /** What it can store, and what it does store. */
  readonly capacityBytes: number
  readonly loadBytes: number
}

/** One start of a node. The boot count tells starts apart; the nonce tells apart two that claim the same one. */
export interface Life {
  readonly boot: number
  /** By chance, below 2^32. */
  readonly nonce: number
}

export const MEMBER_STATES = ['alive', 'suspect', 'dead', 'left'] as const
export type MemberState = (typeof MEMBER_STATES)[number]

export interface Member extends Life {
  readonly node: NodeId
  /** Raised by the member itself only: to change its profile, to contradict a suspicion, to leave. */
  readonly incarnation: number
  readonly state: MemberState
  readonly profile: Profile
}

/** News of one member. */
export interface Update {
  readonly member: Member
  /** Who found out by themselves that it does not answer; empty unless it is suspect. */
  readonly suspectedBy: readonly NodeId[]
}

/** Who leads a shard: it speeds routing, and nothing that must be right rests on it. */
export interface ShardHint {
  readonly shard: number
  readonly term: number
  readonly leader: NodeId
}

export interface ClusterIdentity {
  readonly id: ClusterId
  /** By the founder's wall clock, in ms: tells the older of two clusters that meet by mistake. */
  readonly foundedMs: number
  /** Of its metadata, chosen at its founding for ever: a power of two, at most SHARDS_MAX. */
  readonly shards: number
}

/** A cluster as one of its brokers names it. */
export interface NamedCluster extends ClusterIdentity {
  /** That broker knows of no other in it. */
  readonly lone: boolean
}

/** Are you there? For `to` only: another node may have the address meanwhile. */
interface Ping {
  readonly kind: 'ping'
  readonly sequence: number
  readonly to: NodeId
}

/** Ask `target` for me, and answer with its ack, or a nack when it does not answer you either. */
interface PingRequest {
  readonly kind: 'ping-request'
  readonly sequence: number
  readonly target: NodeId
  readonly address: Address
}

interface Ack {
  readonly kind: 'ack'
  readonly sequence: number
}

interface Nack {
  readonly kind: 'nack'
  readonly sequence: number
}

/** Nothing but the updates and hints that every packet carries. */
interface Gossip {
  readonly kind: 'gossip'
}

/** `refused` is not a new life of its node: `boot` is remembered already. */
interface Refused {
  readonly kind: 'refused'
  readonly refused: Life
  readonly boot: number
}

export type PacketBody = Ping | PingRequest | Ack | Nack | Gossip | Refused

export interface Packet extends Life {
  readonly cluster: NamedCluster
  readonly from: NodeId
  readonly body: PacketBody
  readonly updates: readonly Update[]
  readonly hints: readonly ShardHint[]
}

/** All that a broker knows, itself first. */
export interface SyncState extends Life {
  readonly from: NodeId
  readonly updates: readonly Update[]
  readonly hints: readonly ShardHint[]
}

export interface SyncRequest extends SyncState {
  readonly kind: 'sync'
  /** Undefined: a new broker, which takes the cluster that it is answered. */
  readonly cluster: NamedCluster | undefined
}

type SyncRefusal =
  /** Asker and answerer belong to two clusters: `cluster` is the answerer's. */
  | {
      readonly kind: 'sync-refused'
      readonly reason: 'other-cluster'
      readonly cluster: NamedCluster
    }
  /** The asker's boot count is not above the remembered one. */
  | { readonly kind: 'sync-refused'; readonly reason: 'old-life'; readonly boot: number }
  /** The asker has asked itself. */
  | { readonly kind: 'sync-refused'; readonly reason: 'itself' }
  /** The answerer belongs to no cluster yet, or not any more. */
  | { readonly kind: 'sync-refused'; readonly reason: 'no-member' }

export type SyncAnswer =
  | (SyncState & { readonly kind: 'sync-answer'; readonly cluster: NamedCluster })
  | SyncRefusal
