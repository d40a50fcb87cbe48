// FoundCluster  16B cluster id, u32 shards, i64 time
// AddNode       16B node id

import type { ByteReader, ByteWriter } from '../../../base/cursor.ts'
import { readClusterId, readNodeId, writeId } from '../../../model/id-bytes.ts'
import type { AddNode, FoundCluster } from '../commands.ts'
import { readWhole } from '../fields.ts'

export function writeFoundCluster(w: ByteWriter, command: FoundCluster): void {
  writeId(w, command.clusterId)
  w.u32(command.shards).i64(command.timeMs)
}
export function readFoundCluster(r: ByteReader): FoundCluster {
  return {
    kind: 'FoundCluster',
    clusterId: readClusterId(r),
    shards: r.u32(),
    timeMs: readWhole(r),
  }
}

export function writeAddNode(w: ByteWriter, command: AddNode): void {
  writeId(w, command.nodeId)
}
export function readAddNode(r: ByteReader): AddNode {
  return { kind: 'AddNode', nodeId: readNodeId(r) }
}
