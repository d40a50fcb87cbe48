// The parts that messages are made of. Reading throws Truncated for anything that was not written by the functions beside it.
//
//   key        16B topic id │ u32 range │ u64 segment
//   optional   bool, then what it announces

import type { ByteReader, ByteWriter } from '../../base/cursor.ts'
import { readTopicId, writeId } from '../../model/id-bytes.ts'
import type { SegmentKey } from '../../model/segment-key.ts'

export function writeKey(w: ByteWriter, { topicId, range, segment }: SegmentKey): void {
  writeId(w, topicId)
  w.u32(range).i64(segment)
}
export function readKey(r: ByteReader): SegmentKey {
  return { topicId: readTopicId(r), range: r.u32(), segment: r.u53() }
}

export function writeOptionalText(w: ByteWriter, text: string | undefined): void {
  w.bool(text !== undefined)
  if (text !== undefined) w.text(text)
}
export function readOptionalText(r: ByteReader): string | undefined {
  return r.bool() ? r.text() : undefined
}
