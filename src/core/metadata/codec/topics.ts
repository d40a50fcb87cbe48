// CreateTopic    16B topic id, text name, policy, u32 count + placements, text creation token, bool ifNotExists,
//                bool system, i64 time
// DeleteTopic    16B topic id
// AlterTopic     16B topic id, changes
// AddPartitions  16B topic id, u32 partitions, placement, i64 time

import type { ByteReader, ByteWriter } from '../../../base/cursor.ts'
import { readTopicId, writeId } from '../../../model/id-bytes.ts'
import type { AddPartitions, AlterTopic, CreateTopic, DeleteTopic } from '../commands.ts'
import {
  readChanges,
  readPlacement,
  readPolicy,
  writeChanges,
  writePlacement,
  writePolicy,
} from '../fields.ts'

/** An empty replica list and two empty texts. */
const PLACEMENT_BYTES_LEAST = 5

export function writeCreateTopic(w: ByteWriter, command: CreateTopic): void {
  writeId(w, command.topicId)
  w.text(command.name)
  writePolicy(w, command.policy)
  w.u32(command.placement.length)
  for (const one of command.placement) writePlacement(w, one)
  w.text(command.creationToken).bool(command.ifNotExists).bool(command.system).i64(command.timeMs)
}
export function readCreateTopic(r: ByteReader): CreateTopic {
  return {
    kind: 'CreateTopic',
    topicId: readTopicId(r),
    name: r.text(),
    policy: readPolicy(r),
    placement: Array.from({ length: r.count(PLACEMENT_BYTES_LEAST) }, () => readPlacement(r)),
    creationToken: r.text(),
    ifNotExists: r.bool(),
    system: r.bool(),
    timeMs: r.u53(),
  }
}

export function writeDeleteTopic(w: ByteWriter, command: DeleteTopic): void {
  writeId(w, command.topicId)
}
export function readDeleteTopic(r: ByteReader): DeleteTopic {
  return { kind: 'DeleteTopic', topicId: readTopicId(r) }
}

export function writeAlterTopic(w: ByteWriter, command: AlterTopic): void {
  writeId(w, command.topicId)
  writeChanges(w, command.changes)
}
export function readAlterTopic(r: ByteReader): AlterTopic {
  return { kind: 'AlterTopic', topicId: readTopicId(r), changes: readChanges(r) }
}

export function writeAddPartitions(w: ByteWriter, command: AddPartitions): void {
  writeId(w, command.topicId)
  w.u32(command.partitions)
  writePlacement(w, command.placement)
  w.i64(command.timeMs)
}
export function readAddPartitions(r: ByteReader): AddPartitions {
  return {
    kind: 'AddPartitions',
    topicId: readTopicId(r),
    partitions: r.u32(),
    placement: readPlacement(r),
    timeMs: r.u53(),
  }
}
