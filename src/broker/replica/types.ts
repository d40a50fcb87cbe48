// What this broker holds, as coordinators see it: they ask, order and are told, over a link or, when the coordinator is this
// broker itself, by a call.
//
//   coordinator ── ask-end, fence, stage-order, inspect ──> Replicas
//   coordinator <── give-end, stage-report ── ReplicaHooks       (told again and again, while it is so)

import type { ErrorCode } from '../../base/errors.ts'
import type { NodeId } from '../../model/ids.ts'
import type {
  EndReason,
  FenceAnswer,
  Forceable,
  InspectAnswer,
  LeadersEnd,
  StageReport,
} from '../../model/segment-ends.ts'
import type { SegmentKey } from '../../model/segment-key.ts'
import type { ShardAt, StageOrder, UnfitSegment } from '../../wire/peer/segments.ts'
import type { RangeTrouble } from '../coordinator/types.ts'

export interface Replicas {
  /**
   * Nothing more is taken of the segment, for ever; resolves with what this replica has when the fence is durable. Asked
   * again, it answers anew. Rejects with an EastGuardError when it holds no such segment, or is not to say anything of it yet.
   */
  fence(key: SegmentKey): Promise<FenceAnswer>
  /** To the leader here of the open segment; nothing happens when there is none. The end comes through `gave`. */
  giveEndAsked(key: SegmentKey, attempt: number, why: EndReason): void
  /** The end that was given, or would be, leads to nothing now: produces are to be told. */
  endRefused(key: SegmentKey, code: ErrorCode, text: string): void
  /** Ordered again, nothing is begun twice: it is reported how it stands. Under another token, what was under way is given up. */
  stage(order: Omit<StageOrder, 'kind'>): void
  /** Rejects like `fence`. */
  inspect(key: SegmentKey): Promise<InspectAnswer>
  /** Open segments of which this broker has a replica that cannot go on: from before its start, fenced, damaged. Those that a producer waits for come first; the caller takes as many as it can use. */
  unfit(): Iterable<UnfitSegment>
  /** Shards in which this broker leads open segments, with what it has applied of each. */
  ledShards(): readonly ShardAt[]
}

/** What replicas have to tell the coordinator of their topic. Repeated by who tells it, every `retryMs` or so: it may be lost. */
export interface ReplicaHooks {
  gave(key: SegmentKey, given: LeadersEnd): void
  staged(key: SegmentKey, token: string, report: StageReport): void
  /** A producer waits for an open segment that cannot go on (`unfit`): it should be seen to first. */
  waits?(key: SegmentKey): void
}

/** Another broker coordinates the topic. */
export interface Elsewhere {
  /** Undefined: nobody is known, or this broker itself, which is not ready for it yet. */
  readonly coordinator: NodeId | undefined
}

/** What decides over this broker's replicas, here and elsewhere. */
export interface Control {
  readonly hooks: ReplicaHooks
  /** Whether this broker has a lease of the open segment that it leads. */
  leased(key: SegmentKey): boolean
  /**
   * What is known of an open segment that nobody but an operator can end; with an end, that is where the operator ends it.
   * Throws END_NOT_FORCED. Absent: this broker coordinates nothing.
   */
  forceEnd?(key: SegmentKey, end: number | undefined): Forceable | Elsewhere
  /** Ranges that this broker coordinates and cannot help. Absent: it has none. */
  troubles?(): readonly RangeTrouble[]
  /** The broker has said here that its disk is full. Absent: nobody says so here. */
  diskFull?(node: NodeId): boolean
  stop(): void
}
