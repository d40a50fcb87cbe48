// A segment's index, on disk and in memory. The .index file is the block headers of the .log copied out one after
// another, so that the whole table of contents is one sequential read. It is derived: written without a sync, believed
// only as far as its checksums and its chain of positions reach, and completed by walking the .log from header to
// header. In memory it is loaded when first asked for, and dropped again when all loaded ones together grow too large.

import { EastGuardError } from '../../base/errors.ts'
import { DiskError } from '../../ports/disk.ts'
import type { Log } from '../../ports/log.ts'
import type { LogFile } from '../segment/file.ts'
import { type BlockHeader, blockEnd, getBlockHeader, putBlockHeader } from '../segment/format.ts'
import { SegmentIndex } from './segment-index.ts'

/** Memory for the indexes of all segments of a broker. */
const SHELF_BYTES_MAX: number = 64 * 1024 * 1024

/** The loaded indexes, least recently used first. */
export class IndexShelf {
  private readonly slots: Map<IndexSlot, number> = new Map()
  private readonly limitBytes: number
  private bytes = 0

  constructor(limitBytes: number = SHELF_BYTES_MAX) {
    this.limitBytes = limitBytes
  }

  used(slot: IndexSlot, memoryBytes: number): void {
    this.forget(slot)
    this.slots.set(slot, memoryBytes)
    this.bytes += memoryBytes
    for (const other of this.slots.keys()) {
      if (this.bytes <= this.limitBytes || other === slot) return
      this.forget(other)
      other.unload()
    }
  }

  forget(slot: IndexSlot): void {
    this.bytes -= this.slots.get(slot) ?? 0
    this.slots.delete(slot)
  }
}

export class IndexSlot {
  private readonly shelf: IndexShelf
  private readonly logFile: LogFile
  private readonly indexFile: LogFile
  private readonly seed: number
  private readonly log: Log
  private loaded: SegmentIndex | undefined
  private loading: Promise<SegmentIndex> | undefined
  /** Bytes of the index file that are known to be right; undefined: not known, so it is not written to. */
  private writtenBytes: number | undefined

  constructor(shelf: IndexShelf, logFile: LogFile, indexFile: LogFile, seed: number, log: Log) {
    this.shelf = shelf
    this.logFile = logFile
    this.indexFile = indexFile
    this.seed = seed
    this.log = log
  }

  /** For a segment without blocks: an empty index is complete. */
  startEmpty(): void {
    this.loaded = new SegmentIndex()
    this.writtenBytes = 0
  }

  /** The index when it is in memory. */
  get now(): SegmentIndex | undefined {
    return this.loaded
  }

  unload(): void {
    this.loaded = undefined
  }

  /** Adds a block in memory, at once. Its header's bytes go to the file by `write`. */
  add(block: BlockHeader): void {
    this.loaded?.add(block)
    if (this.loaded !== undefined) this.shelf.used(this, this.loaded.memoryBytes)
  }

  /** Appends a header to the index file. Failing costs no more than a walk later. */
  async write(headerBytes: Uint8Array): Promise<void> {
    const at = this.writtenBytes
    if (at === undefined) return
    this.writtenBytes = at + headerBytes.length
    try {
      await this.indexFile.write([headerBytes], at)
    } catch (err) {
      this.writtenBytes = undefined
      this.log.warn('an index file could not be written; it will be rebuilt', {
        path: this.indexFile.path,
        err,
      })
    }
  }

  /**
   * After a recovery that wrote other blocks than an earlier one: a power cut must not bring back headers of blocks that
   * have been overwritten, which would be valid and wrong. A failure is final.
   */
  async sync(): Promise<void> {
    if (this.writtenBytes === undefined || this.writtenBytes === 0) return
    await this.indexFile.sync()
  }

  /** The index of the first `fileBytes()` bytes of the file; that may grow while it loads. */
  get(fileBytes: () => number): Promise<SegmentIndex> | SegmentIndex {
    if (this.loaded !== undefined) {
      this.shelf.used(this, this.loaded.memoryBytes)
      return this.loaded
    }
    this.loading ??= this.load(fileBytes, true).finally(() => {
      this.loading = undefined
    })
    return this.loading
  }

  /** Forgets what the index file says and asks the segment file itself. */
  async rebuild(fileBytes: () => number): Promise<SegmentIndex> {
    await this.loading?.catch(() => undefined)
    this.loaded = undefined
    this.loading = this.load(fileBytes, false).finally(() => {
      this.loading = undefined
    })
    return this.loading
  }

  /** Reads the valid beginning of the index file; `accept` says whether a block may be believed. */
  async readFile(accept: (block: BlockHeader) => boolean): Promise<SegmentIndex> {
    const index = new SegmentIndex()
    let at = 0
    let bytes: Uint8Array
    try {
      bytes = await this.indexFile.read(0, await this.indexFile.size())
    } catch (error) {
      if (!(error instanceof DiskError)) throw error
      this.writtenBytes = error.fault === 'not-found' ? 0 : undefined
      return index
    }
    for (;;) {
      const block = getBlockHeader(bytes, at, this.seed)
      if (block === undefined || !index.follows(block) || !accept(block)) break
      index.add(block)
      at += block.headerBytes
    }
    this.writtenBytes = at
    if (at < bytes.length) await this.cutFile(at)
    return index
  }

  private async cutFile(length: number): Promise<void> {
    try {
      await this.indexFile.truncate(length)
    } catch (err) {
      this.writtenBytes = undefined
      this.log.warn('an index file could not be shortened', { path: this.indexFile.path, err })
    }
  }

  private async load(fileBytes: () => number, fromFile: boolean): Promise<SegmentIndex> {
    // Blocks that are written meanwhile are found by the walk.
    this.writtenBytes = undefined
    const index = await this.readFile((block) => fromFile && blockEnd(block) <= fileBytes())
    const missing: Uint8Array[] = []
    let missingBytes = 0
    const start = this.writtenBytes
    this.writtenBytes = undefined
    while (index.fileEnd < fileBytes()) {
      const block = await this.logFile.readBlockHeader(index.fileEnd, this.seed)
      if (block === undefined || !index.follows(block) || blockEnd(block) > fileBytes()) {
        throw new EastGuardError(
          'DAMAGED',
          `${this.logFile.path} has no valid block at byte ${index.fileEnd}`,
        )
      }
      index.add(block)
      const header = new Uint8Array(block.headerBytes)
      putBlockHeader(header, block, this.seed)
      missing.push(header)
      missingBytes += header.length
    }
    this.loaded = index
    this.shelf.used(this, index.memoryBytes)
    if (start !== undefined) this.writtenBytes = start + missingBytes
    if (start !== undefined && missingBytes > 0) await this.repair(missing, start)
    return index
  }

  private async repair(missing: readonly Uint8Array[], at: number): Promise<void> {
    try {
      await this.indexFile.write(missing, at)
    } catch (err) {
      this.writtenBytes = undefined
      this.log.warn('an index file could not be repaired', { path: this.indexFile.path, err })
    }
  }

  async close(): Promise<void> {
    this.shelf.forget(this)
    this.loaded = undefined
    await this.indexFile.close()
  }
}
