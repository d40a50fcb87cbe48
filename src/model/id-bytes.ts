// Ids as bytes, for every codec. Reading throws Truncated for what is too short.
//
//   id   16 bytes        node ids   u8 count, ids

import { assert } from '../base/assert.ts'
import { fromHex, toHex } from '../base/bytes.ts'
import type { ByteReader, ByteWriter } from '../base/cursor.ts'
import { type ClusterId, clusterId, type NodeId, nodeId, type TopicId, topicId } from './ids.ts'

export const ID_BYTES = 16
const NODE_IDS_MAX = 255

/** Any 32 hexadecimal digits. */
export function writeId(w: ByteWriter, id: string): void {
  w.raw(fromHex(id))
}
export function readTopicId(r: ByteReader): TopicId {
  return topicId(toHex(r.raw(ID_BYTES)))
}
export function readNodeId(r: ByteReader): NodeId {
  return nodeId(toHex(r.raw(ID_BYTES)))
}
export function readClusterId(r: ByteReader): ClusterId {
  return clusterId(toHex(r.raw(ID_BYTES)))
}

export function writeNodeIds(w: ByteWriter, ids: readonly NodeId[]): void {
  assert(ids.length <= NODE_IDS_MAX, `at most ${NODE_IDS_MAX} node ids stand together`)
  w.u8(ids.length)
  for (const id of ids) writeId(w, id)
}
export function readNodeIds(r: ByteReader): readonly NodeId[] {
  return Array.from({ length: r.u8() }, () => readNodeId(r))
}
