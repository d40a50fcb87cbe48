// DropSegments  16B topic id, u32 range, i64 below segment
// SetLogStart   16B topic id, u32 count, count x {u32 partition, i64 offset}

import type { ByteReader, ByteWriter } from '../../../base/cursor.ts'
import { readTopicId, writeId } from '../../../model/id-bytes.ts'
import type { DropSegments, SetLogStart } from '../commands.ts'

const START_BYTES = 12

export function writeDropSegments(w: ByteWriter, command: DropSegments): void {
  writeId(w, command.topicId)
  w.u32(command.range).i64(command.belowSegment)
}
export function readDropSegments(r: ByteReader): DropSegments {
  return {
    kind: 'DropSegments',
    topicId: readTopicId(r),
    range: r.u32(),
    belowSegment: r.u53(),
  }
}

export function writeSetLogStart(w: ByteWriter, command: SetLogStart): void {
  writeId(w, command.topicId)
  w.u32(command.starts.length)
  for (const { partition, offset } of command.starts) w.u32(partition).i64(offset)
}
export function readSetLogStart(r: ByteReader): SetLogStart {
  return {
    kind: 'SetLogStart',
    topicId: readTopicId(r),
    starts: Array.from({ length: r.count(START_BYTES) }, () => ({
      partition: r.u32(),
      offset: r.u53(),
    })),
  }
}
