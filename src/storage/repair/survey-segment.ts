// What is left of one segment, read from everywhere it may be and changing nothing:
//
//   .log        block by block, entry by entry; behind a fault the next header that checks is looked for
//   .index      its copies of block headers tell what a damaged block held
//   .salvage    what an earlier start saved from the WAL
//   the WAL     what no file has yet
//
// A first look stops caring about entries that are fine. Only when something is wrong is a list of them made.

import { EastGuardError } from '../../base/errors.ts'
import { isHole } from '../../model/batch/hole.ts'
import { ENVELOPE_BYTES, samePlace } from '../../model/entry.ts'
import { BATCH_BYTES_MAX } from '../../model/limits.ts'
import { placeOfKey, type SegmentKey } from '../../model/segment-key.ts'
import type { Disk } from '../../ports/disk.ts'
import { readWhole } from '../checked-file.ts'
import { entriesIn, type FoundEntry } from '../segment/check.ts'
import {
  type BlockHeader,
  blockEnd,
  decodeHeaderPage,
  getBlockHeader,
  HEADER_PAGE_BYTES,
  type Piece,
  placeSeed,
} from '../segment/format.ts'
import { readSalvage } from '../segment/salvage.ts'
import type { Placed } from './losses.ts'
import { SegmentBytes } from './segment-bytes.ts'

const SEARCH_BYTES = 256 * 1024
/** The largest batch that a topic may allow, and its envelope. */
const ENTRY_BYTES_MAX = BATCH_BYTES_MAX + ENVELOPE_BYTES
const SWEEP_BYTES = 2 * ENTRY_BYTES_MAX
const BLOCK_MAGIC: Uint8Array = Uint8Array.of(0x45, 0x47, 0x53, 0x42)

/** An entry that is whole, and where its bytes are. */
export interface LeftEntry extends Placed {
  readonly logTimeMs: number
  readonly from: 'log' | 'salvage' | 'wal'
  /** In the .log: of its envelope. */
  readonly position: number
  readonly bytes: number
}

export interface Fault {
  readonly file: string
  readonly position: number | undefined
  readonly what: string
}

export interface Survey {
  readonly faults: readonly Fault[]
  /** In entry order, each once. Empty after a first look. */
  readonly entries: readonly LeftEntry[]
  /** Of the log up to its first fault. */
  readonly soundEnd: number
  /** Behind every entry that anything on disk speaks of. */
  readonly witnessedEnd: number
  /** Partition -> behind every offset of it that anything on disk speaks of. */
  readonly witnessedOffsets: ReadonlyMap<number, number>
  /** Behind the last fault nothing is known to follow: how much was there nobody knows. */
  readonly openEnded: boolean
  /** The index file is not what the log says; it is made anew at need. */
  readonly indexFault: boolean
  readonly headerPageFault: boolean
  readonly salvaged: boolean
  readonly exists: boolean
}

export async function surveySegment(
  disk: Disk,
  base: string,
  key: SegmentKey,
  listEntries: boolean,
): Promise<Survey> {
  const bytes = await SegmentBytes.open(disk, base)
  try {
    const surveyor = new Surveyor(key, bytes, await indexCopies(disk, base, key), listEntries)
    await surveyor.readLog()
    await surveyor.readSalvage(disk, base)
    return surveyor.result()
  } finally {
    await bytes.close()
  }
}

interface IndexCopies {
  readonly headers: ReadonlyMap<number, BlockHeader>
  /** Something stands behind the last header that checks. */
  readonly torn: boolean
}

/** The block headers that the index file has, by position. */
async function indexCopies(disk: Disk, base: string, key: SegmentKey): Promise<IndexCopies> {
  const headers = new Map<number, BlockHeader>()
  const bytes = await readWhole(disk, `${base}.index`).catch(() => new Uint8Array(0))
  const seed = placeSeed(placeOfKey(key))
  let at = 0
  for (;;) {
    const header = getBlockHeader(bytes, at, seed)
    if (header === undefined) return { headers, torn: at < bytes.length }
    headers.set(header.position, header)
    at += header.headerBytes
  }
}

class Surveyor {
  private readonly key: SegmentKey
  private readonly place: ReturnType<typeof placeOfKey>
  private readonly seed: number
  private readonly bytes: SegmentBytes
  private readonly index: IndexCopies
  private readonly listing: boolean
  private readonly faults: Fault[] = []
  private readonly left = new Map<number, LeftEntry>()
  private readonly offsets = new Map<number, number>()
  private soundEnd = 0
  private witnessedEnd = 0
  private openEnded = false
  private headerPageFault = false
  private indexed = 0
  private salvaged = false

