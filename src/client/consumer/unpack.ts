// A batch as it came into the records that its reader asked for.

import { xxh32 } from '../../base/checksum.ts'
import { EastGuardError } from '../../base/errors.ts'
import { readRecords, recordsSection } from '../../model/batch/decode.ts'
import { baseOffset, batchCodec, batchCrcMatches } from '../../model/batch/header.ts'
import { MIB } from '../../model/policy.ts'
import type { Compute } from '../../ports/compute.ts'
import type { ConsumerRecord, KeySpan } from '../api.ts'

/** A batch that would grow beyond this is refused: it is damaged or made to harm. */
const DECOMPRESSED_BYTES_MAX: number = 256 * MIB

export interface Wanted {
  readonly topic: string
  readonly partition: number
  /** Records in [from, end) ... */
  readonly from: number
  readonly end: number
  /** ... whose key's hash lies in it. */
  readonly keySpan: KeySpan | undefined
}

/** A promise only where something must be decompressed. Fails with DECODE_FAILED. */
export function unpack(
  batch: Uint8Array,
  wanted: Wanted,
  compute: Compute,
): ConsumerRecord[] | Promise<ConsumerRecord[]> {
  const codec = batchCodec(batch)
  const where = `'${wanted.topic}', partition ${wanted.partition}, batch at offset ${baseOffset(batch)}`
  if (codec === undefined || !batchCrcMatches(batch)) {
    const why = codec === undefined ? 'its codec is not known' : 'its checksum does not match'
    throw new EastGuardError('DECODE_FAILED', `${where}: ${why}`)
  }
  if (codec === 'none') return select(batch, undefined, wanted)
  return compute.decompress(codec, recordsSection(batch), DECOMPRESSED_BYTES_MAX).then(
    (records) => select(batch, records, wanted),
    (cause: unknown) => {
      throw new EastGuardError('DECODE_FAILED', `${where}: it cannot be decompressed`, { cause })
    },
  )
}

function select(
  batch: Uint8Array,
  decompressed: Uint8Array | undefined,
  wanted: Wanted,
): ConsumerRecord[] {
  const { topic, partition, from, end, keySpan } = wanted
  const records: ConsumerRecord[] = []
  for (const { offset, timestamp, key, value, headers } of readRecords(batch, decompressed)) {
    if (offset < from || offset >= end) continue
    if (keySpan !== undefined && (key === null || !within(keySpan, xxh32(key)))) continue
    records.push({ topic, partition, offset, timestamp, key, value, headers })
  }
  return records
}

function within(span: KeySpan, hash: number): boolean {
  return hash >= span.least && hash <= span.greatest
}
