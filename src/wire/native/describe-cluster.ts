// DESCRIBE_CLUSTER.
//
//   request   empty
//   response  text cluster id │ u32 topics │ u32 ranges │ u32 segments │ list broker
//   broker    16B node id │ u32 number │ text name │ text host │ u16 client port │ bool alive │ text version │ i64 disk total │ i64 disk free

import { fromHex, toHex } from '../../base/bytes.ts'
import { nodeId } from '../../model/ids.ts'
import type { BrokerView } from '../../model/metadata.ts'
import { type Message, readList, writeList } from './message.ts'
import { OPERATION } from './operations.ts'

interface DescribedBroker extends BrokerView {
  readonly version: string
  readonly diskTotalBytes: number
  readonly diskFreeBytes: number
}

export interface DescribeClusterResponse {
  readonly clusterId: string
  readonly topics: number
  readonly ranges: number
  readonly segments: number
  readonly brokers: readonly DescribedBroker[]
}

export const describeCluster: Message<object, DescribeClusterResponse> = {
  operation: OPERATION.DESCRIBE_CLUSTER,
  writeRequest: () => {},
  readRequest: () => ({}),
  writeResponse: (w, s) => {
    w.text(s.clusterId).u32(s.topics).u32(s.ranges).u32(s.segments)
    writeList(w, s.brokers, (_, b) => {
      w.raw(fromHex(b.nodeId)).u32(b.nodeNumber).text(b.displayName).text(b.host).u16(b.clientPort)
      w.bool(b.alive).text(b.version).i64(b.diskTotalBytes).i64(b.diskFreeBytes)
    })
  },
  readResponse: (r) => ({
    clusterId: r.text(),
    topics: r.u32(),
    ranges: r.u32(),
    segments: r.u32(),
    brokers: readList(r, 45, () => ({
      nodeId: nodeId(toHex(r.raw(16))),
      nodeNumber: r.u32(),
      displayName: r.text(),
      host: r.text(),
      clientPort: r.u16(),
      alive: r.bool(),
      version: r.text(),
      diskTotalBytes: r.i64(),
      diskFreeBytes: r.i64(),
    })),
  }),
}
