// A segment file: one header page, then blocks. A block holds a contiguous run of entry numbers, but inside it the
// entries lie grouped by partition, so that a reader of one partition of a wide range reads what it asked for:
//
//   | header page | block 0..6 | block 7..11 | ...
//
//   block 0..6   | fixed | directory: one line per piece | p0: e0 e3 | p1: e1 e2 e6 | p5: e4 e5 |
//
// A piece is a run of one partition's entries, about 64 KiB at most, so that an offset in the middle of a long run is
// found without reading the run. The directory is all that an index needs: the .index file is the block headers
// copied out one after another (index/index-file.ts), and is rebuilt by walking from header to header.
//
// The checksum of a block header is seeded with the segment's identity, so that a header of another segment cannot pass
// for one of this. Entries carry checksums of their own (model/entry.ts); the body needs none.
//
//   header page (4096 bytes)          block header (48 + 48 n bytes)         directory line (48 bytes)
//    0 u32 magic EGSF                  0 u32 magic EGSB                       0 u32 partition
//    4 u32 CRC32C over 8..4096         4 u32 CRC32C over 8..end, seeded       4 u32 entries
//    8 u32 format version              8 u32 header bytes                     8 u64 first offset
//   12 u32 range                      12 u32 body bytes                      16 u64 next offset
//   16 u64 segment                    16 u64 position in the file            24 u32 bytes from the block's start
//   24 16B topic id                   24 u64 first entry number              28 u32 bytes
//   40 zeros                          32 u32 entries                         32 i64 greatest record timestamp
//                                     36 u32 pieces                          40 u32 least key hash
//                                     40 zeros                               44 u32 greatest key hash

import { getI64, getU32, putI64, putU32 } from '../../base/bytes.ts'
import { crc32c } from '../../base/checksum.ts'
import type { SegmentPlace } from '../../model/entry.ts'

export const HEADER_PAGE_BYTES = 4096
export const BLOCK_FIXED_BYTES = 48
export const PIECE_LINE_BYTES = 48
/** A piece is closed before it would grow beyond this; a single larger entry is a piece of its own. */
export const PIECE_BYTES_MAX: number = 64 * 1024
/** Bounds the directory, and so what a reader takes memory for before it has checked anything. */
export const BLOCK_ENTRIES_MAX = 16_384
const FILE_MAGIC = 0x45475346
const BLOCK_MAGIC = 0x45475342
const FORMAT_VERSION = 1

/** A run of one partition's entries inside a block. */
export interface Piece {
  readonly partition: number
  readonly entries: number
  readonly firstOffset: number
  readonly nextOffset: number
  /** Counted from the block's first byte. */
  readonly at: number
  readonly bytes: number
  readonly maxTimestamp: number
  readonly leastKeyHash: number
  readonly greatestKeyHash: number
}

export interface BlockHeader {
  readonly position: number
  readonly headerBytes: number
  readonly bodyBytes: number
  readonly firstEntry: number
  readonly entryCount: number
  readonly pieces: readonly Piece[]
}

export function blockEnd(block: BlockHeader): number {
  return block.position + block.headerBytes + block.bodyBytes
}

/** Seeds the checksums of a segment's block headers. */
export function placeSeed(place: SegmentPlace): number {
  const bytes = new Uint8Array(12)
  putU32(bytes, 0, place.range)
  putI64(bytes, 4, place.segment)
  return crc32c(bytes, crc32c(place.topicIdBytes))
}

export function encodeHeaderPage(place: SegmentPlace): Uint8Array {
  const page = new Uint8Array(HEADER_PAGE_BYTES)
  putU32(page, 0, FILE_MAGIC)
  putU32(page, 8, FORMAT_VERSION)
  putU32(page, 12, place.range)
  putI64(page, 16, place.segment)
  page.set(place.topicIdBytes, 24)
  putU32(page, 4, crc32c(page.subarray(8)))
  return page
}

/** False when the page is not what was once written, whatever that said. */
export function headerPageChecks(page: Uint8Array): boolean {
  if (page.length < HEADER_PAGE_BYTES || getU32(page, 0) !== FILE_MAGIC) return false
  return getU32(page, 4) === crc32c(page.subarray(8, HEADER_PAGE_BYTES))
}

