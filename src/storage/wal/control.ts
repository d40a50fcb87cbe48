// Payloads of the data WAL's control records.
//
//   seal, fence:  16B topic id | u32 range | u64 segment | u64 end
//
// seal: the segment has `end` entries, for ever; replay drops entries at or above it. fence: from here on nothing is taken
// from the segment's leader; `end` is the number of its entries before this record in LSN order.

import { fromHex, toHex } from '../../base/bytes.ts'
import { ByteReader, ByteWriter } from '../../base/cursor.ts'
import { type TopicId, topicId } from '../../model/ids.ts'
import type { SegmentKey } from '../../model/segment-key.ts'

export interface SegmentEnd {
  readonly key: SegmentKey
  readonly end: number
}

export function encodeSegmentEnd(key: SegmentKey, end: number): Uint8Array {
  return new ByteWriter(36)
    .raw(fromHex(key.topicId))
    .u32(key.range)
    .i64(key.segment)
    .i64(end)
    .finish()
}

/** Throws Truncated on anything else than what encodeSegmentEnd made. */
export function decodeSegmentEnd(payload: Uint8Array): SegmentEnd {
  const reader = new ByteReader(payload)
  const id: TopicId = topicId(toHex(reader.raw(16)))
  const key = { topicId: id, range: reader.u32(), segment: reader.i64() }
  const end = reader.i64()
  reader.done()
  return { key, end }
}
