// The recent entries of one segment, the very buffers that arrived. Two lists over the same entries:
//
//   by entry number   [start .. end)            for blocks, folding and eviction, which is from the left
//   by partition      p -> its entries, oldest first, found by offset with a binary search
//
// A partition's list also knows from which offset on it is complete, so that "nothing here" and "not in memory" differ.

import { assert } from '../../base/assert.ts'
import { ENVELOPE_BYTES, type Entry } from '../../model/entry.ts'
import { type CacheBudget, ENTRY_OVERHEAD_BYTES } from './budget.ts'
import { Queue } from './queue.ts'

const NONE: readonly Entry[] = []

interface PartitionTail {
  readonly entries: Queue<Entry>
  /** Memory holds all of the partition's entries of this segment from this offset on. */
  reachesBack: number
  /** The offset behind the newest entry, when it is known. */
  nextOffset: number | undefined
}

export class Tail {
  /** The number of the oldest entry held. */
  start: number
  private readonly entries: Queue<Entry> = new Queue()
  private readonly partitions: Map<number, PartitionTail> = new Map()
  private readonly budget: CacheBudget
  /** The segment file held entries when it was opened: a partition not listed here may be there. */
  private readonly openedAt: number

  constructor(budget: CacheBudget, start: number) {
    this.budget = budget
    this.start = start
    this.openedAt = start
  }

  get end(): number {
    return this.start + this.entries.length
  }

  push(entry: Entry): void {
    let tail = this.partitions.get(entry.partition)
    if (tail === undefined) {
      const reachesBack = this.openedAt === 0 ? 0 : entry.baseOffset
      tail = { entries: new Queue(), reachesBack, nextOffset: undefined }
      this.partitions.set(entry.partition, tail)
    }
    assert(
      tail.nextOffset === undefined || tail.nextOffset === entry.baseOffset,
      'offsets are dense in a partition',
    )
    tail.nextOffset = entry.baseOffset + entry.recordCount
    tail.entries.push(entry)
    this.entries.push(entry)
    this.budget.added(entryMemory(entry))
  }

  /** Entries [from, end) by number; all must be held. */
  slice(from: number, end: number): readonly Entry[] {
    assert(from >= this.start && end <= this.end, 'the entries are in memory')
    return this.entries.slice(from - this.start, end - this.start)
  }

  at(entryNumber: number): Entry {
    const entry = this.entries.at(entryNumber - this.start)
    assert(entry !== undefined, 'the entry is in memory')
    return entry
  }

  /** Entries from `fromEntry` on, at least one if there is one, as many as fit `maxBytes` with their envelopes. */
  sliceBytes(fromEntry: number, maxBytes: number): readonly Entry[] {
    const first = fromEntry - this.start
    const { length } = this.entries
    let next = first
    let bytes = 0
    for (; next < length; next++) {
      bytes += ENVELOPE_BYTES + (this.entries.at(next) as Entry).batch.length
      if (bytes > maxBytes && next > first) break
    }
    return next <= first ? NONE : this.entries.slice(first, next)
  }

  /** The offset behind the partition's newest entry, when memory knows it. */
  nextOffset(partition: number): number | undefined {
    return this.partitions.get(partition)?.nextOffset
  }

  /** See SegmentLog.readCached. */
  read(
    partition: number,
    offset: number,
    maxBytes: number,
    highWatermark: number,
  ): readonly Entry[] | undefined {
    const tail = this.partitions.get(partition)
    if (tail === undefined) return this.openedAt === 0 ? NONE : undefined
    if (offset < tail.reachesBack) return undefined
    return collect(tail.entries, offset, maxBytes, highWatermark)
  }

  /** The same for a caller who knows that no file has the partition's entries at or above `offset`. */
  readAbove(
    partition: number,
    offset: number,
    maxBytes: number,
    highWatermark: number,
  ): readonly Entry[] {
    const tail = this.partitions.get(partition)
    if (tail === undefined) {
      // Remembered, so that asking again for an idle partition needs no index.
      this.partitions.set(partition, {
        entries: new Queue(),
        reachesBack: offset,
        nextOffset: undefined,
      })
      return NONE
    }
    return collect(tail.entries, offset, maxBytes, highWatermark)
  }

  evictOne(end: number): number {
    if (this.start >= end) return 0
    const entry = this.entries.shift()
    if (entry === undefined) return 0
    this.start++
    const tail = this.partitions.get(entry.partition)
    assert(tail?.entries.shift() === entry, 'the oldest entry is the oldest of its partition')
    tail.reachesBack = entry.baseOffset + entry.recordCount
    return entryMemory(entry)
  }

  /** Forgets the entries at or above `end`, all of them unflushed; returns their batch bytes. */
  dropFrom(end: number): number {
    let memory = 0
    let dropped = 0
    while (this.end > end) {
      const entry = this.entries.pop()
      if (entry === undefined) break
      const tail = this.partitions.get(entry.partition)
      assert(tail?.entries.pop() === entry, 'the newest entry is the newest of its partition')
      tail.nextOffset = entry.baseOffset
      memory += entryMemory(entry)
      dropped += entry.batch.length
    }
    this.budget.dropped(memory, memory)
    return dropped
  }

  /** Forgets everything; entries from `flushedEnd` on were unflushed. */
  clear(flushedEnd: number): void {
    let memory = 0
    let unflushed = 0
    for (;;) {
      const entry = this.entries.shift()
      if (entry === undefined) break
      memory += entryMemory(entry)
      if (this.start >= flushedEnd) unflushed += entryMemory(entry)
      this.start++
    }
    this.partitions.clear()
    this.budget.dropped(memory, unflushed)
  }
}

export function entryMemory(entry: Entry): number {
  return entry.batch.length + ENTRY_OVERHEAD_BYTES
}

function collect(
  entries: Queue<Entry>,
  offset: number,
  maxBytes: number,
  highWatermark: number,
): readonly Entry[] {
  let low = 0
  let high = entries.length
  while (low < high) {
    const middle = (low + high) >>> 1
    const entry = entries.at(middle) as Entry
    if (entry.baseOffset + entry.recordCount > offset) high = middle
    else low = middle + 1
  }
  let end = low
  let bytes = 0
  for (; end < entries.length; end++) {
    const entry = entries.at(end) as Entry
    if (entry.entryNumber >= highWatermark) break
    bytes += entry.batch.length
    if (bytes > maxBytes && end > low) break
  }
  return end === low ? NONE : entries.slice(low, end)
}