/** Whose file it is, or what is wrong with its first page. */
export function decodeHeaderPage(page: Uint8Array): SegmentPlace | string {
  if (page.length < HEADER_PAGE_BYTES) return `the header page has only ${page.length} bytes`
  if (getU32(page, 0) !== FILE_MAGIC) return 'the file does not begin as a segment file does'
  if (getU32(page, 4) !== crc32c(page.subarray(8, HEADER_PAGE_BYTES))) {
    return 'the checksum of the header page does not match'
  }
  if (getU32(page, 8) !== FORMAT_VERSION) return `format version ${getU32(page, 8)} is not known`
  return {
    topicIdBytes: page.slice(24, 40),
    range: getU32(page, 12),
    segment: getI64(page, 16),
  }
}

/** Writes the header at the start of `into`. */
export function putBlockHeader(into: Uint8Array, block: BlockHeader, seed: number): void {
  putU32(into, 0, BLOCK_MAGIC)
  putU32(into, 8, block.headerBytes)
  putU32(into, 12, block.bodyBytes)
  putI64(into, 16, block.position)
  putI64(into, 24, block.firstEntry)
  putU32(into, 32, block.entryCount)
  putU32(into, 36, block.pieces.length)
  putI64(into, 40, 0)
  let at = BLOCK_FIXED_BYTES
  for (const piece of block.pieces) {
    putU32(into, at, piece.partition)
    putU32(into, at + 4, piece.entries)
    putI64(into, at + 8, piece.firstOffset)
    putI64(into, at + 16, piece.nextOffset)
    putU32(into, at + 24, piece.at)
    putU32(into, at + 28, piece.bytes)
    putI64(into, at + 32, piece.maxTimestamp)
    putU32(into, at + 40, piece.leastKeyHash)
    putU32(into, at + 44, piece.greatestKeyHash)
    at += PIECE_LINE_BYTES
  }
  putU32(into, 4, crc32c(into.subarray(8, block.headerBytes), seed))
}

/**
 * How long the header at `at` says it is, from its first BLOCK_FIXED_BYTES; undefined when it is none. Unchecked but
 * bounded: no more than BLOCK_ENTRIES_MAX directory lines.
 */
export function blockHeaderBytes(bytes: Uint8Array, at: number): number | undefined {
  if (at + BLOCK_FIXED_BYTES > bytes.length || getU32(bytes, at) !== BLOCK_MAGIC) return undefined
  const pieces = getU32(bytes, at + 36)
  const entries = getU32(bytes, at + 32)
  if (pieces === 0 || pieces > entries || entries > BLOCK_ENTRIES_MAX) return undefined
  const length = getU32(bytes, at + 8)
  return length === BLOCK_FIXED_BYTES + pieces * PIECE_LINE_BYTES ? length : undefined
}

/** The block header at `at`, checked; undefined when there is no whole and valid one of this segment. */
export function getBlockHeader(
  bytes: Uint8Array,
  at: number,
  seed: number,
): BlockHeader | undefined {
  const headerBytes = blockHeaderBytes(bytes, at)
  if (headerBytes === undefined || at + headerBytes > bytes.length) return undefined
  if (getU32(bytes, at + 4) !== crc32c(bytes.subarray(at + 8, at + headerBytes), seed)) {
    return undefined
  }
  const pieces: Piece[] = []
  for (let line = at + BLOCK_FIXED_BYTES; line < at + headerBytes; line += PIECE_LINE_BYTES) {
    pieces.push({
      partition: getU32(bytes, line),
      entries: getU32(bytes, line + 4),
      firstOffset: getI64(bytes, line + 8),
      nextOffset: getI64(bytes, line + 16),
      at: getU32(bytes, line + 24),
      bytes: getU32(bytes, line + 28),
      maxTimestamp: getI64(bytes, line + 32),
      leastKeyHash: getU32(bytes, line + 40),
      greatestKeyHash: getU32(bytes, line + 44),
    })
  }
  return {
    position: getI64(bytes, at + 16),
    headerBytes,
    bodyBytes: getU32(bytes, at + 12),
    firstEntry: getI64(bytes, at + 24),
    entryCount: getU32(bytes, at + 32),
    pieces,
  }
}
