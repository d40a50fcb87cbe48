// What a coordinator and the brokers of its segments tell each other: leases, how an open segment comes to its end, what is
// staged for its successor, and how much of a sealed one a replica holds. Any of it may be lost: who wants something says it
// again. Who sent it the link knows; which start of the sender it was is said where an answer counts for one start only.

import type { ErrorCode } from '../../base/errors.ts'
import type { NodeId } from '../../model/ids.ts'
import type {
  EndReason,
  FenceAnswer,
  InspectAnswer,
  LeadersEnd,
  StageReport,
} from '../../model/segment-ends.ts'
import type { SegmentKey } from '../../model/segment-key.ts'

/** A shard as of an index of its log. */
export interface ShardAt {
  readonly shard: number
  readonly index: number
}

/** A segment that a broker cannot go on with. */
export interface UnfitSegment {
  readonly key: SegmentKey
  readonly why: EndReason
  /** Somebody waits for its successor. */
  readonly waited: boolean
}

/** A broker asks a coordinator for its leases, of all shards of that coordinator at once. */
export interface LeaseRequest {
  readonly kind: 'lease-request'
  /** Grows with every request of a start: the broker counts the lease from when it sent the one that is answered. */
  readonly seq: number
  readonly boot: number
  /** Age of its oldest write or sync that is not finished; 0: none is under way. */
  readonly oldestSyncMs: number
  /** It is about to stop: what it holds of open segments should go to others. */
  readonly stopping: boolean
  /** Its disk is full: it should get nothing new, and what it holds of open segments should go to others that have room. */
  readonly diskFull: boolean
  /** Shards in which it leads segments, with the index that it has applied. */
  readonly shards: readonly ShardAt[]
  /** Some of its replicas, open ones, of any role. */
  readonly unfit: readonly UnfitSegment[]
}

export interface LeaseAnswer {
  readonly kind: 'lease-answer'
  readonly seq: number
  /** Confirmed, each as of an index: a broker that has applied less may lead less than it thinks. */
  readonly shards: readonly ShardAt[]
  /** Of these, segments that are fenced: nothing is confirmed of them. */
  readonly withheld: readonly SegmentKey[]
}

interface OfSegment {
  readonly key: SegmentKey
}

/** To the leader of an open segment: please give an end. */
interface AskEnd extends OfSegment {
  readonly kind: 'ask-end'
  readonly attempt: number
  readonly why: EndReason
}

/** Again and again, until the leader learns what became of it. */
interface GiveEnd extends OfSegment {
  readonly kind: 'give-end'
  readonly boot: number
  readonly given: LeadersEnd
}

/** The segment cannot be ended now: too few brokers. */
interface EndRefused extends OfSegment {
  readonly kind: 'end-refused'
  readonly code: ErrorCode
  readonly text: string
}

/** To every replica: take nothing more from the leader. */
interface Fence extends OfSegment {
  readonly kind: 'fence'
}

/** Given when the fence is durable. */
interface FenceAnswered extends OfSegment {
  readonly kind: 'fence-answer'
  readonly answer: FenceAnswer
}

/** To the holder: make the range state at `end` and the tail, and see that these replicas store both under the token. */
export interface StageOrder extends OfSegment {
  readonly kind: 'stage-order'
  readonly token: string
  readonly end: number
  readonly tailFrom: number
  readonly replicas: readonly NodeId[]
}

interface StageReported extends OfSegment {
  readonly kind: 'stage-report'
  readonly token: string
  readonly report: StageReport
}

/** To a replica of a sealed segment. */
interface Inspect extends OfSegment {
  readonly kind: 'inspect'
}

interface Inspected extends OfSegment {
  readonly kind: 'inspect-answer'
  readonly boot: number
  readonly answer: InspectAnswer
}

export type SegmentMessage =
  | LeaseRequest
  | LeaseAnswer
  | AskEnd
  | GiveEnd
  | EndRefused
  | Fence
  | FenceAnswered
  | StageOrder
  | StageReported
  | Inspect
  | Inspected
