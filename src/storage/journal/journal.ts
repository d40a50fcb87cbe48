// The metadata journal: records of many shards in one log with one sync for all that a turn brings, and a snapshot file
// per shard, so that the log stays short. The log is the WAL's generic layer (storage/wal/record-log.ts); what is said
// there about groups, torn tails and damage holds here.
//
//   journal/<20 digits>.wal       records {u32 shard, i64 position, bytes}, of all shards as they came
//   journal/<8 digits>.snapshot   a shard's state; every record of it below a position is in it
//   journal/carried               records that the last start found and that no snapshot covers
//
// Positions count a journal's records, 1, 2, 3, ..., over all its starts. They are written out rather than taken from
// the log's own numbers because the carried records are older than the log that stands beside them.
//
// Opening:  snapshots + (carried, log) by position  ──>  what counts  ──>  carried (synced)  ──>  a new log
//
// What a killed process had written is readable but perhaps not durable, so all of it goes into `carried`, whole or
// not at all, before the old log files may be reused. A crash anywhere in between finds the same records again: in the
// old log, in `carried`, or in both. Damage is never skipped: metadata that is not whole is refused.

import { ByteReader, ByteWriter, Truncated } from '../../base/cursor.ts'
import { EastGuardError } from '../../base/errors.ts'
import type { Clock } from '../../ports/clock.ts'
import type { Disk } from '../../ports/disk.ts'
import type { Log } from '../../ports/log.ts'
import type { Random } from '../../ports/random.ts'
import { readChecked, writeChecked } from '../checked-file.ts'
import { listTopics } from '../recovery/on-disk.ts'
import { TOPICS_DIR } from '../segment/paths.ts'
import { beginRecordLog } from '../wal/record-log.ts'
import { type RecoveredLog, recoverLog } from '../wal/recover.ts'
import type { LogIdentity, LogRecovery, RecordLog } from '../wal/types.ts'
import { listSnapshots, readSnapshot, snapshotPath, writeSnapshot } from './snapshot-file.ts'

export const JOURNAL_DIR = 'journal'
const CARRIED = `${JOURNAL_DIR}/carried`
const KIND_RECORD = 2
/** shard and position. */
const RECORD_HEAD_BYTES = 12
const CARRIED_BYTES_LEAST = RECORD_HEAD_BYTES + 4

export interface JournalOptions {
  readonly disk: Disk
  readonly clock: Clock
  readonly random: Random
  readonly log: Log
  readonly fileBytes: number
  readonly identity: LogIdentity
  /** A write or sync failed: nothing more is durable, the process must stop. Called once. */
  onFailed(error: Error): void
  /** This broker may never have been a member of any shard: others keep what its topics are. */
  readonly mayHoldNothing?: boolean
}

interface JournalRecord {
  readonly position: number
  readonly bytes: Uint8Array
}

/** What a shard had when the journal was opened. */
export interface RecoveredShard {
  readonly snapshot: Uint8Array | undefined
  /** In order; all that the snapshot does not cover. */
  readonly records: readonly JournalRecord[]
}

export interface Journal {
  /** What was found when it was opened; shards of which nothing was found are missing. */
  readonly recovered: ReadonlyMap<number, RecoveredShard>
  /** Queues a record and returns its position. It is durable when a later `sync` resolves. */
  append(shard: number, record: Uint8Array): number
  /** Everything appended so far is durable. Rejects when the disk has failed. */
  sync(): Promise<void>
  /**
   * Stores a shard's state, in which every record of it below `position` is contained; these need not be kept then.
   * Rejects with a DiskError when the disk is full: then nothing has changed.
   */
  saveSnapshot(shard: number, state: Uint8Array, position: number): Promise<void>
  /** Of records that no snapshot covers. */
  bytesSinceSnapshot(shard: number): number
  /** What the next record's position will be. */
  readonly nextPosition: number
  /** The shard whose records the oldest file is kept for: its snapshot frees the most. Undefined: none is. */
  readonly holdsBack: number | undefined
  /** Whether so many bytes more can be made durable; false only when the disk gives no space for more files. */
  hasRoom(bytes: number): boolean
  readonly filesInUse: number
  close(): Promise<void>
}

interface Shard {
  /** Records at and above it are not in a snapshot. */
  covered: number
  /** No such record lies below it. */
  first: number
  /** The newest record's position. */
  last: number
  bytes: number
}

