// Range state in memory, and as the bytes that are staged at every segment boundary:
//
//   u16 version (1), u32 first partition, u32 partitions, i64 greatest producer id ever expired (-1: none),
//   then per partition: i64 next offset, i64 log time, u32 producers, then each, the one idle for longest first:
//     i64 id, u16 epoch, bool wrapped, i64 log time of its last batch, u8 batches, then each:
//       u32 first sequence, u32 last sequence, i64 base offset
//
// Equal folds have equal bytes, so a digest of them compares replicas. Log start offsets are no part of it.
//
//   check ──> append ──> (durable on all replicas) ──> commit: table, committed offset and log time move
//
// What is appended and not committed stands in a queue of plain numbers, one slot per entry: the leader calls these for
// every batch, so nothing here allocates once the queue has grown.

import { assert } from '../../base/assert.ts'
import { crc32c, xxh32 } from '../../base/checksum.ts'
import { ByteReader, ByteWriter, Truncated } from '../../base/cursor.ts'
import {
  baseSequence,
  NO_PRODUCER,
  producerEpoch,
  producerId,
  recordCount,
} from '../../model/batch/header.ts'
import type { Entry } from '../../model/entry.ts'
import { PRODUCER_WINDOW } from '../../model/limits.ts'
import { type Producer, ProducerTable, WINDOW_STRIDE } from './producer-table.ts'
import type { RangeFold, Verdict } from './types.ts'

const VERSION = 1
const PARTITION_BYTES_LEAST = 20
const PRODUCER_BYTES_LEAST = 20
const EPOCH_MAX = 0x7fff
const SEQUENCE_MAX = 0x7fffffff
const QUEUE_LEAST = 16

/** An entry that waits for its commit. */
interface Pending {
  partition: number
  records: number
  timeMs: number
  /** Undefined: not idempotent. */
  producer: Producer | undefined
}

export class RangeState implements RangeFold {
  readonly firstPartition: number
  readonly endPartition: number
  /** By partition, counted from the first. */
  private readonly next: Float64Array
  private readonly committed: Float64Array
  private readonly times: Float64Array
  private readonly tables: (ProducerTable | undefined)[]
  private readonly expiryMs: number
  private greatestExpired = NO_PRODUCER
  private greatestTime = 0
  /** A ring whose length is a power of two; the oldest entry stands at `head`. */
  private queue: Pending[] = Array.from({ length: QUEUE_LEAST }, newPending)
  private head = 0
  private waiting = 0
  /** The number of the oldest pending entry, or of the next one when none is. */
  private commitEntry = 0
  verdictOffset = 0
  verdictEntry = 0

  /** `expiryMs`: log time after which an idle producer leaves; the same on every replica, since it shapes the fold. */
  constructor(firstPartition: number, firstOffsets: readonly number[], expiryMs: number) {
    this.firstPartition = firstPartition
    this.endPartition = firstPartition + firstOffsets.length
    this.next = Float64Array.from(firstOffsets)
    this.committed = Float64Array.from(firstOffsets)
    this.times = new Float64Array(firstOffsets.length)
    this.tables = Array.from({ length: firstOffsets.length })
    this.expiryMs = expiryMs
  }

  get logTimeMs(): number {
    return this.greatestTime
  }

  get pendingEntries(): number {
    return this.waiting
  }

  /** The number that the next entry appended must have. */
  get nextEntry(): number {
    return this.commitEntry + this.waiting
  }

  nextOffset(partition: number): number {
    return this.next[this.at(partition)] as number
  }

  committedOffset(partition: number): number {
    return this.committed[this.at(partition)] as number
  }

  /** Of all partitions in order, for sealing. Nothing may be pending. */
  nextOffsets(): readonly number[] {
    assert(this.waiting === 0, 'an end has nothing pending below it')
    return Array.from(this.committed)
  }

  check(partition: number, batch: Uint8Array): Verdict {
    const id = producerId(batch)
    if (id < 0) return 'accept'
    const count = recordCount(batch)
    const at = this.at(partition)
    const table = (this.tables[at] ??= new ProducerTable())
    const epoch = producerEpoch(batch)
    return table.check(id, epoch, baseSequence(batch), count, this.greatestExpired, this)
  }

