// The words of Raft (Ongaro and Ousterhout, "In search of an understandable consensus algorithm", 2014; Ongaro's thesis,
// 2014, for membership, transfer and reads), as values: entries, members and messages.

import type { NodeId } from './ids.ts'

/** Chosen by the proposer and unique: the entry that bears it answers that proposal, wherever in the log it comes to lie. */
export type ProposalId = string

export interface Members {
  readonly voters: readonly NodeId[]
  /** Receive the log and are counted in no quorum. */
  readonly learners: readonly NodeId[]
}

export type Payload =
  /** What a leader begins its term with: once it has committed, so has all before it. */
  | { readonly kind: 'empty' }
  | { readonly kind: 'command'; readonly id: ProposalId; readonly data: Uint8Array }
  /** In force from when it is appended. */
  | { readonly kind: 'members'; readonly id: ProposalId; readonly members: Members }

export interface Entry {
  readonly index: number
  readonly term: number
  readonly payload: Payload
}

/** Must be durable before anything that follows from it leaves. Outlives membership: it is never deleted. */
export interface HardState {
  readonly term: number
  readonly vote: NodeId | undefined
  /**
   * Of a member that was removed and has deleted its log: where that ended. Others may count on its vote still, by members
   * of before its removal, and it must not vote for a log that lacks what its own had.
   */
  readonly deletedUpTo?: LogEnd
}

export interface LogEnd {
  readonly index: number
  readonly term: number
}

/** The state machine after `index`, and who the members were then. */
export interface Snapshot {
  readonly index: number
  readonly term: number
  readonly members: Members
  readonly data: Uint8Array
}

interface Routed {
  readonly from: NodeId
  readonly to: NodeId
  /** The sender's; of a pre-vote and its granting answer, the one that the candidate would have. */
  readonly term: number
}

export interface VoteRequest extends Routed {
  readonly kind: 'vote'
  /** Only asks whether it would be given. */
  readonly pre: boolean
  /** The leader has asked for this election: nobody holds to it. */
  readonly transfer: boolean
  readonly lastIndex: number
  readonly lastTerm: number
}

export interface VoteAnswer extends Routed {
  readonly kind: 'vote-answer'
  readonly pre: boolean
  readonly granted: boolean
}

export interface Append extends Routed {
  readonly kind: 'append'
  readonly prevIndex: number
  readonly prevTerm: number
  readonly entries: readonly Entry[]
  readonly commit: number
  /** The answer repeats it: so the leader knows that it was heard after the round began. */
  readonly round: number
}

interface Heartbeat extends Routed {
  readonly kind: 'heartbeat'
  readonly commit: number
  readonly round: number
}

/** To an append, a heartbeat, and the last part of a snapshot. */
export interface AppendAnswer extends Routed {
  readonly kind: 'append-answer'
  readonly round: number
  readonly result: /** The log agrees with the leader's up to `match`, durably. */
    | { readonly ok: true; readonly match: number }
    /** A heartbeat says nothing of the log. */
    | { readonly ok: true; readonly match?: undefined }
    /** What `prevIndex` named is not here; `hint` may be, at that term or a lower one. */
    | {
        readonly ok: false
        readonly prevIndex: number
        readonly hintIndex: number
        readonly hintTerm: number
      }
}

export interface SnapshotPart extends Routed {
  readonly kind: 'snapshot'
  readonly index: number
  readonly snapshotTerm: number
  readonly members: Members
  readonly totalBytes: number
  readonly offset: number
  readonly bytes: Uint8Array
  readonly round: number
}

export interface SnapshotAnswer extends Routed {
  readonly kind: 'snapshot-answer'
  readonly index: number
  /** Send from here on. */
  readonly offset: number
  readonly round: number
}

/** Begin an election now: the leader has stepped down for it. */
interface TimeoutNow extends Routed {
  readonly kind: 'timeout-now'
}

export type Message =
  | VoteRequest
  | VoteAnswer
  | Append
  | Heartbeat
  | AppendAnswer
  | SnapshotPart
  | SnapshotAnswer
  | TimeoutNow

/** Why a proposal or a change was not taken; nothing of it is in the log. Peers name them by place: new ones go to the end. */
export const REFUSALS = [
  'not-leader',
  /** No entry of this term has committed yet. */
  'term-not-begun',
  /** Another change has not committed yet. */
  'change-under-way',
  /** The node is not what the change needs it to be, or it is the last voter. */
  'no-such-member',
  /** The learner lacks too much of the log, or is not heard from. */
  'not-caught-up',
  'leadership-is-leaving',
  /** So many bytes wait to be committed already. */
  'too-much-under-way',
  /** The leader's disk has no space for it. */
  'storage-full',
] as const
export type Refusal = (typeof REFUSALS)[number]
