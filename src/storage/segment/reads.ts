// Reading what a segment has, from memory and file together. A reader of the tail is answered by Segment.readCached and never
// comes here; one that is further back reads the file by its index, and on into memory where the file ends.
//
//   the index, perhaps stale ──> bad entry? ──> the index made anew ──> bad entry? ──> damage: the segment is marked
//
// The file may change under a reader (cut.ts, the next block): whatever was read is then read again.

import { assert } from '../../base/assert.ts'
import { maxTimestamp } from '../../model/batch/header.ts'
import type { Entry } from '../../model/entry.ts'
import type { SegmentIndex } from '../index/segment-index.ts'
import type { Segment } from '../segment-log.ts'
import { isBad, readBlock } from './check.ts'
import type { LogFile } from './file.ts'
import { getBlockHeader, placeSeed } from './format.ts'
import {
  BadFile,
  type ReadAhead,
  readEntries,
  readFailed,
  readPieces,
  SegmentAhead,
} from './reader.ts'

/** Entries of memory that are handed out at once. */
export const SCAN_ENTRIES = 1024

export class SegmentReads {
  private readonly segment: Segment
  private readonly ahead: SegmentAhead
  private readonly fileBytes: () => number

  constructor(segment: Segment, ahead: ReadAhead) {
    this.segment = segment
    this.fileBytes = () => segment.writer.fileBytes
    this.ahead = new SegmentAhead(ahead, (partition, offset, bytes) =>
      this.fetch(partition, offset, bytes),
    )
  }

  async read(partition: number, offset: number, maxBytes: number): Promise<readonly Entry[]> {
    const entries: Entry[] = []
    let bytes = 0
    let next = offset
    for (;;) {
      this.segment.checkServed()
      const left = entries.length === 0 ? maxBytes : maxBytes - bytes
      let part = this.segment.readCached(partition, next, left)
      let inFile = false
      if (part === undefined) {
        part = await this.ahead.read(partition, next, left)
        this.segment.checkServed()
        inFile = part.length > 0
        // Nothing in the file. If that is so in this very turn too, memory has all that lies above.
        if (!inFile && (await this.mayBeInFile(partition, next))) continue
        if (!inFile)
          part = this.segment.tail.readAbove(partition, next, left, this.segment.highWatermark)
      }
      const from = next
      let taken = 0
      for (const entry of part) {
        if (entry.entryNumber >= this.segment.highWatermark) break
        if (entries.length > 0 && bytes + entry.batch.length > maxBytes) break
        entries.push(entry)
        bytes += entry.batch.length
        next = entry.baseOffset + entry.recordCount
        taken++
      }
      if (inFile) this.ahead.took(partition, from, next, part.slice(taken))
      // What stops short of its own end is full or at the high watermark; memory has the end of everything.
      if (taken < part.length || !inFile || bytes >= maxBytes) return entries
    }
  }

  /** False: in the turn in which this resolves, the file has nothing of the partition at or above `offset`. */
  private async mayBeInFile(partition: number, offset: number): Promise<boolean> {
    if (this.segment.files === undefined) return false
    const index = await this.index()
    return this.segment.files.index.now !== index || offset < index.nextOffset(partition)
  }

  async readByTime(partition: number, timestamp: number): Promise<Entry | undefined> {
    this.segment.checkServed()
    let next = 0
    if (this.segment.files !== undefined) {
      const found = await this.guarded(async (index, log) => {
        // Both at one moment: a block that is written meanwhile would be neither searched here nor read below.
        const piece = index.findTime(partition, timestamp)
        const searchedTo = index.nextOffset(partition)
        if (piece === undefined) return { entries: [], searchedTo }
        return {
          entries: await readPieces(this.segment.place, log, partition, [piece]),
          searchedTo,
        }
      })
      const entry = found.entries.find((each) => maxTimestamp(each.batch) >= timestamp)
      if (entry !== undefined) {
        return entry.entryNumber < this.segment.highWatermark ? entry : undefined
      }
      next = found.searchedTo
    }
    for (;;) {
      const entries = await this.read(partition, next, 1024 * 1024)
      const last = entries.at(-1)
      if (last === undefined) return undefined
      const entry = entries.find((each) => maxTimestamp(each.batch) >= timestamp)
      if (entry !== undefined) return entry
      next = last.baseOffset + last.recordCount
    }
  }

  /** `marked`: also of a segment that is not served, since it is marked as damaged. */
  async *scan(fromEntry: number, marked: boolean = false): AsyncIterable<readonly Entry[]> {
    let next = fromEntry
    while (next < this.segment.durableEnd) {
      if (!marked) this.segment.checkServed()
      if (next >= this.segment.tail.start) {
        const end = Math.min(this.segment.durableEnd, next + SCAN_ENTRIES)
        const entries = this.segment.tail.slice(next, end)
        next = end
        yield entries
        continue
      }
      const from = next
      const block = await this.blockOf(from)
      const entries = block.filter((entry) => entry.entryNumber >= from)
      next = from + entries.length
      if (entries.length > 0) yield entries
    }
  }

  /** All entries of the block that holds the entry, in entry order. */
  async blockOf(entryNumber: number): Promise<readonly Entry[]> {
    return this.guarded(async (index, log) => {
      const at = index.blockOf(entryNumber)
      const bytes = await log.read(at.position, at.bytes)
      const header = getBlockHeader(bytes, 0, placeSeed(this.segment.place))
      const read = header === undefined ? undefined : readBlock(this.segment.place, header, bytes)
      if (read === undefined || isBad(read)) {
        const reason = read === undefined ? 'no valid block header' : read.reason
        throw new BadFile(`${log.path} is damaged in the block at byte ${at.position}: ${reason}`)
      }
      return read
    })
  }

  private async fetch(partition: number, offset: number, bytes: number): Promise<readonly Entry[]> {
    if (this.segment.files === undefined) return []
    return this.guarded((index, log) =>
      readEntries(this.segment.place, log, index, partition, offset, bytes),
    )
  }

  async index(): Promise<SegmentIndex> {
    assert(this.segment.files !== undefined, 'the segment has a file')
    return this.segment.files.index.get(this.fileBytes)
  }

  /** Reads by the index; when that meets a bad entry, by an index made anew; a bad entry then is damage. */
  private async guarded<T>(run: (index: SegmentIndex, log: LogFile) => Promise<T>): Promise<T> {
    assert(this.segment.files !== undefined, 'the segment has a file')
    const { log, index } = this.segment.files
    await this.segment.cutting
    const { cuts } = this.segment
    try {
      try {
        return await run(await this.index(), log)
      } catch (error) {
        if (!(error instanceof BadFile) || this.segment.retired) throw error
        return await run(await index.rebuild(this.fileBytes), log)
      }
    } catch (error) {
      this.segment.checkServed()
      // The file changed under the reader's feet.
      if (cuts !== this.segment.cuts) return this.guarded(run)
      const failure = readFailed(error)
      if (failure.code !== 'DAMAGED') throw failure
      if (failure.cause === undefined) this.segment.markDamaged(failure.message)
      else
        this.segment.context.env.log.error(`a segment file could not be read: ${failure.message}`)
      throw failure
    }
  }

  forgetAhead(): void {
    this.ahead.clear()
  }
}
