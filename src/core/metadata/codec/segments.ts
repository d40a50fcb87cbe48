// RollSegment      16B topic id, given end, [from version 2: i64 tail from], placement, i64 time
// CancelEnd        16B topic id, u32 range, i64 segment, u32 attempt
// SettleSegment    16B topic id, u32 range, i64 segment, text digest
// ReassignSegment  16B topic id, u32 range, i64 segment, bool drop, 16B replica, [from version 2: node ids seen]
//
// given end        u32 range, i64 segment, u32 attempt, i64 end entry, next offsets

import type { ByteReader, ByteWriter } from '../../../base/cursor.ts'
import {
  readNodeId,
  readNodeIds,
  readTopicId,
  writeId,
  writeNodeIds,
} from '../../../model/id-bytes.ts'
import type { CancelEnd, ReassignSegment, RollSegment, SettleSegment } from '../commands.ts'
import { readGivenEnd, readPlacement, writeGivenEnd, writePlacement } from '../fields.ts'

export function writeRollSegment(w: ByteWriter, command: RollSegment): void {
  writeId(w, command.topicId)
  writeGivenEnd(w, command)
  w.i64(command.tailFrom)
  writePlacement(w, command.placement)
  w.i64(command.timeMs)
}
export function readRollSegment(r: ByteReader, version: number): RollSegment {
  const topicId = readTopicId(r)
  const end = readGivenEnd(r)
  return {
    kind: 'RollSegment',
    topicId,
    ...end,
    // Before there were replicas nothing was missing at a roll.
    tailFrom: version === 1 ? end.endEntry : r.u53(),
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

export function writeSettleSegment(w: ByteWriter, command: SettleSegment): void {
  writeId(w, command.topicId)
  w.u32(command.range).i64(command.segment).text(command.digest)
}
export function readSettleSegment(r: ByteReader): SettleSegment {
  return {
    kind: 'SettleSegment',
    topicId: readTopicId(r),
    range: r.u32(),
    segment: r.u53(),
    digest: r.text(),
  }
}

export function writeReassignSegment(w: ByteWriter, command: ReassignSegment): void {
  writeId(w, command.topicId)
  w.u32(command.range)
    .i64(command.segment)
    .bool(command.change === 'drop')
  writeId(w, command.replica)
  writeNodeIds(w, command.seen)
}
export function readReassignSegment(r: ByteReader, version: number): ReassignSegment {
  return {
    kind: 'ReassignSegment',
    topicId: readTopicId(r),
    range: r.u32(),
    segment: r.u53(),
    change: r.bool() ? 'drop' : 'add',
    replica: readNodeId(r),
    seen: version === 1 ? [] : readNodeIds(r),
  }
}
