// What the shards of a broker are told at its start, and what of a shard may be looked at.

import type { Role } from '../../core/raft/types.ts'
import type { NodeId } from '../../model/ids.ts'
import type { Members } from '../../model/raft.ts'
import type { Clock } from '../../ports/clock.ts'
import type { Log } from '../../ports/log.ts'
import type { Metrics } from '../../ports/metrics.ts'
import type { Random } from '../../ports/random.ts'
import type { Journal } from '../../storage/journal/journal.ts'
import type { PeerMessage } from '../../wire/peer/types.ts'

export interface ShardTiming {
  /** A shard without a leader elects another after this long, or up to twice as long. */
  readonly electionTimeoutMs: number
  readonly heartbeatMs: number
  /** What is asked of a shard is answered within this, or refused within half of it. */
  readonly timeoutMs: number
}

export interface ShardsOptions extends ShardTiming {
  readonly ports: {
    readonly clock: Clock
    readonly random: Random
    readonly log: Log
    readonly metrics: Metrics
  }
  readonly journal: Journal
  readonly nodeId: NodeId
  /** How many there are: a power of two, fixed when the cluster was founded. */
  readonly shards: number
  /** This broker founded the cluster: of shards that it has nothing of it is the first and only member. */
  readonly founder: boolean
  /** A shard's records in the journal take at least so much between snapshots. */
  readonly snapshotBytesLeast: number
  /** Entries before a snapshot that stay in memory, for members and feeds that are a little behind. */
  readonly entriesKept: number
  /** To another broker, in order, unless it is lost on the way. */
  send(to: NodeId, messages: readonly PeerMessage[]): void
  /** Whether a command only takes more: such are refused when the disk is full, before deletions have no room left. */
  isGrowing(command: Uint8Array): boolean
  /** This broker has begun to lead a shard. */
  onLead(shard: number, term: number): void
  /** Other brokers that may know something. */
  others(): readonly NodeId[]
  /** The disk failed, or what was read cannot be understood: nothing more is promised. Called once. */
  onFailed(error: Error): void
}

/** A shard as one of its members sees it. */
export interface ShardView {
  readonly members: Members
  /** The members in force have committed. */
  readonly settled: boolean
  readonly leader: NodeId | undefined
  readonly term: number
  readonly role: Role
  readonly commit: number
  readonly appliedIndex: number
}
