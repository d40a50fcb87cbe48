// A hole stands in the log where entries were lost and an operator has accepted that, so that entry numbers and offsets
// stay dense: a batch without records that announces as many as were lost. It is marked as a control batch, which no
// producer can write and no client takes for records. Readers in it are told RECORDS_LOST.

import { putI64, putU16, putU32 } from '../../base/bytes.ts'
import { attributes, BATCH_HEADER_BYTES, BATCH_PREFIX_BYTES, setBatchCrc } from './header.ts'

const MAGIC = 2
const CONTROL = 0x20

export function isHole(batch: Uint8Array): boolean {
  return (attributes(batch) & CONTROL) !== 0
}

/** In place of `records` offsets; 0 where an entry is lost and its offsets are not known. */
export function holeBatch(records: number): Uint8Array {
  const batch = new Uint8Array(BATCH_HEADER_BYTES)
  putU32(batch, 8, BATCH_HEADER_BYTES - BATCH_PREFIX_BYTES)
  batch[16] = MAGIC
  putU16(batch, 21, CONTROL)
  putU32(batch, 23, (records - 1) >>> 0)
  putI64(batch, 27, -1)
  putI64(batch, 35, -1)
  putI64(batch, 43, -1)
  putU16(batch, 51, 0xffff)
  putU32(batch, 53, 0xffffffff)
  putU32(batch, 57, records)
  setBatchCrc(batch)
  return batch
}
