// The words of Raft (Ongaro and Ousterhout, "In search of an understandable consensus algorithm", 2014; Ongaro's thesis,
// 2014, for membership, transfer and reads), as values: entries, members, messages, and what a member wants done.

import type { NodeId } from '../../model/ids.ts'

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

export type Role = 'follower' | 'pre-candidate' | 'candidate' | 'leader'

export type MembersChange =
  | { readonly kind: 'add-learner'; readonly node: NodeId }
  | { readonly kind: 'promote'; readonly node: NodeId }
  | { readonly kind: 'remove'; readonly node: NodeId }

/** Why a proposal or a change was not taken; nothing of it is in the log. */
export type Refusal =
  | 'not-leader'
  /** No entry of this term has committed yet. */
  | 'term-not-begun'
  /** Another change has not committed yet. */
  | 'change-under-way'
  /** The node is not what the change needs it to be, or it is the last voter. */
  | 'no-such-member'
  /** The learner lacks too much of the log, or is not heard from. */
  | 'not-caught-up'
  | 'leadership-is-leaving'
  /** So many bytes wait to be committed already. */
  | 'too-much-under-way'

export interface RaftOptions {
  readonly id: NodeId
  /** A follower waits at least this long, and less than twice, for a leader. */
  readonly electionTimeoutMs: number
  readonly heartbeatMs: number
  /** Of one append message. */
  readonly appendBytesMax: number
  /** Append messages to one peer without an answer. */
  readonly appendsInFlightMax: number
  readonly snapshotPartBytes: number
  /** Of entries that are not committed: more are refused. */
  readonly uncommittedBytesMax: number
  /** Entries before a snapshot's index that stay, for followers that are a little behind. */
  readonly entriesKept: number
  /** In [0, 1). */
  readonly chance: () => number
}

/** What a member has on its disk. */
export interface Restored {
  readonly hardState: HardState
  readonly snapshot: Snapshot | undefined
  /** Without a hole; may begin before the snapshot's index, not after the one that follows it. */
  readonly entries: readonly Entry[]
  /** Of a group that has neither snapshot nor entries yet. */
  readonly members: Members
}

export interface ReadAnswer {
  readonly id: string
  /** The state after this entry holds all that was answered before the read was asked; undefined: ask the leader again. */
  readonly index: number | undefined
}

/**
 * What is to be done, in this order: `messages` may leave at once; `hardState`, `snapshot` and `entries` go to disk in one
 * synced write; then `persisted(mark)` is called and `messagesAfterSync` leave. `committed` may be applied at once. The next
 * effects are taken when those before are durable.
 */
export interface Effects {
  readonly messages: readonly Message[]
  readonly hardState: HardState | undefined
  /** Entries up to its index are not needed any more. */
  readonly snapshot: Snapshot | undefined
  /** The state machine must take the snapshot's place: it came from the leader. */
  readonly installed: boolean
  /** What was written of the log from this index on does not count any more. */
  readonly truncatedFrom: number | undefined
  /** Follow one another from `truncatedFrom`, or from the end of what was written. */
  readonly entries: readonly Entry[]
  readonly messagesAfterSync: readonly Message[]
  readonly committed: readonly Entry[]
  readonly reads: readonly ReadAnswer[]
  readonly mark: SyncMark
}

/** The end of the log at the time of the effects. */
export interface SyncMark {
  readonly index: number
  readonly term: number
}