  append(entry: Entry): void {
    const at = this.at(entry.partition)
    const { batch, recordCount: records } = entry
    assert(entry.entryNumber === this.commitEntry + this.waiting, 'entry numbers are dense')
    assert(entry.baseOffset === this.next[at], 'offsets are dense')
    const slot = this.slot()
    slot.partition = entry.partition
    slot.records = records
    slot.timeMs = entry.logTimeMs
    slot.producer = undefined
    const id = producerId(batch)
    if (id >= 0) {
      const table = (this.tables[at] ??= new ProducerTable())
      const epoch = producerEpoch(batch)
      const { baseOffset, entryNumber } = entry
      slot.producer = table.append(id, epoch, baseSequence(batch), records, baseOffset, entryNumber)
    }
    this.next[at] = entry.baseOffset + records
    if (entry.logTimeMs > this.greatestTime) this.greatestTime = entry.logTimeMs
  }

  commit(endEntry: number): void {
    assert(endEntry <= this.commitEntry + this.waiting, 'what is committed was appended')
    while (this.commitEntry < endEntry) {
      this.settle(this.queue[this.head] as Pending)
      this.head = (this.head + 1) & (this.queue.length - 1)
      this.waiting--
      this.commitEntry++
    }
  }

  fold(entry: Entry): void {
    this.append(entry)
    this.commit(entry.entryNumber + 1)
  }

  begin(fromEntry: number = 0): void {
    assert(this.waiting === 0, 'a segment begins with nothing pending')
    this.commitEntry = fromEntry
  }

  private at(partition: number): number {
    assert(
      partition >= this.firstPartition && partition < this.endPartition,
      'the partition belongs to the range',
    )
    return partition - this.firstPartition
  }

  private settle(entry: Pending): void {
    const at = entry.partition - this.firstPartition
    this.committed[at] = (this.committed[at] as number) + entry.records
    const time = Math.max(this.times[at] as number, entry.timeMs)
    this.times[at] = time
    const table = this.tables[at]
    if (table === undefined) return
    if (entry.producer !== undefined) table.commit(entry.producer, time)
    entry.producer = undefined
    this.greatestExpired = table.expire(time - this.expiryMs, this.greatestExpired)
  }

  /** The next free place in the queue. */
  private slot(): Pending {
    if (this.waiting === this.queue.length) {
      const { queue, head } = this
      const rest = Array.from({ length: queue.length }, newPending)
      this.queue = [...queue.slice(head), ...queue.slice(0, head), ...rest]
      this.head = 0
    }
    const at = (this.head + this.waiting++) & (this.queue.length - 1)
    return this.queue[at] as Pending
  }

  /** The state as bytes, folded to exactly an end: nothing may be pending. */
  encode(): Uint8Array {
    assert(this.waiting === 0, 'a state is encoded at an end')
    return this.encodeCommitted()
  }

  /** What is committed, as bytes; what is pending is no part of it. */
  encodeCommitted(): Uint8Array {
    const w = new ByteWriter(64 + 20 * this.next.length)
    w.u16(VERSION).u32(this.firstPartition).u32(this.next.length).i64(this.greatestExpired)
    for (let i = 0; i < this.next.length; i++) {
      w.i64(this.committed[i] as number).i64(this.times[i] as number)
      const table = this.tables[i]
      w.u32(table?.size ?? 0)
      for (const producer of table ?? []) writeProducer(w, producer)
    }
    return w.finish()
  }

  /** Throws Truncated. The next segment's entries are expected from 0 on. */
  static decode(bytes: Uint8Array, expiryMs: number): RangeState {
    const r = new ByteReader(bytes)
    const version = r.u16()
    if (version !== VERSION) throw new Truncated(`a range state of version ${version}`)
    const firstPartition = r.u32()
    const partitions = r.u32()
    const expired = r.i64()
    if (partitions < 1 || partitions * PARTITION_BYTES_LEAST > r.left) {
      throw new Truncated(`${partitions} partitions announced, ${r.left} bytes left`)
    }
    const state = new RangeState(firstPartition, Array(partitions).fill(0), expiryMs)
    state.greatestExpired = expired
    for (let i = 0; i < partitions; i++) state.readPartition(r, i)
    r.done()
    return state
  }