/** Rejects with DAMAGED, saying what, when something that was durable is not there any more. */
export async function openJournal(options: JournalOptions): Promise<Journal> {
  const { disk } = options
  await disk.makeDir(JOURNAL_DIR)
  await disk.syncDir('.')
  const { found, snapshots, records } = await readAll(disk, options.mayHoldNothing)
  await carry(disk, records)
  const log = await beginRecordLog(found, {
    ...options,
    dir: JOURNAL_DIR,
    onSpace: () => {},
    onRotated: () => {},
  })
  return new LoggedJournal(disk, log, snapshots, records)
}

/** What every shard has, changing nothing. Rejects as openJournal does. */
export async function readJournal(disk: Disk): Promise<ReadonlyMap<number, RecoveredShard>> {
  const { snapshots, records } = await readAll(disk)
  return shardsOf(snapshots, records)
}

interface Found {
  readonly found: RecoveredLog
  readonly snapshots: ReadonlyMap<number, Snapshot>
  readonly records: readonly ShardRecord[]
}

async function readAll(disk: Disk, mayHoldNothing: boolean = false): Promise<Found> {
  const found = await recoverLog(disk, JOURNAL_DIR)
  refuseDamage(found)
  const snapshots = await readSnapshots(disk)
  const records = await uncovered(disk, found, snapshots)
  const nothing = snapshots.size === 0 && records.length === 0
  if (nothing && !mayHoldNothing) await refuseForgotten(disk)
  return { found, snapshots, records }
}

/**
 * A journal that was cut off at its front looks like one that was never written. A topic is in the journal before it has
 * a directory, so directories without a journal are no rest of a deletion, and must not be removed as one.
 */
async function refuseForgotten(disk: Disk): Promise<void> {
  const topics = await listTopics(disk)
  if (topics.length === 0) return
  const message = `the metadata journal is damaged: ${JOURNAL_DIR}/ holds nothing, but ${TOPICS_DIR}/ holds ${topics.length} of its topics`
  throw new EastGuardError('DAMAGED', message, { detail: { topics } })
}

function shardsOf(
  snapshots: ReadonlyMap<number, Snapshot>,
  records: readonly ShardRecord[],
): ReadonlyMap<number, RecoveredShard> {
  const shards = new Map<number, { snapshot: Uint8Array | undefined; records: JournalRecord[] }>()
  for (const [number, { state }] of snapshots) shards.set(number, { snapshot: state, records: [] })
  for (const record of records) {
    const shard = shards.get(record.shard) ?? { snapshot: undefined, records: [] }
    shards.set(record.shard, shard)
    shard.records.push(record)
  }
  return shards
}

interface Snapshot {
  readonly state: Uint8Array
  readonly position: number
}
interface ShardRecord extends JournalRecord {
  readonly shard: number
}

function refuseDamage(found: LogRecovery): void {
  if (found.lost.length === 0) return
  const reasons = found.lost.map((span) => span.reason)
  throw new EastGuardError('DAMAGED', `the metadata journal is damaged: ${reasons.join('; ')}`, {
    detail: { reasons },
  })
}

async function readSnapshots(disk: Disk): Promise<ReadonlyMap<number, Snapshot>> {
  const found = new Map<number, Snapshot>()
  for (const shard of await listSnapshots(disk, JOURNAL_DIR)) {
    found.set(shard, await readSnapshot(disk, snapshotPath(JOURNAL_DIR, shard), shard))
  }
  return found
}

/** What was carried over and what the log holds, each record once, without what snapshots cover. */
async function uncovered(
  disk: Disk,
  found: LogRecovery,
  snapshots: ReadonlyMap<number, Snapshot>,
): Promise<readonly ShardRecord[]> {
  const records: ShardRecord[] = []
  let last = 0
  const take = (record: ShardRecord): void => {
    if (record.position <= last) return
    last = record.position
    if (record.position >= (snapshots.get(record.shard)?.position ?? 0)) records.push(record)
  }
  for (const record of decodeCarried(await readChecked(disk, CARRIED))) take(record)
  for await (const chunk of found.replay()) {
    for (const { payload } of chunk) {
      const r = new ByteReader(payload)
      const shard = r.u32()
      const position = r.i64()
      // The chunk is valid until the next one only.
      take({ shard, position, bytes: r.raw(r.left).slice() })
    }
  }
  return records
}

