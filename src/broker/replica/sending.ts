// Entries on their way from a segment's leader to its followers.

import type { SegmentLeader } from '../../core/segment/leader.ts'
import type { RangeLeader } from '../range/leader.ts'

/** Of one range that is led here. */
export interface Sending {
  /** Another segment is open; undefined: one that is never continued. */
  open(segment: SegmentLeader | undefined): void
  /** The log has an entry more. */
  appended(): void
  /** The high watermark has moved. */
  committed(): void
  close(): void
}

export interface Sendings {
  of(leader: RangeLeader): Sending
}

const NOTHING: Sending = {
  open: () => {},
  appended: () => {},
  committed: () => {},
  close: () => {},
}

/** For a broker that stays alone: it has no followers. */
export const NO_SENDINGS: Sendings = { of: () => NOTHING }
