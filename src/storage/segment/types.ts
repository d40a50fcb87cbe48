// What stands between the log store (which owns the WAL, recovery and the data directory's whole) and the segments.
// The store makes one SegmentEngine, gives it what it needs of the world, and asks it for segments:
//
//   at run time   create(key) ──> SegmentLog ──> appends, flushes in the background, reads
//   at start      open(key, ...) ──> recover(entry)* ──> settle() ──> the same SegmentLog, its entries all synced
//
// Recovered is not yet durable: nobody hears of a recovered segment before settle() has resolved.

import type { Entry } from '../../model/entry.ts'
import type { SegmentKey } from '../../model/segment-key.ts'
import type { Clock } from '../../ports/clock.ts'
import type { Disk } from '../../ports/disk.ts'
import type { Log } from '../../ports/log.ts'
import type { DurableDirs } from '../durable-dirs.ts'
import type { Catalog, LogStoreOptions, SegmentListener, SegmentLog } from '../types.ts'
import type { Wal, WalTarget } from '../wal/types.ts'

export interface SegmentEnv {
  readonly disk: Disk
  readonly clock: Clock
  readonly log: Log
  readonly catalog: Catalog
  readonly options: LogStoreOptions
  readonly durableDirs: DurableDirs
  /**
   * A segment file that the disk cannot read at its opening is that segment's damage. Otherwise the opening rejects: the disk
   * may be back at the next start, and a mark stays.
   */
  readonly unreadableIsDamage: boolean
  /** Asked at each use: at recovery segments are opened before the new WAL begins. */
  wal(): Wal
  /** Writes a seal or a fence into the WAL, in the turn of the call; resolves when it is synced. */
  recordEnd(kind: number, key: SegmentKey, end: number): Promise<void>
  /** Resolves when everything that was appended is synced in the WAL. */
  synced(): Promise<void>
  /** A segment file could not be synced or written for a reason other than a full disk: the broker must stop. */
  failed(error: Error): void
  /** Unflushed bytes have shrunk. */
  roomAgain(): void
}

export interface OpenSegment {
  /** The topic's directory bears it; as found on disk. */
  readonly topicName: string
  /**
   * The least entry number of this segment that the WAL still holds; undefined: none. Blocks that reach it may not have
   * been synced: they are verified entry by entry, and what is torn is cut off, for the WAL has it. A block before it was
   * synced: if it is invalid, that is damage.
   */
  readonly walFirst: number | undefined
  /** It is sealed, and others have it: entries that are missing here are no damage, they are copied from there. */
  readonly repairable?: boolean
}

/** A segment with the doors that only the log store uses. */
export interface StoredSegment extends SegmentLog, WalTarget {
  /**
   * Recovery: takes an accepted entry of the WAL. False: it is in the segment file already, nothing was done. An entry
   * beyond `end` (a gap) is not taken; it marks the segment damaged unless that is repairable.
   */
  recover(entry: Entry): boolean
  /** Recovery: the WAL has a fence of it, with so many of its entries before it. */
  recoverFence(end: number): void
  /** Recovery: `knownHighWatermark` from the last block of its file, where the WAL had nothing of the segment. */
  recoverHighWatermark(): Promise<void>
  /** Recovery: writes everything recovered into the file, whatever the high watermark says, and syncs it. */
  settle(): Promise<void>
  /**
   * Recovery: drops the entries at or above `end` from memory and file, synced when it resolves; the segment is sealed there.
   * With fewer it is incomplete.
   */
  cut(end: number): Promise<void>
  /** Bytes of this segment are lost; it is not served any more. Reasons add up. */
  markDamaged(what: string): void
  /** The mark is taken away. */
  acquitted(): void
  /** Ends all background work, lets go of memory, WAL and open files. The files themselves are the caller's to remove. */
  retire(): Promise<void>
}

export interface SegmentEngine {
  /** A new, empty segment; no file before its first flush, nor before `pathFree`: another's files are still in its place. */
  create(key: SegmentKey, listener: SegmentListener, pathFree?: Promise<unknown>): StoredSegment
  /** A segment whose file exists (or not: then it is empty). */
  open(key: SegmentKey, how: OpenSegment): Promise<StoredSegment>
  /** Bytes of entries that no segment file has yet, memory for keeping them included. */
  readonly unflushedBytes: number
  /** The WAL has begun another file: flush what holds the oldest one when too many are in use. */
  walGrew(): void
  /** Writes all entries below the high watermark of every segment to its file and syncs it. */
  flush(): Promise<void>
  /** Lets running work end and closes all files. Flushes nothing. */
  close(): Promise<void>
}
