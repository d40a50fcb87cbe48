// Walks the records of an opened batch only far enough to find one by its time. A record begins with three varints and a
// byte; the rest is skipped by its length.
//
//   varint length │ i8 attributes │ varlong timestamp delta │ varint offset delta │ key, value, headers ...

import { Truncated } from '../../base/cursor.ts'
import { baseOffset, baseTimestamp, recordCount } from '../../model/batch/header.ts'

export interface RecordTime {
  readonly offset: number
  readonly timestamp: number
}

/** The first record at or after `timestamp` and at or past `fromOffset`. Throws Truncated on a malformed batch. */
export function firstRecordAt(
  batch: Uint8Array,
  records: Uint8Array,
  timestamp: number,
  fromOffset: number,
): RecordTime | undefined {
  const base = baseOffset(batch)
  const baseTime = baseTimestamp(batch)
  const walk = new Varints(records)
  for (let i = recordCount(batch); i > 0; i--) {
    const length = walk.next()
    const end = walk.at + length
    if (length < 0 || end > records.length) throw new Truncated('a record is longer than its batch')
    walk.at++
    const time = baseTime + walk.next()
    const offset = base + walk.next()
    if (time >= timestamp && offset >= fromOffset) return { offset, timestamp: time }
    walk.at = end
  }
  return undefined
}

class Varints {
  at = 0
  private readonly bytes: Uint8Array

  constructor(bytes: Uint8Array) {
    this.bytes = bytes
  }

  /** A zigzag varint of up to ten bytes, exact within 2^53. */
  next(): number {
    let value = 0
    let scale = 1
    for (let i = 0; i < 10; i++) {
      const byte = this.bytes[this.at++]
      if (byte === undefined) throw new Truncated('a batch ends inside a record')
      value += (byte & 0x7f) * scale
      if (byte < 0x80) return value % 2 === 0 ? value / 2 : -(value + 1) / 2
      scale *= 128
    }
    throw new Truncated('a varint has more than ten bytes')
  }
}