  private readPartition(r: ByteReader, at: number): void {
    const offset = whole(r)
    const time = whole(r)
    this.next[at] = offset
    this.committed[at] = offset
    this.times[at] = time
    if (time > this.greatestTime) this.greatestTime = time
    const producers = r.count(PRODUCER_BYTES_LEAST)
    if (producers === 0) return
    const table = new ProducerTable()
    const ids = new Set<number>()
    for (let i = 0; i < producers; i++) readProducer(r, table, ids)
    this.tables[at] = table
  }

  /** Two states that together are this one: partitions below `at`, and from it on. */
  split(at: number): readonly [RangeState, RangeState] {
    assert(at > this.firstPartition && at < this.endPartition, 'a split is inside the range')
    return [this.part(this.firstPartition, at), this.part(at, this.endPartition)]
  }

  /** The state of two neighbours as one; the opposite of `split`. */
  static join(left: RangeState, right: RangeState): RangeState {
    assert(left.endPartition === right.firstPartition, 'joined ranges are neighbours')
    const offsets = [...left.nextOffsets(), ...right.nextOffsets()]
    const joined = new RangeState(left.firstPartition, offsets, left.expiryMs)
    const cut = left.next.length
    joined.times.set(left.times, 0)
    joined.times.set(right.times, cut)
    joined.greatestTime = Math.max(left.greatestTime, right.greatestTime)
    joined.greatestExpired = Math.max(left.greatestExpired, right.greatestExpired)
    for (const [i, table] of left.tables.entries()) joined.tables[i] = copyOf(table)
    for (const [i, table] of right.tables.entries()) joined.tables[cut + i] = copyOf(table)
    return joined
  }

  private part(from: number, to: number): RangeState {
    const first = from - this.firstPartition
    const end = to - this.firstPartition
    const part = new RangeState(from, this.nextOffsets().slice(first, end), this.expiryMs)
    part.times.set(this.times.subarray(first, end))
    part.greatestTime = part.times.reduce((most, time) => Math.max(most, time), 0)
    part.greatestExpired = this.greatestExpired
    for (let i = first; i < end; i++) part.tables[i - first] = copyOf(this.tables[i])
    return part
  }
}

/** Names an encoded state in metadata; a difference between replicas shows. Guards against accidents, not malice. */
export function stateDigest(encoded: Uint8Array): string {
  const hex = (value: number): string => value.toString(16).padStart(8, '0')
  return hex(crc32c(encoded)) + hex(xxh32(encoded))
}

function newPending(): Pending {
  return { partition: 0, records: 0, timeMs: 0, producer: undefined }
}

function copyOf(table: ProducerTable | undefined): ProducerTable | undefined {
  if (table === undefined || table.size === 0) return undefined
  const copy = new ProducerTable()
  for (const { id, epoch, wrapped, lastTimeMs, window, windowCount } of table) {
    copy.restore(id, epoch, wrapped, lastTimeMs, window.slice(0, WINDOW_STRIDE * windowCount))
  }
  return copy
}

function writeProducer(w: ByteWriter, producer: Producer): void {
  const { window, windowCount } = producer
  w.i64(producer.id).u16(producer.epoch).bool(producer.wrapped).i64(producer.lastTimeMs)
  w.u8(windowCount)
  for (let i = 0; i < WINDOW_STRIDE * windowCount; i += WINDOW_STRIDE) {
    w.u32(window[i] as number)
      .u32(window[i + 1] as number)
      .i64(window[i + 2] as number)
  }
}

function readProducer(r: ByteReader, table: ProducerTable, ids: Set<number>): void {
  const id = whole(r)
  const epoch = r.u16()
  const wrapped = r.bool()
  const lastTimeMs = whole(r)
  const batches = r.u8()
  if (epoch > EPOCH_MAX || batches < 1 || batches > PRODUCER_WINDOW || ids.has(id)) {
    throw new Truncated(`producer ${id} with epoch ${epoch} and ${batches} batches`)
  }
  ids.add(id)
  const window: number[] = []
  for (let i = 0; i < batches; i++) {
    const first = r.u32()
    const last = r.u32()
    if (first > SEQUENCE_MAX || last > SEQUENCE_MAX) throw new Truncated('a sequence is too great')
    window.push(first, last, whole(r))
  }
  table.restore(id, epoch, wrapped, lastTimeMs, window)
}

function whole(r: ByteReader): number {
  const value = r.i64()
  if (value < 0) throw new Truncated(`${value} is negative`)
  return value
}
