// What all segments of a broker share.

import type { CacheBudget } from '../cache/budget.ts'
import type { IndexShelf } from '../index/index-file.ts'
import type { Segment } from '../segment-log.ts'
import type { Wal } from '../wal/types.ts'
import type { OpenFiles } from './file.ts'
import type { ReadAhead } from './reader.ts'
import type { SegmentEnv } from './types.ts'

/** What a segment tells the flusher. */
export interface FlushRequests {
  /** The segment has its first unsynced entry. */
  dirtied(segment: Segment): void
  /** More of it may be written. */
  advanced(segment: Segment): void
  /** Its end in the file is synced now; the WAL may forget more. */
  synced(segment: Segment): void
  /** Resolves when no work of it runs; none starts before `letGo`. Rejects when the disk has failed. */
  hold(segment: Segment): Promise<void>
  /** Writes the rest and syncs it. */
  letGo(segment: Segment): void
  /** The disk failed: nothing is written to any file any more, and the broker must stop. */
  fail(error: unknown): void
  /** Resolves when no work of it runs, and starts none any more. */
  forget(segment: Segment): Promise<void>
}

export interface SegmentContext {
  readonly env: SegmentEnv
  readonly wal: Wal
  readonly budget: CacheBudget
  readonly openFiles: OpenFiles
  readonly shelf: IndexShelf
  readonly ahead: ReadAhead
  readonly flusher: FlushRequests
  /** Lets other work of the event loop run. */
  readonly turn: () => Promise<void>
}