  constructor(key: SegmentKey, bytes: SegmentBytes, index: IndexCopies, listing: boolean) {
    this.key = key
    this.place = placeOfKey(key)
    this.seed = placeSeed(this.place)
    this.bytes = bytes
    this.index = index
    this.listing = listing
  }

  result(): Survey {
    const entries = [...this.left.values()].sort((a, b) => a.entryNumber - b.entryNumber)
    const indexFault =
      this.index.torn || (this.faults.length === 0 && this.indexed < this.index.headers.size)
    return {
      faults: this.faults,
      entries,
      soundEnd: this.soundEnd,
      witnessedEnd: this.witnessedEnd,
      witnessedOffsets: this.offsets,
      openEnded: this.openEnded,
      indexFault,
      headerPageFault: this.headerPageFault,
      salvaged: this.salvaged,
      exists: this.bytes.size > 0,
    }
  }

  private fault(position: number | undefined, what: string): void {
    this.faults.push({ file: this.bytes.path, position, what })
  }

  async readLog(): Promise<void> {
    const { bytes } = this
    if (bytes.cutFault !== undefined) this.fault(undefined, bytes.cutFault)
    if (bytes.size === 0) return
    await this.readHeaderPage()
    for (let position = HEADER_PAGE_BYTES; position < bytes.size; ) {
      const header = await bytes.blockAt(position, this.seed)
      if (header !== undefined) position = await this.readBlock(header)
      else position = await this.passDamage(position)
    }
    // A file that was cut off: its index may still tell of what was behind.
    for (const header of this.index.headers.values()) {
      if (header.position < bytes.size) continue
      this.fault(bytes.size, 'the file ends here, its index tells of more')
      this.witness(header)
    }
  }

  private async readHeaderPage(): Promise<void> {
    const page = decodeHeaderPage(await this.bytes.read(0, HEADER_PAGE_BYTES))
    if (typeof page !== 'string' && samePlace(page, this.place)) return
    this.headerPageFault = true
    const first = await this.bytes.blockAt(HEADER_PAGE_BYTES, this.seed)
    if (first !== undefined && typeof page === 'string') return
    this.fault(0, typeof page === 'string' ? page : 'it belongs to another segment')
  }

  /** Past a place where no block header checks; where to go on. */
  private async passDamage(position: number): Promise<number> {
    const copy = this.index.headers.get(position)
    this.fault(position, 'no valid block header')
    if (copy !== undefined) {
      this.witness(copy)
      await this.readEntries(copy)
      return Math.min(blockEnd(copy), this.bytes.size)
    }
    const next = await this.findBlock(position + 1)
    await this.sweep(position, next ?? this.bytes.size)
    if (next === undefined) this.openEnded = true
    return next ?? this.bytes.size
  }

  private async findBlock(from: number): Promise<number | undefined> {
    for (let at = from; at < this.bytes.size; at += SEARCH_BYTES) {
      const read = await this.bytes.read(at, SEARCH_BYTES + BLOCK_MAGIC.length - 1)
      const chunk = Buffer.from(read.buffer, read.byteOffset, read.length)
      for (let i = chunk.indexOf(BLOCK_MAGIC); i >= 0; i = chunk.indexOf(BLOCK_MAGIC, i + 1)) {
        if ((await this.bytes.blockAt(at + i, this.seed)) !== undefined) return at + i
      }
    }
    return undefined
  }

  /** Entries between two places, whatever block they were of. A window at a time, which an entry always fits. */
  private async sweep(from: number, end: number): Promise<void> {
    for (let at = from; at < end; ) {
      const bytes = await this.bytes.read(at, Math.min(SWEEP_BYTES, end - at))
      let last = at
      for (const found of this.search(bytes, 0, bytes.length)) {
        this.keep(found, at)
        last = at + found.at + ENVELOPE_BYTES + found.entry.batch.length
      }
      if (at + bytes.length >= end || bytes.length === 0) return
      at = Math.max(last, at + bytes.length - ENTRY_BYTES_MAX)
    }
  }

