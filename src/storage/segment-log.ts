// One segment: its numbers, the tail in memory, and the file behind it. The numbers only grow, in this order:
//
//   0 ... syncedEnd <= writtenEnd <= highWatermark <= durableEnd <= end
//         |            |             |                |             `- appended: in memory, queued for the WAL
//         |            |             |                `- synced, in the WAL or in the file
//         |            |             `- committed: may be read, may go into the file
//         |            `- in the file: may leave memory
//         `- synced in the file: the WAL may forget it
//
// (Of a fenced segment, or one that was recovered, the file takes all that is durable: the tail above the high watermark waits
// there for its outcome, and does not hold the WAL. Of a sealed segment there may be less than its end: it is incomplete.)
// Writing to the file is the flusher's business; it calls the methods of segment/writer.ts on what is here.

import { assert } from '../base/assert.ts'
import { EastGuardError } from '../base/errors.ts'
import { ENVELOPE_BYTES, type Entry, type SegmentPlace } from '../model/entry.ts'
import { placeOfKey, type SegmentKey } from '../model/segment-key.ts'
import { Queue } from './cache/queue.ts'
import { Tail } from './cache/tail.ts'
import { IndexSlot } from './index/index-file.ts'
import type { SegmentContext } from './segment/context.ts'
import { checkCopies } from './segment/copies.ts'
import { EntryDigest } from './segment/digest.ts'
import { LogFile } from './segment/file.ts'
import { placeSeed } from './segment/format.ts'
import { SCAN_ENTRIES, SegmentReads } from './segment/reads.ts'
import type { StoredSegment } from './segment/types.ts'
import { type BegunCut, cutSegment, SegmentWriter } from './segment/writer.ts'
import type { SegmentListener } from './types.ts'
import { KIND_FENCE, KIND_SEAL } from './wal/types.ts'

/** The files of a segment that has some. */
export interface SegmentFiles {
  /** The path without its extension. */
  readonly base: string
  readonly log: LogFile
  readonly index: IndexSlot
}

export class Segment implements StoredSegment {
  readonly key: SegmentKey
  readonly place: SegmentPlace
  readonly context: SegmentContext
  readonly writer: SegmentWriter
  walSlot = 0
  end = 0
  durableEnd = 0
  highWatermark = 0
  bytes = 0
  firstAppendAt: number | undefined
  sealed = false
  endEntry: number | undefined
  fencedAt: number | undefined
  damage: string | undefined
  retired = false
  /** While a cut rewrites the end of the file; rejected when it could not, until it is tried again. */
  cutting: Promise<void> | undefined
  /** One that is not done. */
  begunCut: BegunCut | undefined
  cuts = 0
  tail: Tail
  files: SegmentFiles | undefined
  /** LSNs of the entries from syncedEnd on. */
  readonly lsns: Queue<number> = new Queue()
  private readonly listener: SegmentListener | undefined
  readonly reads: SegmentReads
  /** Found at start: no leader continues it. */
  private readonly recovered: boolean
  /** See OpenSegment. */
  repairable = false
  /** See SegmentEngine.create. */
  pathFree: Promise<unknown> | undefined
  /** The greatest high watermark in envelopes that were recovered. */
  private heardHighWatermark = 0
  private fencing: Promise<number> | undefined
  private sealing: Promise<void> | undefined
  /** By a seal that could do no more: the room for such records is the log's last. */
  private sealRecorded = false

  constructor(
    context: SegmentContext,
    key: SegmentKey,
    listener: SegmentListener | undefined,
    recovered: boolean,
  ) {
    this.context = context
    this.key = key
    this.place = placeOfKey(key)
    this.listener = listener
    this.recovered = recovered
    this.tail = new Tail(context.budget, 0)
    this.writer = new SegmentWriter(this)
    this.reads = new SegmentReads(this, context.ahead)
  }

  get knownHighWatermark(): number {
    return Math.max(this.highWatermark, this.heardHighWatermark)
  }

  /** What lies above the high watermark waits for its outcome. */
  private get unresolved(): boolean {
    return this.recovered || this.fencedAt !== undefined
  }

  /** Entries below it may be written to the file. */
  get flushLimit(): number {
    return this.unresolved ? this.durableEnd : this.highWatermark
  }

  append(entry: Entry): void {
    assert(!this.sealed, 'nothing is appended to a sealed segment')
    this.queue(entry)
  }

  private queue(entry: Entry): void {
    assert(!this.retired, 'nothing is appended to a segment that is gone')
    assert(entry.entryNumber === this.end, 'entry numbers are dense')
    this.writer.appended()
    this.accept(entry)
    this.lsns.push(this.context.wal.append(this, entry))
  }

