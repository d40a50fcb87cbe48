// From a batch as it came to the records that its reader asked for.

import { xxh32 } from '../../base/checksum.ts'
import { EastGuardError } from '../../base/errors.ts'
import { RecordReader, recordsSection } from '../../model/batch/decode.ts'
import { baseOffset, batchCodec, batchCrcMatches } from '../../model/batch/header.ts'
import { MIB } from '../../model/policy.ts'
import type { Compute } from '../../ports/compute.ts'
import type { ConsumerRecord, KeySpan } from '../api.ts'

/** A batch that would grow beyond this is refused: it is damaged or made to harm. */
const DECOMPRESSED_BYTES_MAX: number = 256 * MIB

/** Enough that a call costs nothing beside its records. */
const PART_RECORDS_MAX = 4096

export interface Wanted {
  readonly topic: string
  readonly partition: number
  /** Records in [from, end) ... */
  readonly from: number
  readonly end: number
  /** ... whose key's hash lies in it. */
  readonly keySpan: KeySpan | undefined
}

/**
 * The wanted records of one batch, a bounded number at a time: a record is a few objects beside its bytes, and those of
 * a whole batch would live long enough to be taken for old by the garbage collector, which lets old ones pile up.
 */
export class Unpacking {
  private readonly reader: RecordReader
  private readonly wanted: Wanted

  constructor(reader: RecordReader, wanted: Wanted) {
    this.reader = reader
    this.wanted = wanted
  }

  /** Nothing is left of the batch. */
  get done(): boolean {
    return this.reader.left === 0
  }

  /** Empty when none of those that it looked at is wanted. Throws DECODE_FAILED. */
  next(): ConsumerRecord[] {
    const { topic, partition, from, end, keySpan } = this.wanted
    const { reader } = this
    const records: ConsumerRecord[] = []
    for (let looked = 0; looked < PART_RECORDS_MAX; looked++) {
      const record = reader.next()
      if (record === undefined) break
      const { offset, timestamp, key, value, headers } = record
      if (offset < from || offset >= end) continue
      if (keySpan !== undefined && (key === null || !within(keySpan, xxh32(key)))) continue
      records.push({ topic, partition, offset, timestamp, key, value, headers })
    }
    // Behind the last record it looks whether bytes are left over.
    if (reader.left === 0) reader.next()
    return records
  }
}

/** A promise only where something must be decompressed. Fails with DECODE_FAILED. */
export function unpack(
  batch: Uint8Array,
  wanted: Wanted,
  compute: Compute,
): Unpacking | Promise<Unpacking> {
  const codec = batchCodec(batch)
  const where = `'${wanted.topic}', partition ${wanted.partition}, batch at offset ${baseOffset(batch)}`
  if (codec === undefined || !batchCrcMatches(batch)) {
    const why = codec === undefined ? 'its codec is not known' : 'its checksum does not match'
    throw new EastGuardError('DECODE_FAILED', `${where}: ${why}`)
  }
  if (codec === 'none') return new Unpacking(new RecordReader(batch), wanted)
  return compute.decompress(codec, recordsSection(batch), DECOMPRESSED_BYTES_MAX).then(
    (records) => new Unpacking(new RecordReader(batch, records), wanted),
    (cause: unknown) => {
      throw new EastGuardError('DECODE_FAILED', `${where}: it cannot be decompressed`, { cause })
    },
  )
}

function within(span: KeySpan, hash: number): boolean {
  return hash >= span.least && hash <= span.greatest
}
