// A segment engine over a simulated disk and a WAL that only numbers: what a test says is synced, is. Beside it the
// model: every entry that was appended, in order, and the plainest way to answer a read from it.

import { putI64, putU32 } from '../../../src/base/bytes.ts'
import { maxTimestamp, placeBatch, setBatchCrc } from '../../../src/model/batch/header.ts'
import type { Entry } from '../../../src/model/entry.ts'
import { topicId } from '../../../src/model/ids.ts'
import type { SegmentKey } from '../../../src/model/segment-key.ts'
import type { Disk } from '../../../src/ports/disk.ts'
import { DurableDirs } from '../../../src/storage/durable-dirs.ts'
import { openSegmentEngine } from '../../../src/storage/flusher.ts'
import type {
  SegmentEngine,
  SegmentEnv,
  StoredSegment,
} from '../../../src/storage/segment/types.ts'
import type { LogStoreOptions, SegmentListener, SegmentLog } from '../../../src/storage/types.ts'
import type { Wal, WalTarget } from '../../../src/storage/wal/types.ts'
import { keptLog, type ManualClock, manualClock, settle } from '../support/ports.ts'

export const KEY: SegmentKey = {
  topicId: topicId('00112233445566778899aabbccddeeff'),
  range: 0,
  segment: 1,
}
export const BASE: string = `topics/t-${KEY.topicId}/range-0/00000000000000000001`

interface FakeWal extends Wal {
  readonly records: { lsn: number; target: WalTarget; entry: Entry }[]
  released: number
  filesInUse: number
  oldestFileEndLsn: number
  /** Everything appended so far is synced. */
  sync(): void
}

function fakeWal(): FakeWal {
  const wal: FakeWal = {
    records: [],
    released: 0,
    nextLsn: 1,
    filesInUse: 1,
    oldestFileEndLsn: 0,
    bytesQueued: 0,
    append(target: WalTarget, entry: Entry) {
      const lsn = wal.nextLsn
      ;(wal as { nextLsn: number }).nextLsn++
      wal.records.push({ lsn, target, entry })
      return lsn
    },
    appendRecord: () => ({ lsn: 0, synced: Promise.resolve() }),
    commit() {},
    releaseBelow(lsn: number) {
      wal.released = Math.max(wal.released, lsn)
    },
    hasRoom: () => true,
    recordBytes: (bytes: number) => bytes,
    close: async () => {},
    sync() {
      const ends = new Map<WalTarget, number>()
      for (const { target, entry } of wal.records) ends.set(target, entry.entryNumber + 1)
      for (const [target, end] of ends) target.walDurable(end)
    },
  } as unknown as FakeWal
  return wal
}

const OPTIONS: LogStoreOptions = {
  walFileBytes: 1 << 20,
  cacheBytes: 64 * 1024,
  unflushedBytesMax: 48 * 1024,
  blockBytes: 4096,
  flushAgeMs: 1000,
  walFilesMax: 4,
  reserveBytes: 0,
}

export interface Rig {
  readonly engine: SegmentEngine
  readonly clock: ManualClock
  readonly wal: FakeWal
  readonly failures: Error[]
}

export function rig(
  disk: Disk,
  options: Partial<LogStoreOptions> = {},
  recordEnd: SegmentEnv['recordEnd'] = async () => {},
): Rig {
  const clock = manualClock()
  const wal = fakeWal()
  const failures: Error[] = []
  const engine = openSegmentEngine({
    disk,
    clock,
    log: keptLog(),
    catalog: { topicName: () => 't', segments: () => [] },
    options: { ...OPTIONS, ...options },
    durableDirs: new DurableDirs(disk),
    unreadableIsDamage: false,
    wal: () => wal,
    recordEnd,
    synced: async () => wal.sync(),
    failed: (error) => void failures.push(error),
    roomAgain: () => {},
  })
  return { engine, clock, wal, failures }
}

export const LISTENER: SegmentListener = { durable: () => {} }

