// A producer's options with their defaults filled in and their bounds checked, and a caller's record as bytes.

import { utf8 } from '../../base/bytes.ts'
import { CODECS, type Codec } from '../../base/codec.ts'
import { EastGuardError } from '../../base/errors.ts'
import { type RecordHeaderBytes, recordBytesMost, TIMESTAMP_MAX } from '../../model/batch/encode.ts'
import { BATCH_HEADER_BYTES } from '../../model/batch/header.ts'
import { BATCH_BYTES_MAX } from '../../model/limits.ts'
import { ACKS, type Acks, MIB } from '../../model/policy.ts'
import type { Clock } from '../../ports/clock.ts'
import type { Data, ProducerOptions, ProducerRecord } from '../api.ts'
import type { RecordBytes } from './outgoing.ts'

export interface ProducerSettings {
  /** Undefined: as each topic says. */
  readonly acks: Acks | undefined
  readonly codec: Codec
  readonly maxBatchBytes: number
  readonly maxBatchRecords: number
  readonly lingerMs: number
  /** Undefined: wherever acks is 'all'. */
  readonly idempotent: boolean | undefined
  readonly bufferBytes: number
  readonly deliveryTimeoutMs: number
}

/** What a batch has besides its records. */
export const BATCH_OVERHEAD_BYTES: number = BATCH_HEADER_BYTES
const TIMER_MS_MOST = 0x7fff_ffff

/** Throws INVALID_ARGUMENT. */
export function producerSettings(options: ProducerOptions): ProducerSettings {
  const settings = {
    acks: options.acks,
    codec: options.codec ?? 'none',
    maxBatchBytes: whole(
      'maxBatchBytes',
      options.maxBatchBytes ?? MIB,
      BATCH_OVERHEAD_BYTES + 1,
      BATCH_BYTES_MAX,
    ),
    maxBatchRecords: whole('maxBatchRecords', options.maxBatchRecords ?? 20_000, 1, 1_000_000),
    lingerMs: whole('lingerMs', options.lingerMs ?? 2, 0, TIMER_MS_MOST),
    idempotent: options.idempotent,
    bufferBytes: whole('bufferBytes', options.bufferBytes ?? 32 * MIB, 1, Number.MAX_SAFE_INTEGER),
    deliveryTimeoutMs: whole(
      'deliveryTimeoutMs',
      options.deliveryTimeoutMs ?? 120_000,
      1,
      TIMER_MS_MOST,
    ),
  }
  if (settings.acks !== undefined && !ACKS.includes(settings.acks)) {
    throw invalid(`acks is '${String(settings.acks)}'; '0', '1' and 'all' are allowed`)
  }
  if (!CODECS.includes(settings.codec)) {
    throw invalid(`codec is '${String(settings.codec)}'; one of ${CODECS.join(', ')} is allowed`)
  }
  if (settings.idempotent === true && settings.acks !== undefined && settings.acks !== 'all') {
    throw invalid(`idempotent needs acks 'all', not '${settings.acks}'`)
  }
  return settings
}

/** Throws INVALID_ARGUMENT unless `value` is a whole number from `least` to `most`. */
export function whole(name: string, value: number, least: number, most: number): number {
  if (!Number.isSafeInteger(value) || value < least || value > most) {
    throw invalid(`${name} is ${String(value)}; a whole number from ${least} to ${most} is allowed`)
  }
  return value
}

/** The record as it will be stored. Throws INVALID_ARGUMENT. */
export function encodeRecord(record: ProducerRecord, clock: Clock): RecordBytes {
  const { topic, timestamp, partition, headers } = record
  if (typeof topic !== 'string' || topic.length === 0) throw invalid('a record names no topic')
  if (partition !== undefined && !(Number.isSafeInteger(partition) && partition >= 0)) {
    throw invalid(`partition is ${String(partition)}; a whole number from 0 is allowed`)
  }
  if (timestamp !== undefined) whole('timestamp', timestamp, 0, TIMESTAMP_MAX)
  return {
    topic,
    key: dataBytes('key', record.key ?? null),
    value: dataBytes('value', record.value),
    headers: headers === undefined ? NO_HEADERS : headerBytes(headers),
    timestamp: timestamp ?? clock.wall(),
    partition,
  }
}

const NO_HEADERS: readonly RecordHeaderBytes[] = []

/** The most that it takes in a batch: what the buffer counts and what the limits are held against. */
export function recordSize(record: RecordBytes): number {
  return recordBytesMost(record.key, record.value, record.headers)
}

function headerBytes(headers: Readonly<Record<string, Data | null>>): RecordHeaderBytes[] {
  return Object.entries(headers).map(([key, value]) => ({
    key: utf8(key),
    value: dataBytes(`header '${key}'`, value),
  }))
}

function dataBytes(name: string, data: Data | null): Uint8Array | null {
  if (typeof data === 'string') return Buffer.from(data)
  if (data === null || data instanceof Uint8Array) return data
  throw invalid(`${name} is of type ${typeof data}; text, bytes or null are allowed`)
}

function invalid(message: string): EastGuardError {
  return new EastGuardError('INVALID_ARGUMENT', message)
}
