// Where things lie in a segment file, in memory: what the block directories say, in typed arrays.
//
//   partition -> [first offset, position, bytes, greatest timestamp so far] per piece, by offset
//   blocks    -> [first entry number, position, bytes] per block
//
// Offsets are dense, so the piece of an offset is the last one that begins at or below it. Timestamps are kept as the
// greatest so far: they never fall, so the first piece that reaches a timestamp is found by a binary search too,
// and it holds the record that made it reach it. One table of contents answers both questions.

import { assert } from '../../base/assert.ts'
import { type BlockHeader, blockEnd, HEADER_PAGE_BYTES } from '../segment/format.ts'

const PIECE_FIELDS = 4
const BLOCK_FIELDS = 3
/** A Map slot and the lists' own objects, roughly. */
const PARTITION_OVERHEAD_BYTES = 300

/** Rows of numbers that grow by doubling. */
class Rows {
  private values: Float64Array
  private readonly fields: number
  length = 0

  constructor(fields: number) {
    this.fields = fields
    this.values = new Float64Array(4 * fields)
  }

  get memoryBytes(): number {
    return this.values.byteLength
  }

  add(): number {
    const at = this.length * this.fields
    if (at === this.values.length) {
      const larger = new Float64Array(2 * this.values.length)
      larger.set(this.values)
      this.values = larger
    }
    this.length++
    return at
  }

  set(at: number, value: number): void {
    this.values[at] = value
  }

  get(row: number, field: number): number {
    return this.values[row * this.fields + field] as number
  }

  /** The first row whose `field` is >= `value`; `length` when none is. The field never falls from row to row. */
  firstAtLeast(field: number, value: number): number {
    let low = 0
    let high = this.length
    while (low < high) {
      const middle = (low + high) >>> 1
      if (this.get(middle, field) >= value) high = middle
      else low = middle + 1
    }
    return low
  }
}

interface PartitionPieces {
  readonly rows: Rows
  nextOffset: number
  maxTimestamp: number
}

/** Bytes [position, position + bytes) of the file hold the partition's entries from `firstOffset` on. */
export interface PiecePlace {
  readonly firstOffset: number
  readonly position: number
  readonly bytes: number
}

export interface BlockPlace {
  readonly firstEntry: number
  readonly position: number
  readonly bytes: number
}

export class SegmentIndex {
  private readonly partitions: Map<number, PartitionPieces> = new Map()
  private readonly blocks: Rows = new Rows(BLOCK_FIELDS)
  /** Where the next block begins: the file is indexed up to here. */
  fileEnd: number = HEADER_PAGE_BYTES
  entryEnd = 0
  memoryBytes = 0

  /** True when the block comes right behind the last one. */
  follows(block: BlockHeader): boolean {
    return block.position === this.fileEnd && block.firstEntry === this.entryEnd
  }

  add(block: BlockHeader): void {
    assert(this.follows(block), 'blocks are indexed in order')
    const at = this.addRow(this.blocks)
    this.blocks.set(at, block.firstEntry)
    this.blocks.set(at + 1, block.position)
    this.blocks.set(at + 2, block.headerBytes + block.bodyBytes)
    for (const piece of block.pieces) {
      let pieces = this.partitions.get(piece.partition)
      if (pieces === undefined) {
        pieces = {
          rows: new Rows(PIECE_FIELDS),
          nextOffset: 0,
          maxTimestamp: Number.NEGATIVE_INFINITY,
        }
        this.partitions.set(piece.partition, pieces)
        this.memoryBytes += PARTITION_OVERHEAD_BYTES
      }
      pieces.maxTimestamp = Math.max(pieces.maxTimestamp, piece.maxTimestamp)
      pieces.nextOffset = piece.nextOffset
      const row = this.addRow(pieces.rows)
      pieces.rows.set(row, piece.firstOffset)
      pieces.rows.set(row + 1, block.position + piece.at)
      pieces.rows.set(row + 2, piece.bytes)
      pieces.rows.set(row + 3, pieces.maxTimestamp)
    }
    this.fileEnd = blockEnd(block)
    this.entryEnd = block.firstEntry + block.entryCount
  }

  private addRow(rows: Rows): number {
    const before = rows.length === 0 ? 0 : rows.memoryBytes
    const at = rows.add()
    this.memoryBytes += rows.memoryBytes - before
    return at
  }

  /**
   * The pieces that hold `offset` and what follows it, at most `limit` of them and no more than reach `bytes`
   * behind the first; none when the file has nothing of the partition at or above `offset`.
   */
  find(partition: number, offset: number, bytes: number, limit: number): readonly PiecePlace[] {
    const pieces = this.partitions.get(partition)
    if (pieces === undefined || offset >= pieces.nextOffset) return []
    const { rows } = pieces
    const above = rows.firstAtLeast(0, offset + 1)
    const found: PiecePlace[] = []
    let total = 0
    for (let row = Math.max(0, above - 1); row < rows.length && found.length < limit; row++) {
      const place = pieceAt(rows, row)
      found.push(place)
      total += place.bytes
      if (total >= bytes) break
    }
    return found
  }

  /** Behind the partition's last offset in the file; 0 when it has none. */
  nextOffset(partition: number): number {
    return this.partitions.get(partition)?.nextOffset ?? 0
  }

  /** The first piece with a record timestamp >= `timestamp`. */
  findTime(partition: number, timestamp: number): PiecePlace | undefined {
    const pieces = this.partitions.get(partition)
    if (pieces === undefined || timestamp > pieces.maxTimestamp) return undefined
    return pieceAt(pieces.rows, pieces.rows.firstAtLeast(3, timestamp))
  }

  /** The block that holds the entry, which must be in the file. */
  blockOf(entryNumber: number): BlockPlace {
    assert(entryNumber < this.entryEnd, 'the entry is in the file')
    const row = this.blocks.firstAtLeast(0, entryNumber + 1) - 1
    return {
      firstEntry: this.blocks.get(row, 0),
      position: this.blocks.get(row, 1),
      bytes: this.blocks.get(row, 2),
    }
  }
}

function pieceAt(rows: Rows, row: number): PiecePlace {
  return { firstOffset: rows.get(row, 0), position: rows.get(row, 1), bytes: rows.get(row, 2) }
}
