// Records into a batch v2 (header.ts). The builder writes each record where it will stay, so that the size is exact at
// every moment and an uncompressed batch is never copied. A record, all numbers variable-length (varint.ts):
//
//   length │ i8 attributes = 0 │ timestamp delta │ offset delta │ key length (-1: null) │ key │ value length │ value │
//   header count │ header count x { key length │ key │ value length (-1: null) │ value }
//
// Compression happens outside (ports/compute): `records()` is what to compress, and `finish` takes the result. Header
// fields are written by `finish`, since producer and sequence are known last.

import { assert } from '../../base/assert.ts'
import { putI64, putU16, putU32, utf8 } from '../../base/bytes.ts'
import { CODECS, type Codec } from '../../base/codec.ts'
import { BATCH_HEADER_BYTES, BATCH_PREFIX_BYTES, NO_PRODUCER, setBatchCrc } from './header.ts'
import { lengthBytes, putVarint, putVarlong, varlongBytes } from './varint.ts'

/** The last moment that a JavaScript date has, and so the last that can be a record's time, in ms. */
export const TIMESTAMP_MAX = 8_640_000_000_000_000

const MAGIC = 2
const CAPACITY_LEAST = 1024
/** Shorter runs are copied by hand: that beats the call of `set`. */
const SHORT_RUN = 24

/** A header of a record as it is stored. `key` may be text; it is UTF-8 on the wire. */
export interface RecordHeaderBytes {
  readonly key: string | Uint8Array
  readonly value: Uint8Array | null
}

const NO_HEADERS: readonly RecordHeaderBytes[] = []

export interface BatchFinish {
  /** NO_PRODUCER (with epoch and sequence -1): not idempotent. */
  readonly producerId: number
  readonly producerEpoch: number
  readonly baseSequence: number
  /** What `compressedRecords` was compressed with; none without it. */
  readonly codec?: Codec
  readonly compressedRecords?: Uint8Array
}

export const NOT_IDEMPOTENT: BatchFinish = {
  producerId: NO_PRODUCER,
  producerEpoch: -1,
  baseSequence: -1,
}

export class BatchBuilder {
  private bytes: Uint8Array
  private at = BATCH_HEADER_BYTES
  private records_ = 0
  private baseTimestamp = 0
  private maxTimestamp = 0

  /** `capacity` is a guess of the batch's size; the builder grows beyond it. */
  constructor(capacity: number = CAPACITY_LEAST) {
    this.bytes = new Uint8Array(Math.max(capacity, BATCH_HEADER_BYTES))
  }

  get count(): number {
    return this.records_
  }
  /** Bytes of the whole batch, were it finished now without compression. */
  get size(): number {
    return this.at
  }
  /** Bytes of the records without the batch's header. */
  get recordsSize(): number {
    return this.at - BATCH_HEADER_BYTES
  }

  /**
   * Appends a record; timestamps are whole milliseconds from -1 (none) to TIMESTAMP_MAX. False, and nothing was appended, when the batch has
   * records already and would exceed `sizeMax` with this one: a first record is always taken.
   */
  append(
    key: Uint8Array | null,
    value: Uint8Array | null,
    headers: readonly RecordHeaderBytes[] = NO_HEADERS,
    timestamp: number = -1,
    sizeMax: number = Number.POSITIVE_INFINITY,
  ): boolean {
    assert(timestamp >= -1 && timestamp <= TIMESTAMP_MAX, 'a timestamp is a moment in ms')
    if (this.records_ === 0) {
      this.baseTimestamp = timestamp
      this.maxTimestamp = timestamp
    }
    const delta = timestamp - this.baseTimestamp
    const body =
      1 +
      (delta === 0 ? 1 : varlongBytes(delta)) +
      lengthBytes(this.records_) +
      sizedBytes(key) +
      sizedBytes(value) +
      (headers.length === 0 ? 1 : headersBytes(headers))
    const end = this.at + lengthBytes(body) + body
    if (end > sizeMax && this.records_ > 0) return false
    if (end > this.bytes.length) this.grow(end)
    const b = this.bytes
    let at = putVarint(b, this.at, body)
    b[at++] = 0
    if (delta === 0) b[at++] = 0
    else at = putVarlong(b, at, delta)
    at = putVarint(b, at, this.records_)
    at = putSized(b, at, key)
    at = putSized(b, at, value)
    if (headers.length === 0) b[at++] = 0
    else at = putHeaders(b, at, headers)
    this.at = at
    this.records_++
    if (timestamp > this.maxTimestamp) this.maxTimestamp = timestamp
    return true
  }

