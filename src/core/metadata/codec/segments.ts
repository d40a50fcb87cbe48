// RollSegment      16B topic id, given end, placement, i64 time
// CancelEnd        16B topic id, u32 range, i64 segment, u32 attempt
// ReassignSegment  16B topic id, u32 range, i64 segment, bool drop, 16B replica
//
// given end        u32 range, i64 segment, u32 attempt, i64 end entry, next offsets

import type { ByteReader, ByteWriter } from '../../../base/cursor.ts'
import { readNodeId, readTopicId, writeId } from '../../../model/id-bytes.ts'
import type { CancelEnd, ReassignSegment, RollSegment } from '../commands.ts'
import { readGivenEnd, readPlacement, writeGivenEnd, writePlacement } from '../fields.ts'

export function writeRollSegment(w: ByteWriter, command: RollSegment): void {
  writeId(w, command.topicId)
  writeGivenEnd(w, command)
  writePlacement(w, command.placement)
  w.i64(command.timeMs)
}
export function readRollSegment(r: ByteReader): RollSegment {
  return {
    kind: 'RollSegment',
    topicId: readTopicId(r),
    ...readGivenEnd(r),
    placement: readPlacement(r),
    timeMs: r.u53(),
  }
}

export function writeCancelEnd(w: ByteWriter, command: CancelEnd): void {
  writeId(w, command.topicId)
  w.u32(command.range).i64(command.segment).u32(command.attempt)
}
export function readCancelEnd(r: ByteReader): CancelEnd {
  return {
    kind: 'CancelEnd',
    topicId: readTopicId(r),
    range: r.u32(),
    segment: r.u53(),
    attempt: r.u32(),
  }
}

export function writeReassignSegment(w: ByteWriter, command: ReassignSegment): void {
  writeId(w, command.topicId)
  w.u32(command.range)
    .i64(command.segment)
    .bool(command.change === 'drop')
  writeId(w, command.replica)
}
export function readReassignSegment(r: ByteReader): ReassignSegment {
  return {
    kind: 'ReassignSegment',
    topicId: readTopicId(r),
    range: r.u32(),
    segment: r.u53(),
    change: r.bool() ? 'drop' : 'add',
    replica: readNodeId(r),
  }
}
