// A batch v2 (header.ts) back into records. Keys, values and header values are views of the bytes given, not copies, and
// live as long as those. Nothing is trusted: lengths are checked against the record's end, a record's end
// against the batch's, the count against both; whatever is wrong is DECODE_FAILED.
//
//   for (const batch of batchesIn(bytes)) {          one after another, as a fetch gives them
//     const codec = batchCodec(batch)                none: decode at once; else decompress recordsSection(batch) first
//     const reader = new RecordReader(batch)         or new RecordReader(batch, decompressed)
//     for (let record = reader.next(); record !== undefined; record = reader.next()) use(record)
//   }

import { fromUtf8 } from '../../base/bytes.ts'
import {
  attributes,
  BATCH_HEADER_BYTES,
  baseOffset,
  baseTimestamp,
  batchCodec,
  batchSize,
  maxTimestamp,
  recordCount,
} from './header.ts'
import { decodeFailed, VarintReader } from './varint.ts'

/** Length, attributes, two deltas, key length, value length and header count, a byte each. */
const RECORD_BYTES_LEAST = 7
const HEADER_BYTES_LEAST = 2
/** The broker's log time stands in the batch's max timestamp and is that of every record. */
const LOG_APPEND_TIME = 0x08

interface RecordHeader {
  readonly key: string
  readonly value: Uint8Array | null
}

/** A record as it was stored. Views of the batch: copy what must outlive it. */
export interface StoredRecord {
  readonly offset: number
  /** Milliseconds; -1: none. */
  readonly timestamp: number
  readonly key: Uint8Array | null
  readonly value: Uint8Array | null
  readonly headers: readonly RecordHeader[]
}

const NO_HEADERS: readonly RecordHeader[] = []

/** The offset after the batch's last. */
export function batchEndOffset(batch: Uint8Array): number {
  return baseOffset(batch) + recordCount(batch)
}

/** The records as they are stored, compressed when the batch's codec is not none. */
export function recordsSection(batch: Uint8Array): Uint8Array {
  return batch.subarray(BATCH_HEADER_BYTES)
}

/**
 * The batches in a run of bytes, in order, as views. Checks magic and lengths only; a caller that does not trust the
 * transport checks each with batchFault. Throws DECODE_FAILED.
 */
export function batchesIn(bytes: Uint8Array): Uint8Array[] {
  const batches: Uint8Array[] = []
  let at = 0
  while (at < bytes.length) {
    const left = bytes.length - at
    if (left < BATCH_HEADER_BYTES) throw decodeFailed(`${left} bytes are no batch`)
    const size = batchSize(bytes, at)
    if (size < BATCH_HEADER_BYTES || size > left) {
      throw decodeFailed(`it says ${size} bytes, and ${left} are there`)
    }
    if (bytes[at + 16] !== 2) throw decodeFailed(`magic is ${bytes[at + 16]}`)
    batches.push(bytes.subarray(at, at + size))
    at += size
  }
  return batches
}

/** Reads the records of one batch, one at a time. */
export class RecordReader {
  /** Records not read yet. */
  left: number
  private readonly input: VarintReader
  private readonly baseOffset: number
  private readonly baseTimestamp: number
  /** Set when all records bear the broker's time. */
  private readonly logTime: number | undefined

  /** `records` is the decompressed section; without it the batch must not be compressed. */
  constructor(batch: Uint8Array, records?: Uint8Array) {
    if (batch.length < BATCH_HEADER_BYTES) throw decodeFailed(`${batch.length} bytes are no batch`)
    if (records === undefined && batchCodec(batch) !== 'none') {
      throw decodeFailed('it is compressed')
    }
    const count = recordCount(batch)
    this.input =
      records === undefined
        ? new VarintReader(batch, BATCH_HEADER_BYTES, batchEnd(batch))
        : new VarintReader(records, 0, records.length)
    const bytes = this.input.end - this.input.at
    if (count < 0 || count * RECORD_BYTES_LEAST > bytes) {
      throw decodeFailed(`${count} records in ${bytes} bytes`)
    }
    this.left = count
    this.baseOffset = baseOffset(batch)
    this.baseTimestamp = baseTimestamp(batch)
    this.logTime = (attributes(batch) & LOG_APPEND_TIME) === 0 ? undefined : maxTimestamp(batch)
  }

  /** Undefined behind the last. */
  next(): StoredRecord | undefined {
    const { input } = this
    if (this.left === 0) {
      if (input.at !== input.end) throw decodeFailed(`${input.end - input.at} bytes too many`)
      return undefined
    }
    this.left--
    const length = input.varint()
    const recordEnd = input.at + length
    if (length < RECORD_BYTES_LEAST - 1 || recordEnd > input.end) {
      throw decodeFailed(`a record says ${length} bytes, and ${input.end - input.at} are left`)
    }
    input.at++
    const timestampDelta = input.varlong()
    const offsetDelta = input.varint()
    const key = sized(input, recordEnd)
    const value = sized(input, recordEnd)
    const headerCount = input.varint()
    const headers = headerCount === 0 ? NO_HEADERS : readHeaders(input, headerCount, recordEnd)
    if (input.at !== recordEnd) {
      throw decodeFailed(`a record ends at byte ${input.at} and says ${recordEnd}`)
    }
    return {
      offset: this.baseOffset + offsetDelta,
      timestamp: this.logTime ?? this.baseTimestamp + timestampDelta,
      key,
      value,
      headers,
    }
  }
}

/** All records of a batch. */
export function readRecords(batch: Uint8Array, records?: Uint8Array): StoredRecord[] {
  const reader = new RecordReader(batch, records)
  const all: StoredRecord[] = []
  for (let record = reader.next(); record !== undefined; record = reader.next()) all.push(record)
  return all
}

function batchEnd(batch: Uint8Array): number {
  const size = batchSize(batch)
  if (size < BATCH_HEADER_BYTES || size > batch.length) {
    throw decodeFailed(`it says ${size} bytes, and ${batch.length} are there`)
  }
  return size
}

function sized(input: VarintReader, recordEnd: number): Uint8Array | null {
  const length = input.varint()
  if (length < 0) {
    if (length !== -1) throw decodeFailed(`a length is ${length}`)
    return null
  }
  const { at } = input
  if (length > recordEnd - at) {
    throw decodeFailed(`a length is ${length}, and ${recordEnd - at} bytes are left`)
  }
  input.at = at + length
  return input.bytes.subarray(at, at + length)
}

function readHeaders(
  input: VarintReader,
  count: number,
  recordEnd: number,
): readonly RecordHeader[] {
  if (count < 0 || count * HEADER_BYTES_LEAST > recordEnd - input.at) {
    throw decodeFailed(`${count} headers in ${recordEnd - input.at} bytes`)
  }
  const headers: RecordHeader[] = []
  for (let i = 0; i < count; i++) {
    const key = sized(input, recordEnd)
    if (key === null) throw decodeFailed('a header has no key')
    headers.push({ key: headerKey(key), value: sized(input, recordEnd) })
  }
  return headers
}

function headerKey(bytes: Uint8Array): string {
  try {
    return fromUtf8(bytes)
  } catch (cause) {
    throw decodeFailed("a header's key is not UTF-8", cause)
  }
}