  /** The records as they would be compressed: a view, valid until the next append. */
  records(): Uint8Array {
    return this.bytes.subarray(BATCH_HEADER_BYTES, this.at)
  }

  /** The batch, base offset 0 (the broker sets it). The builder's memory goes with it: nothing may be appended after. */
  finish(how: BatchFinish = NOT_IDEMPOTENT): Uint8Array {
    assert(this.records_ > 0, 'a batch has a record')
    const packed = how.compressedRecords
    const codec = packed === undefined ? 0 : CODECS.indexOf(how.codec ?? 'none')
    let batch: Uint8Array
    if (packed === undefined) {
      batch = this.bytes.subarray(0, this.at)
    } else {
      // Copied, because a batch is one run of bytes and the compressor knows nothing of headers.
      batch = new Uint8Array(BATCH_HEADER_BYTES + packed.length)
      batch.set(packed, BATCH_HEADER_BYTES)
    }
    putI64(batch, 0, 0)
    putU32(batch, 8, batch.length - BATCH_PREFIX_BYTES)
    putU32(batch, 12, 0)
    batch[16] = MAGIC
    putU16(batch, 21, codec)
    putU32(batch, 23, this.records_ - 1)
    putI64(batch, 27, this.baseTimestamp)
    putI64(batch, 35, this.maxTimestamp)
    putI64(batch, 43, how.producerId)
    putU16(batch, 51, how.producerEpoch & 0xffff)
    putU32(batch, 53, how.baseSequence)
    putU32(batch, 57, this.records_)
    setBatchCrc(batch)
    return batch
  }

  private grow(need: number): void {
    const larger = new Uint8Array(Math.max(need, 2 * this.bytes.length, CAPACITY_LEAST))
    larger.set(this.bytes.subarray(0, this.at))
    this.bytes = larger
  }
}

/**
 * At most so many bytes does a record take in a batch, whatever its place there; for refusing one that is too large
 * before it waits for anything.
 */
export function recordBytesMost(
  key: Uint8Array | null,
  value: Uint8Array | null,
  headers: readonly RecordHeaderBytes[] = NO_HEADERS,
): number {
  // Length, attributes, timestamp delta and offset delta at their longest.
  return 5 + 1 + 10 + 5 + sizedBytes(key) + sizedBytes(value) + headersBytes(headers)
}

function sizedBytes(run: Uint8Array | null): number {
  return run === null ? 1 : lengthBytes(run.length) + run.length
}

function headersBytes(headers: readonly RecordHeaderBytes[]): number {
  let bytes = lengthBytes(headers.length)
  for (const { key, value } of headers) bytes += sizedBytes(asBytes(key)) + sizedBytes(value)
  return bytes
}

function putHeaders(b: Uint8Array, from: number, headers: readonly RecordHeaderBytes[]): number {
  let at = putVarint(b, from, headers.length)
  for (const { key, value } of headers) {
    at = putSized(b, at, asBytes(key))
    at = putSized(b, at, value)
  }
  return at
}

function asBytes(text: string | Uint8Array): Uint8Array {
  return typeof text === 'string' ? utf8(text) : text
}

function putSized(b: Uint8Array, from: number, run: Uint8Array | null): number {
  if (run === null) {
    b[from] = 1
    return from + 1
  }
  const { length } = run
  const at = putVarint(b, from, length)
  if (length > SHORT_RUN) b.set(run, at)
  else for (let i = 0; i < length; i++) b[at + i] = run[i] as number
  return at + length
}
