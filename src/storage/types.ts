// What the log engine offers to the broker. One LogStore per data directory; one SegmentLog per segment that has data
// here. The broker numbers entries, moves the high watermark and decides rolls; the store makes bytes durable, keeps
// the recent tail in memory, writes segment files in the background and reads them back.
//
//   append ──> WAL group (write + sync) ──> listener.durable ──> broker: advance(highWatermark)
//      └─────> cache (read at once below the high watermark)            │
//                 └──── blocks below the high watermark ──> segment file ──> WAL file reusable
//
// The hot path has no promises: `append` queues, `commit` starts a group when none runs, and each group that was
// synced calls `durable` once per segment that it touched, in LSN order.

import type { Entry } from '../model/entry.ts'
import type { TopicId } from '../model/ids.ts'
import type { SegmentKey } from '../model/segment-key.ts'

export interface SegmentListener {
  /** `segment.durableEnd` has moved. Called once per group commit, in the turn in which the sync returned. */
  durable(segment: SegmentLog): void
}

export interface SegmentLog {
  readonly key: SegmentKey
  /** The next entry number: what `append` must be given. */
  readonly end: number
  /** Entries below it are synced in the WAL or in the segment file. */
  readonly durableEnd: number
  /** Entries below it may be read and go into the segment file. Moves by `advance` only, never back. */
  readonly highWatermark: number
  /** Bytes of all entries, envelopes included, and when the first was appended (clock.monotonic; undefined: none yet). */
  readonly bytes: number
  readonly firstAppendAt: number | undefined
  readonly sealed: boolean
  /** Where it was sealed. With `end` below it the segment is incomplete: the rest is to be copied from others, by `install`. */
  readonly endEntry: number | undefined
  /** How many of its entries lie before its first fence; recovered, too, as long as the WAL has it. Undefined: none is known. */
  readonly fencedAt: number | undefined
  /**
   * The high watermark, or, found at start, a greater one that an envelope tells: so far it moved once. `highWatermark`
   * itself begins at 0 then, and the broker decides. Of a damaged segment it may lie above `end`: that much is lost here.
   */
  readonly knownHighWatermark: number
  /** Set by recovery when bytes that belong to this segment are lost: it must not be served. Says what. */
  readonly damage: string | undefined

  /**
   * Queues the entry for the WAL and puts it into the cache. Room must have been asked for with LogStore.room. The batch is
   * kept, not copied, and counts with its own length only: it must not be a view of a larger buffer that others fill again,
   * nor keep much of one alive.
   */
  append(entry: Entry): void
  /** highWatermark <= durableEnd. */
  advance(highWatermark: number): void
  /**
   * Writes a fence into the WAL, in this turn; resolves when that is synced, with the entries before it in LSN order: all
   * that was appended. Once per start; asked again, it is the same answer. What comes from the leader later is the caller's
   * to refuse. From then on the file takes entries above the high watermark too.
   */
  fence(): Promise<number>
  /**
   * No more appends; entries at or above `end` are dropped. Durable when it resolves. With fewer entries here the segment is
   * incomplete: what there is may be read. Rejects with STORAGE_FULL, and the segment is as before but for readers of its file,
   * who may be told the same: until it is sealed by another call. A disk that failed is told to the store's listener, too.
   */
  seal(end: number): Promise<void>
  /**
   * Entries that another replica has, at the end of a segment that has no leader any more: sealed and incomplete, fenced, or
   * found at start. Durable when it resolves. Room and buffers as for `append`. Rejects with DAMAGED, and takes none, when
   * they do not go on where the segment ends.
   */
  install(entries: readonly Entry[]): Promise<void>
  /**
   * What replicas of a sealed segment compare: the same for the same entries. All that is in the file is read and checked;
   * rejects with DAMAGED, and the segment is marked, when some of it is bad, and with NOT_READY while some is missing.
   */
  digest(): Promise<string>

  /**
   * Entries from `fromEntry` on in entry order from memory, durable or not, as many as fit `maxBytes` with their envelopes, at
   * least one if there is one. Undefined when memory does not reach back so far: `scan` does.
   */
  readEntries(fromEntry: number, maxBytes: number): readonly Entry[] | undefined

  /**
   * Entries of one partition from memory: from the one that holds `offset` (or the next after it), below the high
   * watermark, at least one if there is one, then as many as fit `maxBytes` of batch bytes. An empty array when the
   * partition has nothing more here; undefined when memory does not reach back to `offset`, so that the file must be read.
   */
  readCached(partition: number, offset: number, maxBytes: number): readonly Entry[] | undefined
  /** The same from wherever it is. Every entry was checked. Rejects with DAMAGED rather than serve a bad one. */
  read(partition: number, offset: number, maxBytes: number): Promise<readonly Entry[]>
  /** The first entry of the partition below the high watermark whose greatest record timestamp is >= `timestamp`. */
  readByTime(partition: number, timestamp: number): Promise<Entry | undefined>
  /** All entries from `fromEntry` on in entry order, durable ones only, a chunk at a time: for folding range state. */
  scan(fromEntry: number): AsyncIterable<readonly Entry[]>
  /**
   * The same of a segment that is marked as damaged: what there is of it is checked like everything else, and rejects with
   * DAMAGED where it is bad; but nobody knows whether it is all. For who has nothing better.
   */
  salvage(fromEntry: number): AsyncIterable<readonly Entry[]>
}

/**
 * ok: append. wait: too much is unflushed; the listener's `roomAgain` says when to try again. full: the disk is full
 * (STORAGE_FULL); `roomAgain` is called when there is space again.
 */