/** Makes the records durable beside the log that held them, in one file that is there whole or not at all. */
async function carry(disk: Disk, records: readonly ShardRecord[]): Promise<void> {
  if (records.length === 0) {
    await disk.remove(CARRIED)
    await disk.syncDir(JOURNAL_DIR)
    return
  }
  const w = new ByteWriter(4096)
  w.u32(records.length)
  for (const { shard, position, bytes } of records) w.u32(shard).i64(position).blob(bytes)
  await writeChecked(disk, CARRIED, w.finish())
}

function decodeCarried(content: Uint8Array | undefined): readonly ShardRecord[] {
  if (content === undefined) return []
  const r = new ByteReader(content)
  try {
    return Array.from({ length: r.count(CARRIED_BYTES_LEAST) }, () => ({
      shard: r.u32(),
      position: r.i64(),
      bytes: r.blob(),
    }))
  } catch (error) {
    if (!(error instanceof Truncated)) throw error
    throw new EastGuardError('DAMAGED', `${CARRIED} is damaged: ${error.message}`, { cause: error })
  }
}

class LoggedJournal implements Journal {
  readonly recovered: ReadonlyMap<number, RecoveredShard>
  private readonly disk: Disk
  private readonly log: RecordLog
  private readonly shards: Map<number, Shard> = new Map()
  private next = 1
  /** Positions and the log's own numbers grow together; they differ by this much. */
  private readonly lsnOffset: number

  constructor(
    disk: Disk,
    log: RecordLog,
    snapshots: ReadonlyMap<number, Snapshot>,
    records: readonly ShardRecord[],
  ) {
    this.disk = disk
    this.log = log
    for (const [number, { position }] of snapshots) {
      this.shards.set(number, { covered: position, first: position, last: position - 1, bytes: 0 })
      this.next = Math.max(this.next, position)
    }
    for (const record of records) {
      this.count(record.shard, record.position, record.bytes.length)
      this.next = Math.max(this.next, record.position + 1)
    }
    this.lsnOffset = log.nextLsn - this.next
    this.recovered = shardsOf(snapshots, records)
  }

  get filesInUse(): number {
    return this.log.filesInUse
  }

  get nextPosition(): number {
    return this.next
  }

  get holdsBack(): number | undefined {
    let oldest: number | undefined
    let needed = this.next
    for (const [number, { first, last, covered }] of this.shards) {
      if (last < covered || first >= needed) continue
      needed = first
      oldest = number
    }
    return oldest
  }

  append(shard: number, record: Uint8Array): number {
    const position = this.next++
    // One copy, of a few hundred bytes as a rule: the record gets its head.
    const w = new ByteWriter(RECORD_HEAD_BYTES + record.length)
    this.log.append(KIND_RECORD, w.u32(shard).i64(position).raw(record).finish())
    this.count(shard, position, record.length)
    return position
  }

  sync(): Promise<void> {
    return this.log.sync()
  }

  async saveSnapshot(shard: number, state: Uint8Array, position: number): Promise<void> {
    const bytes = this.bytesSinceSnapshot(shard)
    await writeSnapshot(this.disk, snapshotPath(JOURNAL_DIR, shard), shard, state, position)
    const known = this.shards.get(shard)
    if (known === undefined) return
    known.covered = position
    known.first = Math.max(known.first, position)
    // What came while the file was written is counted on; a little too much where it was appended before.
    known.bytes -= bytes
    this.release()
  }

  bytesSinceSnapshot(shard: number): number {
    return this.shards.get(shard)?.bytes ?? 0
  }

  hasRoom(bytes: number): boolean {
    return !this.log.blocked || this.log.hasRoom(RECORD_HEAD_BYTES + bytes)
  }

  close(): Promise<void> {
    return this.log.close()
  }

  private count(number: number, position: number, bytes: number): void {
    const shard = this.shards.get(number)
    if (shard === undefined) {
      this.shards.set(number, { covered: position, first: position, last: position, bytes })
      return
    }
    // A shard that was idle does not keep what the others wrote meanwhile.
    if (shard.last < shard.covered) shard.first = position
    shard.last = position
    shard.bytes += bytes
  }

  /** The log is needed from the first record that some shard has in no snapshot. */
  private release(): void {
    let needed = this.next
    for (const shard of this.shards.values()) {
      if (shard.last >= shard.covered) needed = Math.min(needed, shard.first)
    }
    // Carried records are older than this log, which then stays whole.
    this.log.releaseBelow(needed + this.lsnOffset)
  }
}
