// FoundCluster  16B cluster id, u32 shards, i64 time
// AddNode       16B node id
// SetNodeRole   16B node id, u8 role

import type { ByteReader, ByteWriter } from '../../../base/cursor.ts'
import { readClusterId, readNodeId, writeId } from '../../../model/id-bytes.ts'
import { NODE_ROLES, type NodeRole } from '../../../model/metadata.ts'
import type { AddNode, FoundCluster, SetNodeRole } from '../commands.ts'
import { malformed } from '../fields.ts'

export function writeFoundCluster(w: ByteWriter, command: FoundCluster): void {
  writeId(w, command.clusterId)
  w.u32(command.shards).i64(command.timeMs)
}
export function readFoundCluster(r: ByteReader): FoundCluster {
  return {
    kind: 'FoundCluster',
    clusterId: readClusterId(r),
    shards: r.u32(),
    timeMs: r.u53(),
  }
}

export function writeAddNode(w: ByteWriter, command: AddNode): void {
  writeId(w, command.nodeId)
}
export function readAddNode(r: ByteReader): AddNode {
  return { kind: 'AddNode', nodeId: readNodeId(r) }
}

export function writeSetNodeRole(w: ByteWriter, command: SetNodeRole): void {
  writeId(w, command.nodeId)
  writeNodeRole(w, command.role)
}
export function readSetNodeRole(r: ByteReader): SetNodeRole {
  return { kind: 'SetNodeRole', nodeId: readNodeId(r), role: readNodeRole(r) }
}

export function writeNodeRole(w: ByteWriter, role: NodeRole): void {
  w.u8(NODE_ROLES.indexOf(role))
}
export function readNodeRole(r: ByteReader): NodeRole {
  const number = r.u8()
  const role = NODE_ROLES[number]
  if (role === undefined) throw malformed(`a node's role is ${number}`)
  return role
}
