// What one broker tells another about a shard. Besides Raft's own messages: proposals and reads for a shard's leader from
// brokers that do not lead it, and the feed, by which a broker that is no member follows what a shard has applied.

import type { NodeId } from '../../model/ids.ts'
import type { Entry, Members, Message, ProposalId, Refusal } from '../../model/raft.ts'

interface OfShard {
  readonly shard: number
}

interface RaftMessage extends OfShard {
  readonly kind: 'raft'
  readonly message: Message
}

interface Propose extends OfShard {
  readonly kind: 'propose'
  /** The leader's, as the sender knows it. */
  readonly term: number
  readonly id: ProposalId
  readonly command: Uint8Array
}

export type Proposed =
  /** Where the entry lies if it commits in this term. */
  | { readonly taken: true; readonly index: number; readonly term: number }
  | { readonly taken: false; readonly refusal: Refusal; readonly leader: NodeId | undefined }

interface ProposeAnswer extends OfShard {
  readonly kind: 'propose-answer'
  readonly id: ProposalId
  readonly outcome: Proposed
}

interface Read extends OfShard {
  readonly kind: 'read'
  readonly id: string
}

interface ReadAnswer extends OfShard {
  readonly kind: 'read-answer'
  readonly id: string
  /** The state after this entry holds all that was answered before the read was asked; undefined: ask the leader. */
  readonly index: number | undefined
  readonly leader: NodeId | undefined
}

interface FeedRequest extends OfShard {
  readonly kind: 'feed-request'
  /** The first entry that is wanted. */
  readonly fromIndex: number
  /** Go on with what is applied later; false ends that. */
  readonly subscribe: boolean
}

/** Applied entries, without a hole. */
interface Feed extends OfShard {
  readonly kind: 'feed'
  /** Of the entry before the first, when it is known. */
  readonly prevTerm: number | undefined
  readonly entries: readonly Entry[]
}

/** Instead of entries that are there no more. */
interface FeedSnapshot extends OfShard {
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
  readonly leader: NodeId | undefined
}

export type PeerMessage =
  | RaftMessage
  | Propose
  | ProposeAnswer
  | Read
  | ReadAnswer
  | FeedRequest
  | Feed
  | FeedSnapshot
  | FeedEnd