  private accept(entry: Entry): void {
    this.firstAppendAt ??= this.context.env.clock.monotonic()
    this.tail.push(entry)
    this.end++
    this.bytes += ENVELOPE_BYTES + entry.batch.length
  }

  walDurable(endEntry: number): void {
    const durable = Math.min(endEntry, this.end)
    if (this.retired || durable <= this.durableEnd) return
    this.durableEnd = durable
    if (this.unresolved) this.mayFlush(durable)
    this.listener?.durable(this)
  }

  advance(highWatermark: number): void {
    assert(highWatermark <= this.durableEnd, 'only durable entries are committed')
    if (highWatermark <= this.highWatermark || this.retired) return
    this.highWatermark = highWatermark
    this.mayFlush(highWatermark)
  }

  private mayFlush(end: number): void {
    this.writer.flushable(end)
    this.context.flusher.advanced(this)
  }

  fence(): Promise<number> {
    this.fencing ??= this.recordFence()
    return this.fencing
  }

  private async recordFence(): Promise<number> {
    this.checkHere()
    const { end } = this
    this.fencedAt ??= end
    this.mayFlush(this.durableEnd)
    await this.context.env.recordEnd(KIND_FENCE, this.key, end)
    return end
  }

  seal(end: number): Promise<void> {
    // One at a time: it is under way, or done.
    if (this.sealing !== undefined && this.endEntry === end) return this.sealing
    this.sealing = this.sealAt(end)
    return this.sealing
  }

  private async sealAt(end: number): Promise<void> {
    assert(end >= this.highWatermark, 'a seal keeps what was committed')
    this.sealed = true
    this.endEntry = end
    const { flusher } = this.context
    try {
      // Entries that the seal drops may be on their way to the file.
      if (this.unresolved) await flusher.hold(this)
      await this.sealHeld(end)
    } catch (error) {
      this.sealed = false
      this.endEntry = undefined
      this.sealFailed(error)
      throw error
    } finally {
      flusher.letGo(this)
    }
  }

  /** A full disk, and what cannot be read, are told to whoever wants the seal. All else is final, as in the flusher. */
  private sealFailed(error: unknown): void {
    const final = !(error instanceof EastGuardError) || error.code === 'DISK_FAILED'
    if (final && !this.retired) this.context.flusher.fail(error)
  }

  private async sealHeld(end: number): Promise<void> {
    if (this.retired) return
    this.forgetFrom(Math.max(end, this.writer.writtenEnd))
    // What was queued before the record is synced with it; what `install` adds meanwhile is not.
    const kept = Math.min(end, this.end)
    if (!this.sealRecorded) await this.context.env.recordEnd(KIND_SEAL, this.key, end)
    this.sealRecorded = true
    if (this.retired) return
    if (end < this.writer.writtenEnd) await cutSegment(this, end)
    this.durableEnd = Math.max(this.durableEnd, kept)
    this.advance(kept)
  }

  /** Drops unwritten entries at or above `end`. */
  forgetFrom(end: number): void {
    if (end >= this.end) return
    this.writer.forget(end)
    this.bytes -= this.tail.dropFrom(end) + (this.end - end) * ENVELOPE_BYTES
    while (this.lsns.length > end - this.writer.syncedEnd) this.lsns.pop()
    this.end = end
    this.durableEnd = Math.min(this.durableEnd, end)
  }

  async install(entries: readonly Entry[]): Promise<void> {
    this.checkServed()
    assert(this.sealed || this.unresolved, 'copies are put into a segment that has no leader')
    checkCopies(this, this.tail, entries)
    for (const entry of entries) this.queue(entry)
    this.context.wal.commit()
    await this.context.env.synced()
    if (this.sealed) this.advance(Math.min(this.durableEnd, this.endEntry ?? 0))
  }

  readEntries(fromEntry: number, maxBytes: number): readonly Entry[] | undefined {
    if (this.damage !== undefined || this.retired || fromEntry < this.tail.start) return undefined
    return this.tail.sliceBytes(fromEntry, maxBytes)
  }

  async digest(): Promise<string> {
    await this.sealing?.catch(() => undefined)
    if (this.end !== this.endEntry) {
      const what = `segment ${this.key.segment} is not sealed, or not all of it is here`
      throw new EastGuardError('NOT_READY', `${what}: it has no digest yet`)
    }
    const digest = new EntryDigest(this.place)
    for (let next = 0; next < this.end; ) {
      this.checkServed()
      // From the file what is in it, though memory may have it too: it is the file that is proven.
      const inFile = next < this.writer.writtenEnd
      const entries = inFile
        ? await this.reads.blockOf(next)
        : this.tail.slice(next, Math.min(this.end, next + SCAN_ENTRIES))
      for (const entry of entries) if (entry.entryNumber >= next) digest.add(entry)
      next = (entries.at(-1) as Entry).entryNumber + 1
      await this.context.turn()
    }
    return digest.hex()
  }