export type Room = 'ok' | 'wait' | 'full'

export interface LogStoreListener {
  roomAgain(): void
  /** How far it is with a step of its recovery, which takes long where there are many segments. */
  readonly recovering?: (step: string, done: number, of: number) => void
  /** The disk failed. Nothing more is acknowledged; the process must stop. Called once. */
  failed(error: Error): void
}

export interface LogStore {
  /** Before an entry gets its number: is there room for so many bytes in memory, WAL and disk? */
  room(bytes: number): Room
  /** For want of space on the disk, since something was refused for it. */
  readonly isFull: boolean
  /** Of the disk, about a second ago at most, less what was appended since. */
  readonly freeBytes: number
  /** Starts a group commit if something is queued and none runs. Call once per received chunk, not per request. */
  commit(): void
  /** A new, empty segment; no file is made before the first flush. */
  create(key: SegmentKey, listener: SegmentListener): SegmentLog
  /** A segment that recovery found, or that was created since; undefined when nothing of it is here. */
  find(key: SegmentKey): SegmentLog | undefined
  /** Every segment with data here, of one topic or of all, for comparing with the metadata. */
  keys(of?: TopicId): readonly SegmentKey[]
  /** Every topic that has anything here, if only a directory or a range state. */
  topics(): Promise<ReadonlySet<TopicId>>
  /** Flushes all entries below the high watermark to segment files and syncs them. */
  flush(): Promise<void>

  /** Range state at the start of a segment (PROTOCOLS §5), kept under a token until it is known which one committed. */
  stageState(key: SegmentKey, token: string, state: Uint8Array): Promise<void>
  /** The same with the tail of what comes before. Both are durable when it resolves. */
  stagePackage(key: SegmentKey, token: string, staged: StagedPackage): Promise<void>
  loadState(key: SegmentKey, token: string): Promise<Uint8Array | undefined>
  /** Drops all states staged for the segment but the one under `token`, and those of earlier segments. No tail. */
  keepState(key: SegmentKey, token: string): Promise<void>
  /** The tail of `of` that was stored under `token`, also when it is empty; undefined: none was. Rejects with DAMAGED. */
  loadTail(of: SegmentKey, token: string): Promise<readonly Entry[] | undefined>
  dropTail(of: SegmentKey, token: string): Promise<void>
  /** What is kept under tokens, for comparing with the metadata at start: states, and tails by the segment that they end. */
  staged(): Promise<{
    readonly states: readonly StagedFile[]
    readonly tails: readonly StagedFile[]
  }>

  /** For how long the oldest write and sync of the WAL has been under way; 0: none is. */
  oldestSyncAgeMs(): number

  /** Removes segments (retention) and their files. A crash in the middle is finished by the caller's next call. */
  dropSegments(keys: readonly SegmentKey[]): Promise<void>
  /**
   * Removes what is here of a sealed segment that others have, for it is damaged: it is created anew and copied. What was
   * known of its damage goes with it; states and tails stay. Refused by assertion while the metadata knows it as open: an
   * empty copy of an open segment would be believed.
   */
  replaceSegment(key: SegmentKey): Promise<void>
  /**
   * Of a segment that is marked, and of which it is known by now that it ends at `end`: all below is read, and when it is whole
   * and there, the mark is taken away, since what was lost lay at or above the end. False: some of it is bad or missing.
   */
  acquit(key: SegmentKey, end: number): Promise<boolean>
  /**
   * Removes everything of a topic, which the catalog has no more. Queued entries of it are dropped; its disk space is free
   * when it resolves. Without its name all directories are looked through.
   */
  dropTopic(topicId: TopicId, name?: string): Promise<void>

  /** Commits and flushes all, then closes. Appends after this are refused by assertion. */
  close(): Promise<void>
}

/** What a broker that was chosen for a segment stores before it is opened. */
export interface StagedPackage {
  readonly state: Uint8Array
  /** The last entries of the predecessor, in entry order; perhaps none. Absent: there is no predecessor. */
  readonly tail?: { readonly of: SegmentKey; readonly entries: readonly Entry[] }
}

export interface StagedFile {
  readonly key: SegmentKey
  readonly token: string
}

export interface LogStoreOptions {
  readonly walFileBytes: number
  /** Memory for the recent tail of all segments, unflushed bytes included. */
  readonly cacheBytes: number
  /** At this many unflushed bytes `room` says wait. Less than cacheBytes. */
  readonly unflushedBytesMax: number
  /** A segment file grows by blocks of about this size; smaller ones when entries wait longer than flushAgeMs. */
  readonly blockBytes: number
  readonly flushAgeMs: number
  /** WAL files in use at most, before segments are flushed to free the oldest. */
  readonly walFilesMax: number
  /** Free bytes on the disk below which `room` says full. */
  readonly reserveBytes: number
}

export interface Catalog {
  /** The directory of a topic bears its name. Undefined: the topic was deleted, and entries of it are dropped. */
  topicName(topicId: TopicId): string | undefined
  /**
   * Every segment that the metadata knows to be here. Asked at recovery, to tell what was dropped from what is missing, and
   * segments that are whole from those that a loss in the WAL may have touched.
   */
  segments(): Iterable<CatalogSegment>
}

export interface CatalogSegment {
  readonly key: SegmentKey
  /** Absent while it is open. */
  readonly endEntry?: number
  /** Others hold it too: what is missing here of a sealed segment is no loss. */
  readonly elsewhere?: boolean
}
