// Words that the machines of a segment share. Time comes in as an argument, in milliseconds of the broker's own monotonic
// clock; only durations are compared between brokers.

import type { NodeId } from '../../model/ids.ts'

export interface SegmentTiming {
  /** A follower that has something to acknowledge and does not for so long has failed; so has a leader whose disk is stuck for so long. */
  readonly replicaAckTimeoutMs: number
  /** A leader counts its lease from when it asked for it. */
  readonly leaseTtlMs: number
  /** The coordinator counts so long from its last confirmation, or from its election. More than `leaseTtlMs`, for clocks run apart. */
  readonly leaseGraceMs: number
  /** For answers of replicas that are alive, once one sure answer is there. */
  readonly fenceWaitMs: number
  /** A staging that is not done by then is given up and begun anew. */
  readonly stageTimeoutMs: number
  /** A leader that gave an end and learns nothing for so long asks for CancelEnd. */
  readonly frozenTimeoutMs: number
  /** What is asked of another broker is asked again after so long. */
  readonly retryMs: number
  /** A replica that has been gone for longer is replaced. */
  readonly repairDelayMs: number
}

export const SEGMENT_TIMING: SegmentTiming = {
  replicaAckTimeoutMs: 750,
  leaseTtlMs: 2000,
  leaseGraceMs: 2200,
  fenceWaitMs: 500,
  stageTimeoutMs: 5000,
  frozenTimeoutMs: 5000,
  retryMs: 100,
  repairDelayMs: 60_000,
}

/** Why a replica is out, or an end is asked for: for logs and for people. */
export type EndReason =
  | 'full'
  | 'old'
  | 'follower-failed'
  | 'leader-failed'
  | 'restarted'
  | 'damaged'
  | 'under-replicated'
  | 'drained'
  | 'policy'

export interface FailedReplica {
  readonly node: NodeId
  readonly why: string
}

/** An end that a leader gave, under an attempt. It appends nothing any more, until it learns what became of it. */
export interface LeadersEnd {
  readonly attempt: number
  readonly end: number
  readonly highWatermark: number
  readonly failed: readonly FailedReplica[]
  readonly why: EndReason
}

/** What a fenced replica says. It counts for the start that gave it. */
export interface FenceAnswer {
  readonly boot: number
  /** Its entries that are durable. */
  readonly end: number
  /** The greatest that it has seen. */
  readonly highWatermark: number
  /** Undefined: sure. Else damage can touch this segment here, and this says what. */
  readonly unsure: string | undefined
}
