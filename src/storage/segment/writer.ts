// Writing a segment's file: blocks of entries that may be written, one vectored write each, then a sync for one or several. There
// is one writer per segment and one call at a time (the flusher sees to it).
//
// The file is made with its first block: header page and block in one write; its directory is synced with it before
// anything in it counts as synced. No space is allocated ahead: a block is large enough that growing the file costs
// little, and a segment that ends early leaves no hole.

import { assert } from '../../base/assert.ts'
import { concatBytes } from '../../base/bytes.ts'
import { EastGuardError, messageOf } from '../../base/errors.ts'
import { ENVELOPE_BYTES, type Entry } from '../../model/entry.ts'
import { foundNoRoom } from '../../ports/disk.ts'
import { entryMemory, Tail } from '../cache/tail.ts'
import { directoryOf } from '../checked-file.ts'
import type { Segment, SegmentFiles } from '../segment-log.ts'
import { buildBlock } from './block.ts'
import { type Cut, doCut, writeCut } from './cut.ts'
import { BLOCK_ENTRIES_MAX, blockEnd, encodeHeaderPage, HEADER_PAGE_BYTES } from './format.ts'
import { segmentBase } from './paths.ts'
import { readFailed } from './reader.ts'

/** The topic was deleted: there is no directory to write to. */
export class TopicGone extends Error {
  override readonly name: string = 'TopicGone'
}

export class SegmentWriter {
  private readonly segment: Segment
  writtenEnd = 0
  syncedEnd = 0
  /** Where the next block goes; 0: the file is not made yet. */
  fileBytes = 0
  /** Entries below it may be written. */
  private flushableEnd = 0
  /** Bytes of those between writtenEnd and flushableEnd. */
  flushableBytes = 0
  /** Bytes written since the last sync. */
  unsyncedBytes = 0
  /** When the oldest entry not yet written, or the last write not yet synced, came. */
  dirtySince: number | undefined
  /** A process that was killed may have written what was found here without a sync. */
  private unconfirmed = false
  private dirsSynced = false

  constructor(segment: Segment) {
    this.segment = segment
  }

  /** For a file that was there; `unconfirmed` until the next sync when it may hold more than was ever synced. */
  opened(fileBytes: number, entryEnd: number, unconfirmed: boolean = false): void {
    this.unconfirmed = unconfirmed
    this.fileBytes = fileBytes
    this.writtenEnd = entryEnd
    this.syncedEnd = entryEnd
    this.flushableEnd = entryEnd
  }

  get dirty(): boolean {
    return this.segment.end > this.syncedEnd
  }

  appended(): void {
    if (this.dirtySince === undefined) {
      this.dirtySince = this.segment.context.env.clock.monotonic()
      this.segment.context.flusher.dirtied(this.segment)
    }
  }

  /** Entries below `end` may be written from now on. */
  flushable(end: number): void {
    const { tail } = this.segment
    for (let e = Math.max(this.flushableEnd, this.writtenEnd); e < end; e++) {
      this.flushableBytes += ENVELOPE_BYTES + tail.at(e).batch.length
    }
    this.flushableEnd = Math.max(this.flushableEnd, end)
  }

  /** Entries at or above `end`, none of them written, are about to be dropped. */
  forget(end: number): void {
    const { tail } = this.segment
    for (let e = end; e < this.flushableEnd; e++) {
      this.flushableBytes -= ENVELOPE_BYTES + tail.at(e).batch.length
    }
    this.flushableEnd = Math.min(this.flushableEnd, end)
  }

  /** The next block's entries: below `limit`, as many as make a block. */
  private next(limit: number): readonly Entry[] {
    const { tail, context } = this.segment
    const most = Math.min(limit, this.writtenEnd + BLOCK_ENTRIES_MAX)
    let end = this.writtenEnd
    let bytes = 0
    while (end < most) {
      bytes += ENVELOPE_BYTES + tail.at(end).batch.length
      if (end > this.writtenEnd && bytes > context.env.options.blockBytes) break
      end++
    }
    return tail.slice(this.writtenEnd, end)
  }

  /** Writes one block of entries below `limit`; false when there are none. */
  async writeBlock(limit: number): Promise<boolean> {
    const { segment } = this
    const entries = this.next(limit)
    if (entries.length === 0) return false
    const files = segment.files ?? (await this.makeFiles())
    const made = this.fileBytes === 0
    const position = made ? HEADER_PAGE_BYTES : this.fileBytes
    const block = await buildBlock(segment.place, entries, position, segment.context.turn)
    if (made) await files.log.write([encodeHeaderPage(segment.place), ...block.buffers], 0)
    else await files.log.write(block.buffers, position)
    this.wrote(entries, blockEnd(block.header))
    files.index.add(block.header)
    await files.index.write(block.headerBytes)
    return true
  }

  private wrote(entries: readonly Entry[], fileBytes: number): void {
    const { segment } = this
    const { budget, env } = segment.context
    let memory = 0
    for (const entry of entries) {
      const bytes = ENVELOPE_BYTES + entry.batch.length
      memory += entryMemory(entry)
      this.unsyncedBytes += bytes
      if (entry.entryNumber < this.flushableEnd) this.flushableBytes -= bytes
    }
    this.fileBytes = fileBytes
    this.writtenEnd += entries.length
    this.dirtySince = env.clock.monotonic()
    budget.wrote(segment.tail, this.writtenEnd, memory)
    env.roomAgain()
  }

