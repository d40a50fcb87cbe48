// Words that the machines of a segment share. Time comes in as an argument, in milliseconds of the broker's own monotonic
// clock; only durations are compared between brokers.

export type {
  EndReason,
  FailedReplica,
  FenceAnswer,
  Forceable,
  InspectAnswer,
  LeadersEnd,
  StageOutcome,
  StageReport,
} from '../../model/segment-ends.ts'

export interface SegmentTiming {
  /** A follower that has something to acknowledge and does not for so long has failed; so has a leader whose disk is stuck for so long. */
  readonly replicaAckTimeoutMs: number
  /** A leader counts its lease from when it asked for it. */
  readonly leaseTtlMs: number
  /** The coordinator counts so long from its last confirmation, or from its election. More than `leaseTtlMs`, for clocks run apart. */
  readonly leaseGraceMs: number
  /** For answers of replicas that are alive, once one sure answer is there. */
  readonly fenceWaitMs: number
  /** A staging of which nothing has moved for so long is given up and begun anew. */
  readonly stageTimeoutMs: number
  /** A leader that gave an end, and for so long learns nothing and hands nothing on, asks for CancelEnd. */
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
