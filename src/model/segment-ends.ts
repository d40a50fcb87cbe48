// How a segment's end is found, as values: what its replicas say, over whichever link, and what the machines of core/segment
// take and answer.

import type { NodeId } from './ids.ts'

/** Why a replica is out, or an end is asked for: for logs and for people. The place is the format: new ones go to the end. */
export const END_REASONS = [
  'full',
  'old',
  'follower-failed',
  'leader-failed',
  'restarted',
  'damaged',
  'under-replicated',
  'drained',
  'policy',
  'fenced',
  'forced',
  'disk-full',
] as const
export type EndReason = (typeof END_REASONS)[number]

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

/** What is known of an open segment that nobody but an operator can bring to an end. */
export interface Forceable {
  /** Of those replicas that are there. Unsure: why that may not be all; undefined: it is, as far as they know. */
  readonly answers: readonly {
    readonly node: NodeId
    readonly end: number
    readonly unsure: string | undefined
  }[]
  /** Replicas of which nothing is known: they may have more than the others. */
  readonly silent: readonly NodeId[]
  /** Entries below it were readable, and may have been acknowledged; so may others above. */
  readonly highWatermark: number
}

/** What became of a staging, as its holder says. */
export type StageOutcome =
  /** All have stored state and tail. Next offsets: of each partition of the range, in order. */
  | { readonly nextOffsets: readonly number[]; readonly stateDigest: string }
  | { readonly failed: readonly FailedReplica[] }

/** What a holder says of a staging when it is asked again: what became of it or, while it is at it, how many bytes it has moved. */
export type StageReport = StageOutcome | { readonly moved: number }

/** How much of a sealed segment a replica holds. */
export type InspectAnswer =
  | { readonly kind: 'whole'; readonly digest: string }
  /** Entries below `end`, which may be none. */
  | { readonly kind: 'part'; readonly end: number }
  | { readonly kind: 'damaged'; readonly why: string }
