// SplitRange  16B topic id, given end, u32 first partition of the right child, left child, right child, i64 time
// MergeRange  16B topic id, given end of the left parent, of the right one, child, i64 time
//
// child       u32 range, placement

import type { ByteReader, ByteWriter } from '../../../base/cursor.ts'
import { readTopicId, writeId } from '../../../model/id-bytes.ts'
import type { MergeRange, SplitRange } from '../commands.ts'
import { readChild, readGivenEnd, writeChild, writeGivenEnd } from '../fields.ts'

export function writeSplitRange(w: ByteWriter, command: SplitRange): void {
  writeId(w, command.topicId)
  writeGivenEnd(w, command)
  w.u32(command.atPartition)
  writeChild(w, command.left)
  writeChild(w, command.right)
  w.i64(command.timeMs)
}
export function readSplitRange(r: ByteReader): SplitRange {
  return {
    kind: 'SplitRange',
    topicId: readTopicId(r),
    ...readGivenEnd(r),
    atPartition: r.u32(),
    left: readChild(r),
    right: readChild(r),
    timeMs: r.u53(),
  }
}

export function writeMergeRange(w: ByteWriter, command: MergeRange): void {
  writeId(w, command.topicId)
  writeGivenEnd(w, command.left)
  writeGivenEnd(w, command.right)
  writeChild(w, command.child)
  w.i64(command.timeMs)
}
export function readMergeRange(r: ByteReader): MergeRange {
  return {
    kind: 'MergeRange',
    topicId: readTopicId(r),
    left: readGivenEnd(r),
    right: readGivenEnd(r),
    child: readChild(r),
    timeMs: r.u53(),
  }
}