  /** All whole entries of this segment in [from, end), stepping over what is between them. */
  private *search(bytes: Uint8Array, from: number, end: number): Generator<FoundEntry> {
    const { topicIdBytes } = this.place
    for (let at = from; at < end; ) {
      // Cheaper than a checksum at every byte.
      if (bytes[at + 4] !== topicIdBytes[0] || bytes[at + 19] !== topicIdBytes[15]) {
        at++
        continue
      }
      const found = entriesIn(this.place, bytes, at, end)
      yield* found
      const last = found.at(-1)
      if (last === undefined) at++
      else at = last.at + ENVELOPE_BYTES + last.entry.batch.length
    }
  }

  private async readBlock(header: BlockHeader): Promise<number> {
    this.witness(header)
    const { size } = this.bytes
    if (blockEnd(header) > size) this.fault(header.position, 'the block is cut off')
    const before = this.faults.length
    await this.readEntries(header)
    const sound = this.faults.length === 0 && before === 0
    if (sound && header.firstEntry === this.soundEnd) this.soundEnd += header.entryCount
    else if (sound) {
      this.fault(
        header.position,
        `the block begins with entry ${header.firstEntry} instead of ${this.soundEnd}`,
      )
    }
    if (this.index.headers.has(header.position)) this.indexed++
    return Math.min(blockEnd(header), size)
  }

  private async readEntries(header: BlockHeader): Promise<void> {
    const { position, headerBytes, bodyBytes } = header
    const bytes = await this.bytes.read(position, headerBytes + bodyBytes)
    for (const piece of header.pieces) this.readPiece(piece, bytes, position)
  }

  private readPiece(piece: Piece, bytes: Uint8Array, position: number): void {
    const end = Math.min(bytes.length, piece.at + piece.bytes)
    let count = 0
    let at = piece.at
    for (const found of this.search(bytes, piece.at, end)) {
      const { partition, baseOffset, recordCount } = found.entry
      if (found.at > at) this.fault(position + at, 'the entry does not match its checksums')
      at = found.at + ENVELOPE_BYTES + found.entry.batch.length
      const inPiece =
        partition === piece.partition &&
        baseOffset >= piece.firstOffset &&
        baseOffset + recordCount <= piece.nextOffset
      if (!inPiece) continue
      count++
      this.keep(found, position)
    }
    if (at < piece.at + piece.bytes) {
      this.fault(position + at, 'the entry does not match its checksums')
    } else if (count !== piece.entries) {
      this.fault(position + piece.at, `${count} entries instead of ${piece.entries}`)
    }
  }

  private keep({ at, entry }: FoundEntry, origin: number): void {
    const { entryNumber, partition, baseOffset, recordCount, logTimeMs, batch } = entry
    this.reach(entryNumber + 1, partition, baseOffset + recordCount)
    if (!this.listing || this.left.has(entryNumber)) return
    this.left.set(entryNumber, {
      entryNumber,
      partition,
      baseOffset,
      recordCount,
      logTimeMs,
      from: 'log',
      position: origin + at,
      bytes: ENVELOPE_BYTES + batch.length,
    })
  }

  private witness(header: BlockHeader): void {
    for (const { partition, nextOffset } of header.pieces) {
      this.reach(header.firstEntry + header.entryCount, partition, nextOffset)
    }
  }

  private reach(entryEnd: number, partition: number, nextOffset: number): void {
    this.witnessedEnd = Math.max(this.witnessedEnd, entryEnd)
    this.offsets.set(partition, Math.max(this.offsets.get(partition) ?? 0, nextOffset))
  }

  async readSalvage(disk: Disk, base: string): Promise<void> {
    try {
      for (const entry of await readSalvage(disk, base, this.place)) {
        this.salvaged = true
        const { entryNumber, partition, baseOffset, recordCount, logTimeMs, batch } = entry
        this.reach(entryNumber + 1, partition, baseOffset + recordCount)
        if (!this.listing || this.left.has(entryNumber) || isHole(batch)) continue
        const spot = { entryNumber, partition, baseOffset, recordCount, logTimeMs }
        const bytes = ENVELOPE_BYTES + batch.length
        this.left.set(entryNumber, { ...spot, from: 'salvage', position: -1, bytes })
      }
    } catch (error) {
      if (!(error instanceof EastGuardError) || error.code !== 'DAMAGED') throw error
      this.salvaged = true
      this.faults.push({ file: `${base}.salvage`, position: undefined, what: error.message })
      this.openEnded = true
    }
  }
}
