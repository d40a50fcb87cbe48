// Entries with just the header fields that range state looks at.

import { putI64, putU16, putU32 } from '../../../src/base/bytes.ts'
import { BATCH_HEADER_BYTES } from '../../../src/model/batch/header.ts'
import type { Entry } from '../../../src/model/entry.ts'

export interface Made {
  readonly partition: number
  readonly id: number
  readonly epoch: number
  readonly first: number
  readonly count: number
}

export function batchOf({ id, epoch, first, count }: Made): Uint8Array {
  const batch = new Uint8Array(BATCH_HEADER_BYTES)
  putI64(batch, 43, id)
  putU16(batch, 51, epoch)
  putU32(batch, 53, first)
  putU32(batch, 57, count)
  return batch
}

export function entryOf(made: Made, entryNumber: number, baseOffset: number, timeMs = 0): Entry {
  return {
    entryNumber,
    partition: made.partition,
    baseOffset,
    recordCount: made.count,
    logTimeMs: timeMs,
    highWatermark: 0,
    leastKeyHash: 0,
    greatestKeyHash: 0xffffffff,
    batch: batchOf(made),
  }
}
