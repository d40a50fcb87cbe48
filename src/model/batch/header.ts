// Kafka's record batch v2 (magic 2): the fixed header, field by field, and the check that a broker makes of a batch it
// is given. Source: "Record Batch" in the Apache Kafka protocol documentation.
//
//   0 i64 base offset          * set by the broker, not covered by the CRC
//   8 i32 batch length         bytes after this field
//  12 i32 partition leader epoch * set by the broker
//  16 i8  magic = 2
//  17 u32 CRC32C               over byte 21 to the end
//  21 i16 attributes           0-2 codec, 3 timestamp type, 4 transactional, 5 control, 6 delete horizon
//  23 i32 last offset delta
//  27 i64 base timestamp
//  35 i64 max timestamp
//  43 i64 producer id          -1: not idempotent
//  51 i16 producer epoch
//  53 i32 base sequence
//  57 i32 record count
//  61     records

import { getI16, getI32, getI64, getU16, getU32, putI64, putU32 } from '../../base/bytes.ts'
import { crc32cOf } from '../../base/checksum.ts'
import { CODECS, type Codec } from '../../base/codec.ts'
import { type ErrorCode } from '../../base/errors.ts'

export const BATCH_HEADER_BYTES = 61
/** baseOffset and batchLength: what comes before the counted bytes. */
export const BATCH_PREFIX_BYTES = 12
/** Length, attributes, time delta, offset delta, key length, value length, number of headers: a byte each. */
const RECORD_BYTES_MIN = 7
const CRC_AT = 17
const CRC_FROM = 21
const CODEC_MASK = 0x07
/** Timestamp type and codec are the only attributes that a producer may set. */
const ATTRIBUTES_ALLOWED = 0x0f

export const NO_PRODUCER = -1

export function batchSize(b: Uint8Array, at: number = 0): number {
  return BATCH_PREFIX_BYTES + getI32(b, at + 8)
}
export function baseOffset(b: Uint8Array): number {
  return getI64(b, 0)
}
export function leaderEpoch(b: Uint8Array): number {
  return getI32(b, 12)
}
export function attributes(b: Uint8Array): number {
  return getU16(b, 21)
}
/** Undefined when the attribute bits name a codec that does not exist. */
export function batchCodec(b: Uint8Array): Codec | undefined {
  return CODECS[attributes(b) & CODEC_MASK]
}
export function recordCount(b: Uint8Array): number {
  return getI32(b, 57)
}
export function baseTimestamp(b: Uint8Array): number {
  return getI64(b, 27)
}
export function maxTimestamp(b: Uint8Array): number {
  return getI64(b, 35)
}
export function producerId(b: Uint8Array): number {
  return getI64(b, 43)
}
export function producerEpoch(b: Uint8Array): number {
  return getI16(b, 51)
}
export function baseSequence(b: Uint8Array): number {
  return getI32(b, 53)
}

/** Sets what the leader decides: the base offset and the segment number as leader epoch. In place; the CRC stays right. */
export function placeBatch(b: Uint8Array, offset: number, segment: number): void {
  putI64(b, 0, offset)
  putU32(b, 12, segment)
}

/** True when the CRC32C over byte 21 to the end matches. The length must have been checked. */
export function batchCrcMatches(b: Uint8Array): boolean {
  return crc32cOf(b, CRC_FROM, b.length) === getU32(b, CRC_AT)
}

export function setBatchCrc(b: Uint8Array): void {
  putU32(b, CRC_AT, crc32cOf(b, CRC_FROM, b.length))
}

export interface BatchFault {
  readonly code: ErrorCode
  readonly message: string
}

/** Everything that PROTOCOLS §1 asks of a batch before it is taken; undefined when it is good. `b` is exactly one batch. */
export function batchFault(b: Uint8Array, maxBytes: number): BatchFault | undefined {
  if (b.length > maxBytes) {
    return fault('BATCH_TOO_LARGE', `a batch of ${b.length} bytes, at most ${maxBytes} are taken`)
  }
  if (b.length < BATCH_HEADER_BYTES) return fault('CORRUPT_BATCH', `a batch of ${b.length} bytes`)
  if (b[16] !== 2) return fault('UNSUPPORTED_BATCH', `magic ${b[16]}; only 2 is taken`)
  if (batchSize(b) !== b.length) {
    return fault('CORRUPT_BATCH', `the batch says ${batchSize(b)} bytes but has ${b.length}`)
  }
  if (!batchCrcMatches(b)) return fault('CORRUPT_BATCH', 'the checksum does not match')
  if ((attributes(b) & ~ATTRIBUTES_ALLOWED) !== 0) {
    return fault('UNSUPPORTED_BATCH', `attributes 0x${attributes(b).toString(16)}`)
  }
  if (batchCodec(b) === undefined) {
    return fault('UNSUPPORTED_BATCH', `codec ${attributes(b) & CODEC_MASK} does not exist`)
  }
  const count = recordCount(b)
  if (count < 1 || count !== getI32(b, 23) + 1) {
    return fault('CORRUPT_BATCH', `${count} records with a last offset delta of ${getI32(b, 23)}`)
  }
  // Compressed records are not opened here; plain ones must at least have room for what is announced, or the batch would
  // take offsets that no record fills and stop every consumer of the partition.
  const recordsBytes = b.length - BATCH_HEADER_BYTES
  if (batchCodec(b) === 'none' && count * RECORD_BYTES_MIN > recordsBytes) {
    return fault('CORRUPT_BATCH', `${count} records in ${recordsBytes} bytes`)
  }
  return undefined
}

function fault(code: ErrorCode, message: string): BatchFault {
  return { code, message }
}
