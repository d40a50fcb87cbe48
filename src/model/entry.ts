// An entry: one batch in its place. The stored form is an envelope of ENVELOPE_BYTES and then the batch,
// untouched but for baseOffset and partitionLeaderEpoch, which the batch's own CRC does not cover. So the envelope has
// a CRC of its own that covers the envelope and the batch's first 21 bytes; together the two cover every byte.
//
//   0  u32  CRC32C over bytes 4..88 and the first 21 bytes of the batch
//   4  16B  topic id
//  20  u32  range
//  24  u64  segment number
//  32  u64  entry number
//  40  u32  partition
//  44  u64  base offset
//  52  u32  record count
//  56  u64  log time, ms (the leader's monotonic log clock, PROTOCOLS §8)
//  64  u64  high watermark known when written
//  72  u32  least key hash        (xxh32; 0 and 0xffffffff when unknown: full span)
//  76  u32  greatest key hash
//  80  u32  batch length
//  84  u32  reserved, 0
//  88

import { equalBytes, getI64, getU32, putI64, putU32 } from '../base/bytes.ts'
import { crc32cOf } from '../base/checksum.ts'

export const ENVELOPE_BYTES = 88
/** The part of a batch that its own CRC leaves out. */
export const BATCH_UNCOVERED_BYTES = 21

/** An entry as the leader numbers it. `batch` is the whole batch v2, base offset and epoch already set in it. */
export interface Entry {
  readonly entryNumber: number
  readonly partition: number
  readonly baseOffset: number
  readonly recordCount: number
  readonly logTimeMs: number
  readonly highWatermark: number
  readonly leastKeyHash: number
  readonly greatestKeyHash: number
  readonly batch: Uint8Array
}

/** The place that all entries of one segment share. */
export interface SegmentPlace {
  readonly topicIdBytes: Uint8Array
  readonly range: number
  readonly segment: number
}

/** Of the same segment. */
export function samePlace(a: SegmentPlace, b: SegmentPlace): boolean {
  return (
    a.segment === b.segment && a.range === b.range && equalBytes(a.topicIdBytes, b.topicIdBytes)
  )
}

/** Writes the envelope, checksum included, at `at` in `into`. */
export function putEnvelope(into: Uint8Array, at: number, place: SegmentPlace, entry: Entry): void {
  const { topicIdBytes } = place
  // Sixteen bytes by hand: a third of what a call of `set` costs.
  for (let i = 0; i < 16; i++) into[at + 4 + i] = topicIdBytes[i] as number
  putU32(into, at + 20, place.range)
  putI64(into, at + 24, place.segment)
  putI64(into, at + 32, entry.entryNumber)
  putU32(into, at + 40, entry.partition)
  putI64(into, at + 44, entry.baseOffset)
  putU32(into, at + 52, entry.recordCount)
  putI64(into, at + 56, entry.logTimeMs)
  putI64(into, at + 64, entry.highWatermark)
  putU32(into, at + 72, entry.leastKeyHash)
  putU32(into, at + 76, entry.greatestKeyHash)
  putU32(into, at + 80, entry.batch.length)
  putU32(into, at + 84, 0)
  const crc = crc32cOf(into, at + 4, at + ENVELOPE_BYTES)
  putU32(into, at, crc32cOf(entry.batch, 0, BATCH_UNCOVERED_BYTES, crc))
}

export interface DecodedEnvelope {
  readonly place: SegmentPlace
  readonly entry: Entry
}

/**
 * Reads an envelope at `at` and the batch behind it. Undefined when the bytes end too early or the envelope's checksum is
 * wrong; the batch's own CRC is for the caller to check (model/batch).
 */
export function getEnvelope(bytes: Uint8Array, at: number): DecodedEnvelope | undefined {
  const start = at + ENVELOPE_BYTES
  if (start + BATCH_UNCOVERED_BYTES > bytes.length) return undefined
  const length = getU32(bytes, at + 80)
  if (length < BATCH_UNCOVERED_BYTES || start + length > bytes.length) return undefined
  const crc = crc32cOf(bytes, at + 4, start + BATCH_UNCOVERED_BYTES)
  if (crc !== getU32(bytes, at)) return undefined
  return {
    place: {
      topicIdBytes: bytes.subarray(at + 4, at + 20),
      range: getU32(bytes, at + 20),
      segment: getI64(bytes, at + 24),
    },
    entry: {
      entryNumber: getI64(bytes, at + 32),
      partition: getU32(bytes, at + 40),
      baseOffset: getI64(bytes, at + 44),
      recordCount: getU32(bytes, at + 52),
      logTimeMs: getI64(bytes, at + 56),
      highWatermark: getI64(bytes, at + 64),
      leastKeyHash: getU32(bytes, at + 72),
      greatestKeyHash: getU32(bytes, at + 76),
      batch: bytes.subarray(start, start + length),
    },
  }
}