export function batchOf(
  bytes: number,
  records: number,
  timestamp: number,
  fill: number,
): Uint8Array {
  const batch = new Uint8Array(Math.max(61, bytes)).fill(fill, 61)
  putU32(batch, 8, batch.length - 12)
  batch[16] = 2
  putU32(batch, 23, records - 1)
  putI64(batch, 27, timestamp)
  putI64(batch, 35, timestamp)
  putU32(batch, 57, records)
  setBatchCrc(batch)
  return batch
}

/** All that was appended, and the slow right answers. */
export class Model {
  readonly entries: Entry[] = []
  private readonly next: Map<number, number> = new Map()

  make(partition: number, bytes: number, records: number = 1, timestamp: number = 0): Entry {
    const batch = batchOf(bytes, records, timestamp, this.entries.length & 0xff)
    const baseOffset = this.next.get(partition) ?? 0
    placeBatch(batch, baseOffset, KEY.segment)
    const entry: Entry = {
      entryNumber: this.entries.length,
      partition,
      baseOffset,
      recordCount: records,
      logTimeMs: 0,
      highWatermark: 0,
      leastKeyHash: 0,
      greatestKeyHash: 0xffffffff,
      batch,
    }
    this.entries.push(entry)
    this.next.set(partition, baseOffset + records)
    return entry
  }

  read(partition: number, offset: number, maxBytes: number, highWatermark: number): Entry[] {
    const found: Entry[] = []
    let bytes = 0
    for (const entry of this.entries.slice(0, highWatermark)) {
      if (entry.partition !== partition || entry.baseOffset + entry.recordCount <= offset) continue
      bytes += entry.batch.length
      if (found.length > 0 && bytes > maxBytes) break
      found.push(entry)
    }
    return found
  }

  byTime(partition: number, timestamp: number, highWatermark: number): Entry | undefined {
    return this.entries
      .slice(0, highWatermark)
      .find((e) => e.partition === partition && maxTimestamp(e.batch) >= timestamp)
  }
}

/** Appended, synced in the WAL and committed. */
export function appendAll(rig: Rig, segment: StoredSegment, entries: readonly Entry[]): void {
  for (const entry of entries) segment.append(entry)
  rig.wal.sync()
  segment.advance(segment.end)
}

export function plain(entries: readonly Entry[] | undefined): unknown {
  return entries?.map(({ batch, ...rest }) => ({
    ...rest,
    batch: Buffer.from(batch).toString('hex'),
  }))
}

export async function scanAll(segment: SegmentLog, from: number = 0): Promise<Entry[]> {
  const all: Entry[] = []
  for await (const entries of segment.scan(from)) all.push(...entries)
  return all
}

export async function until(condition: () => boolean): Promise<void> {
  for (let i = 0; i < 1000 && !condition(); i++) await settle()
  if (!condition()) throw new Error('it never came to that')
}

/** A disk whose reads and open files are counted. */
export function counted(disk: Disk): Disk & { readBytes: number; openFiles: number } {
  const counting: Disk & { readBytes: number; openFiles: number } = {
    readBytes: 0,
    openFiles: 0,
    makeDir: (path) => disk.makeDir(path),
    list: (path) => disk.list(path),
    rename: (from, to) => disk.rename(from, to),
    remove: (path) => disk.remove(path),
    syncDir: (path) => disk.syncDir(path),
    space: () => disk.space(),
    lock: (path) => disk.lock(path),
    async open(path, options) {
      const file = await disk.open(path, options)
      counting.openFiles++
      return {
        path,
        async read(into, position) {
          const got = await file.read(into, position)
          counting.readBytes += got
          return got
        },
        write: (buffers, position) => file.write(buffers, position),
        sync: () => file.sync(),
        size: () => file.size(),
        truncate: (length) => file.truncate(length),
        allocate: (length) => file.allocate(length),
        close() {
          counting.openFiles--
          return file.close()
        },
      }
    },
  }
  return counting
}
