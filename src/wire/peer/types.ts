// What one broker tells another about a shard: Raft's own messages, proposals and reads for a shard's leader from brokers that
// do not lead it, and the feed, by which a broker that is no member follows what a shard has applied. What is said about
// segments is in segments.ts.

import type { NodeId } from '../../model/ids.ts'
import type { Entry, Members, Message, Refusal } from '../../model/raft.ts'
import type { SegmentMessage } from './segments.ts'

interface OfShard {
  readonly shard: number
}

interface RaftMessage extends OfShard {
  readonly kind: 'raft'
  readonly message: Message
}

/** Who leads a shard, and in which term: of two that are said to, the one of the later term does. */
export interface ShardLeader {
  readonly node: NodeId
  readonly term: number
}

export interface Propose extends OfShard {
  readonly kind: 'propose'
  /** It is taken in this term of the leader's or never. 0: only asks who leads, without the command. */
  readonly term: number
  /** Of this start of the proposer: with the number it is the proposal's id. */
  readonly proposer: string
  readonly number: number
  /** The proposer knows the outcome of all its proposals below this number, and sends none of them again. */
  readonly below: number
  readonly command: Uint8Array
}

export interface ProposeAnswer extends OfShard {
  readonly kind: 'propose-answer'
  /** Those of the offer. */
  readonly term: number
  readonly number: number
  /** Undefined: it is in the leader's log. */
  readonly refusal: Refusal | undefined
  readonly leader: ShardLeader | undefined
}

interface Read extends OfShard {
  readonly kind: 'read'
  readonly id: number
}

interface ReadAnswer extends OfShard {
  readonly kind: 'read-answer'
  readonly id: number
  /** The state after this entry holds all that was answered before the read was asked; undefined: ask the leader. */
  readonly index: number | undefined
  readonly leader: ShardLeader | undefined
}

/** Good for some seconds: who wants to hear more asks again. */
export interface FeedRequest extends OfShard {
  readonly kind: 'feed-request'
  /** The first entry that is wanted. */
  readonly fromIndex: number
  /** Of the snapshot that is being sent instead: so much has come. */
  readonly held: { readonly index: number; readonly bytes: number } | undefined
}

/** Applied entries, without a hole. */
export interface Feed extends OfShard {
  readonly kind: 'feed'
  readonly entries: readonly Entry[]
}

/** Instead of entries that are there no more: a part, after which the next is asked for. */
export interface FeedSnapshot extends OfShard {
  readonly kind: 'feed-snapshot'
  readonly index: number
  readonly term: number
  readonly members: Members
  readonly totalBytes: number
  readonly offset: number
  readonly bytes: Uint8Array
}

/** The sender cannot serve the feed. */
interface FeedEnd extends OfShard {
  readonly kind: 'feed-end'
  readonly leader: ShardLeader | undefined
}

export type ShardMessage =
  | RaftMessage
  | Propose
  | ProposeAnswer
  | Read
  | ReadAnswer
  | FeedRequest
  | Feed
  | FeedSnapshot
  | FeedEnd

export type PeerMessage = ShardMessage | SegmentMessage
