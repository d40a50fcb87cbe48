// What a member of a Raft group is told and what it wants done. The words themselves are in model/raft.ts.

import type { NodeId } from '../../model/ids.ts'
import type { Entry, HardState, Members, Message, Snapshot } from '../../model/raft.ts'

export type Role = 'follower' | 'pre-candidate' | 'candidate' | 'leader'

export type MembersChange =
  | { readonly kind: 'add-learner'; readonly node: NodeId }
  | { readonly kind: 'promote'; readonly node: NodeId }
  | { readonly kind: 'remove'; readonly node: NodeId }

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