  /** All that was written is durable when it resolves. A failure is final. */
  async sync(): Promise<void> {
    const { segment } = this
    if (this.unsyncedBytes === 0 && !this.unconfirmed) return
    const { files } = segment
    assert(files !== undefined, 'what was written is in a file')
    const end = this.writtenEnd
    try {
      await files.log.sync()
      if (!this.dirsSynced) await this.syncDirs(files)
      if (this.unconfirmed) await files.index.sync()
    } catch (cause) {
      const what = messageOf(cause)
      throw new EastGuardError('DISK_FAILED', `${files.log.path} could not be synced: ${what}`, {
        cause,
      })
    }
    for (let e = this.syncedEnd; e < end; e++) segment.lsns.shift()
    this.syncedEnd = end
    this.unsyncedBytes = 0
    this.unconfirmed = false
    if (!this.dirty) this.dirtySince = undefined
    segment.context.flusher.synced(segment)
  }

  async settle(): Promise<void> {
    while (await this.writeBlock(this.segment.end));
    await this.sync()
  }

  private async makeFiles(): Promise<SegmentFiles> {
    const { key, context } = this.segment
    await this.segment.pathFree
    const name = context.env.catalog.topicName(key.topicId)
    if (name === undefined) throw new TopicGone(`topic ${key.topicId} was deleted`)
    const base = segmentBase(name, key)
    const { disk } = context.env
    await disk.makeDir(directoryOf(base))
    // Whatever is there under this name is of no segment that anyone knows.
    for (const extension of ['log', 'index', 'cut']) await disk.remove(`${base}.${extension}`)
    const files = this.segment.useFiles(base)
    files.index.startEmpty()
    return files
  }

  private async syncDirs(files: SegmentFiles): Promise<void> {
    const { key, context } = this.segment
    const { disk, durableDirs } = context.env
    const dir = directoryOf(files.base)
    await disk.syncDir(dir)
    await durableDirs.sync(key.topicId, dir)
    this.dirsSynced = true
  }
}

/** A cut that has begun: its .cut file is written. */
export interface BegunCut extends Cut {
  /** Bytes of entries that go. */
  readonly dropped: number
}

/**
 * Cuts the file at entry `end`; memory keeps nothing of it. When it rejects with STORAGE_FULL the segment is as before, and the next
 * call goes on with it. If the file has changed by then, nobody reads it before that call has ended well.
 */
export async function cutSegment(segment: Segment, end: number): Promise<void> {
  segment.begunCut ??= await beginCut(segment, end)
  segment.cuts++
  segment.cutting = endCut(segment, end, segment.begunCut)
  await segment.cutting
  const { files, writer } = segment
  await files?.index.rebuild(() => writer.fileBytes).catch(unreadable)
}

async function beginCut(segment: Segment, end: number): Promise<BegunCut> {
  const { writer, files, context } = segment
  assert(files !== undefined && end < writer.writtenEnd, 'the file reaches beyond the cut')
  await writer.sync()
  const kept = (await segment.reads.blockOf(end)).filter((entry) => entry.entryNumber < end)
  let dropped = 0
  for (let e = end; e < segment.end; ) {
    const entries = await segment.reads.blockOf(e)
    for (const entry of entries) {
      if (entry.entryNumber >= end) dropped += ENVELOPE_BYTES + entry.batch.length
    }
    const last = entries.at(-1)
    assert(last !== undefined, 'a block has entries')
    e = last.entryNumber + 1
  }
  const index = await Promise.resolve(segment.reads.index()).catch(unreadable)
  const { position } = index.blockOf(end)
  let block: Uint8Array = new Uint8Array(0)
  if (kept.length > 0) {
    const { buffers } = await buildBlock(segment.place, kept, position, context.turn)
    // One copy of one block, once in the life of a segment: a checked file is written in one piece.
    block = concatBytes(buffers)
  }
  const cut = { position, block, dropped }
  await writeCut(context.env.disk, files.base, cut).catch(noRoom)
  return cut
}

async function endCut(segment: Segment, end: number, cut: BegunCut): Promise<void> {
  const { writer, files, context } = segment
  assert(files !== undefined, 'what is cut is in a file')
  await doCut(context.env.disk, files.base, files.log, cut).catch(noRoom)
  segment.begunCut = undefined
  segment.cutting = undefined
  segment.tail.clear(writer.writtenEnd)
  segment.tail = new Tail(context.budget, end)
  segment.reads.forgetAhead()
  segment.end = end
  segment.durableEnd = Math.min(segment.durableEnd, end)
  segment.bytes -= cut.dropped
  writer.opened(cut.position + cut.block.length, end)
}

/** Another call may find some. */
function noRoom(error: unknown): never {
  if (!foundNoRoom(error)) throw error
  throw new EastGuardError('STORAGE_FULL', error.message, { cause: error })
}

/** What cannot be read may be read later: no reason to stop. */
function unreadable(error: unknown): never {
  throw readFailed(error)
}
