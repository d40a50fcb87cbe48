// The write-ahead log seen from its two users. Below sits one generic layer (group-log.ts, files.ts, scan.ts): records
// of a kind and opaque bytes, numbered by LSN, synced in groups, in recycled files. Above it stand
//
//   Wal         the data log: entries of all segments of a broker, and the control records (seals, fences)
//   RecordLog   records as they come, for the metadata journal
//
// Both hand out the LSN at once and report what was synced once per group. After a failed write or sync nothing is
// reported any more: `failed` was called, and the process must stop.

import type { Entry, SegmentPlace } from '../../model/entry.ts'

/** One segment, as the WAL needs it. */
export interface WalTarget {
  readonly place: SegmentPlace
  /** The WAL's own, so that a group finds its targets without a Map. Begin with 0 and leave it alone. */
  walSlot: number
  /** All entries of this target below `endEntry` are synced. Once per group and target, in order of first LSN. */
  walDurable(endEntry: number): void
}

/** A record that was given its LSN at once and resolves when it is synced. */
export interface QueuedRecord {
  readonly lsn: number
  readonly synced: Promise<void>
}

/** The kinds of records in the data WAL. 1 is the group header's (record.ts), in every log. */
export const KIND_ENTRY = 2
export const KIND_SEAL = 3
export const KIND_FENCE = 4

export interface Wal {
  /** Queues an entry and returns its LSN: dense, growing by one. Encoded later, so the entry must not change. */
  append(target: WalTarget, entry: Entry): number
  /** Queues a control record (control.ts has their payloads) and starts a commit. Has room of its own when the WAL is full. */
  appendRecord(kind: number, payload: Uint8Array): QueuedRecord
  /** Starts a group commit if something is queued and none runs. */
  commit(): void
  /** Every record below `lsn` is synced elsewhere (or needed no more): files that hold only such are reused. */
  releaseBelow(lsn: number): void
  /** The LSN that the next append will get. Released below it, the WAL holds nothing back. */
  readonly nextLsn: number
  /** Files that hold records not yet released, the current one included. */
  readonly filesInUse: number
  /** The first LSN that is not in the oldest file in use: flushing what lies below it frees that file. */
  readonly oldestFileEndLsn: number
  /** Bytes queued and not yet handed to the disk. */
  readonly bytesQueued: number
  /** For how long the write and sync that is under way has been; 0: there is none. */
  readonly syncAgeMs: number
  /** True when the files at hand take entries of so many bytes of batches on top of what is queued. */
  hasRoom(batchBytes: number): boolean
  /** Commits what is queued, waits for it, writes a last mark, closes the files. */
  close(): Promise<void>
}

/** A log of opaque records, for the journal. */
export interface RecordLog {
  /** Queues a record of a caller's kind (2 to 255) and returns its LSN. The payload must not change until it is synced. */
  append(kind: number, payload: Uint8Array): number
  commit(): void
  /** Resolves when everything appended so far is synced; rejects when the log has failed. Starts a commit. */
  sync(): Promise<void>
  releaseBelow(lsn: number): void
  readonly nextLsn: number
  readonly filesInUse: number
  /** True when the files at hand take so many bytes of payload on top of what is queued. */
  hasRoom(payloadBytes: number): boolean
  /** There is no file ahead, and the disk gave no space for one. */
  readonly blocked: boolean
  close(): Promise<void>
}

/** Whose log it is; in every file header. A log that is behind or another's must not be used (PROTOCOLS §3). */
export interface LogIdentity {
  readonly nodeIdBytes: Uint8Array
  readonly bootCount: number
}

export interface LogRecord {
  readonly lsn: number
  readonly kind: number
  /** A view, valid until the next chunk is asked for. */
  readonly payload: Uint8Array
}

/** Records [fromLsn, endLsn) are lost although they were once synced. */
export interface LostSpan {
  readonly fromLsn: number
  /** Undefined: nobody knows how far it goes. */
  readonly endLsn: number | undefined
  /** Which file, at which byte, what was found. */
  readonly reason: string
  /** Where the first of them stood, when that is known; `endPosition` when what comes next is in the same file. */
  readonly place?: {
    readonly sequence: number
    readonly position: number
    readonly endPosition: number | undefined
  }
}

/** A record that is lost, but for its bytes, which do not check. */
export interface LostRecord {
  readonly lsn: number
  /** As they are on disk. */
  readonly payload: Uint8Array
}

/** What a log directory holds at start, before anything is written. */
export interface LogRecovery {
  /** From the newest generation's headers; undefined when there is no log here yet. */
  readonly identity: LogIdentity | undefined
  /** Empty when all is well. A torn tail of the last, unacknowledged group is no damage. */
  readonly lost: readonly LostSpan[]
  /** Records [firstLsn, endLsn) are accepted, but for the lost spans. */
  readonly firstLsn: number
  readonly endLsn: number
  /** All accepted records in LSN order, in chunks of about a MiB. May be called again. */
  replay(): AsyncIterable<readonly LogRecord[]>
  /**
   * The lost spans that are a single record whose place is known. Its payload may have checksums of its own that say more;
   * nothing in it may be believed without.
   */
  lostRecords(): AsyncIterable<LostRecord>
}
