// Range state: what folds out of a range's entries (PROTOCOLS §5), per partition the next offset, the producer table
// (§8) and the log time. The leader asks it for a verdict before an entry gets its number, tells it of each append, and
// commits when the high watermark moves: the table moves then and never earlier.

import type { ErrorCode } from '../../base/errors.ts'
import type { Entry } from '../../model/entry.ts'

/**
 * accept: append it. seen: stored already, at `verdictOffset`. pending: entry `verdictEntry` holds it and is not yet
 * committed, at `verdictOffset`; the retry waits for that entry's outcome. Everything else refuses.
 */
export type Verdict =
  | 'accept'
  | 'seen'
  | 'pending'
  | Extract<
      ErrorCode,
      'DUPLICATE_SEQUENCE' | 'OUT_OF_ORDER_SEQUENCE' | 'UNKNOWN_PRODUCER_ID' | 'PRODUCER_FENCED'
    >

/** What a range's leader, a follower and recovery need. Partitions are numbered as in the topic. */
export interface RangeFold {
  readonly firstPartition: number
  readonly endPartition: number
  /** The greatest log time of any partition folded or appended: log time never goes back below it. */
  readonly logTimeMs: number

  /** Judges one batch of a partition; no allocation. Facts of the verdict are in the two fields below until the next call. */
  check(partition: number, batch: Uint8Array): Verdict
  readonly verdictOffset: number
  readonly verdictEntry: number

  /** The offset that the next batch of the partition gets: entries appended but not committed are counted. */
  nextOffset(partition: number): number
  /** Below it all is committed. */
  committedOffset(partition: number): number

  /** An entry was numbered: entry numbers are dense, the first after `begin` is its argument. */
  append(entry: Entry): void
  /** Entries below `endEntry` are committed: they move the table. */
  commit(endEntry: number): void
  /** append and commit of one entry at once: recovery and followers. */
  fold(entry: Entry): void
  /** Entries appended and not committed. */
  readonly pendingEntries: number
  readonly nextEntry: number
  /** A new segment: entries are numbered from 0 again (or `fromEntry`). Nothing may be pending. */
  begin(fromEntry?: number): void
}