  readCached(partition: number, offset: number, maxBytes: number): readonly Entry[] | undefined {
    if (this.damage !== undefined || this.retired) return undefined
    return this.tail.read(partition, offset, maxBytes, this.highWatermark)
  }

  read(partition: number, offset: number, maxBytes: number): Promise<readonly Entry[]> {
    return this.reads.read(partition, offset, maxBytes)
  }

  readByTime(partition: number, timestamp: number): Promise<Entry | undefined> {
    return this.reads.readByTime(partition, timestamp)
  }

  scan(fromEntry: number): AsyncIterable<readonly Entry[]> {
    return this.reads.scan(fromEntry)
  }

  salvage(fromEntry: number): AsyncIterable<readonly Entry[]> {
    return this.reads.scan(fromEntry, true)
  }

  /** What was lost lies at or above its end. */
  acquitted(): void {
    this.damage = undefined
  }

  /** Throws what a reader is told when there is nothing to read any more. */
  checkServed(): void {
    if (this.damage !== undefined) throw new EastGuardError('DAMAGED', this.damage)
    this.checkHere()
  }

  private checkHere(): void {
    if (this.retired) {
      throw new EastGuardError(
        'OFFSET_OUT_OF_RANGE',
        `segment ${this.key.segment} of range ${this.key.range} was dropped`,
      )
    }
  }

  recover(entry: Entry): boolean {
    this.heardHighWatermark = Math.max(this.heardHighWatermark, entry.highWatermark)
    if (entry.entryNumber < this.end) return false
    if (entry.entryNumber > this.end) {
      if (this.repairable) return false
      // Behind the gap there may be thousands: the first tells of it.
      if (this.damage?.includes(`entries ${this.end} to `) === true) return false
      this.markDamaged(
        `entries ${this.end} to ${entry.entryNumber - 1} of segment ${this.key.segment} are lost`,
      )
      return false
    }
    // The bytes belong to the reader of the WAL, which uses them again.
    this.accept({ ...entry, batch: entry.batch.slice() })
    this.lsns.push(Number.POSITIVE_INFINITY)
    this.durableEnd = this.end
    return true
  }

  async settle(): Promise<void> {
    await this.writer.settle()
  }

  recoverFence(end: number): void {
    this.fencedAt = end
  }

  async recoverHighWatermark(): Promise<void> {
    if (this.end === 0 || this.heardHighWatermark > 0 || this.damage !== undefined) return
    const last = (await this.reads.blockOf(this.end - 1)).at(-1)
    this.heardHighWatermark = last?.highWatermark ?? 0
  }

  async cut(end: number): Promise<void> {
    assert(end >= this.highWatermark, 'a seal keeps what was committed')
    this.sealed = true
    this.endEntry = end
    this.forgetFrom(Math.max(end, this.writer.writtenEnd))
    if (end < this.writer.writtenEnd) await cutSegment(this, end)
  }

  markDamaged(what: string): void {
    if (this.damage?.includes(what) === true) return
    const more = this.damage === undefined || what.includes(this.damage)
    this.damage = more ? what : `${this.damage}; ${what}`
    this.context.env.log.error('a segment is damaged and is not served any more', {
      topic: this.key.topicId,
      range: this.key.range,
      segment: this.key.segment,
      what,
    })
  }

  async retire(): Promise<void> {
    if (this.retired) return
    this.retired = true
    this.reads.forgetAhead()
    // A cut that is under way writes to the files: who removes them waits for it, or some would be there again.
    await this.sealing?.catch(() => undefined)
    await this.context.flusher.forget(this)
    this.tail.clear(this.writer.writtenEnd)
    await this.closeFiles()
  }

  async closeFiles(): Promise<void> {
    await this.files?.index.close()
    await this.files?.log.close()
  }

  /** The segment's files under `base`, not touched yet. */
  useFiles(base: string): SegmentFiles {
    const { openFiles, shelf, env } = this.context
    const log = new LogFile(openFiles, `${base}.log`)
    const indexFile = new LogFile(openFiles, `${base}.index`, 'derived')
    const seed = placeSeed(this.place)
    this.files = { base, log, index: new IndexSlot(shelf, log, indexFile, seed, env.log) }
    return this.files
  }
}
