// DESCRIBE_CLUSTER.
//
//   request   empty
//   response  text cluster id │ u32 topics │ u32 ranges │ u32 segments │ u32 shards │ u32 shards led │
//             u32 ranges under-replicated │ u32 ranges unavailable │ list issue │ list broker
//   issue     text topic │ u32 range │ i64 segment │ u8 kind: 0 under-replicated, 1 unavailable │ text why
//   broker    16B node id │ u32 number │ text name │ text host │ u16 client port │ u8 state │ u8 role │ text host label │
//             text rack label │ u32 shards │ u32 leads │ text version │ i64 disk total │ i64 disk free │ bool disk full
//   state     0 alive, 1 suspect, 2 dead, 3 left       role   0 member, 1 draining, 2 removed
//
// Version and disk are empty and 0 of brokers that the one that answers has not heard them of.

import { fromHex, toHex } from '../../base/bytes.ts'
import { readList, writeList } from '../../base/cursor.ts'
import { nodeId } from '../../model/ids.ts'
import { type BrokerView, ISSUE_KINDS, NODE_ROLES, type RangeIssue } from '../../model/metadata.ts'
import { MEMBER_STATES } from '../../model/swim.ts'
import { type Message, readChoice } from './message.ts'
import { OPERATION } from './operations.ts'

interface DescribedBroker extends BrokerView {
  readonly version: string
  readonly diskTotalBytes: number
  readonly diskFreeBytes: number
  /** It has said that it refuses records for want of space. */
  readonly diskFull: boolean
}

export interface DescribeClusterResponse {
  readonly clusterId: string
  readonly topics: number
  readonly ranges: number
  readonly segments: number
  /** Parts of the metadata, and those of them that somebody is known to lead. */
  readonly shards: number
  readonly shardsLed: number
  /** Ranges that have fewer replicas than they should, and those that cannot be written. */
  readonly underReplicated: number
  readonly unavailable: number
  /** A few of them, the worst first. */
  readonly issues: readonly RangeIssue[]
  readonly brokers: readonly DescribedBroker[]
}

export const describeCluster: Message<object, DescribeClusterResponse> = {
  operation: OPERATION.DESCRIBE_CLUSTER,
  writeRequest: () => {},
  readRequest: () => ({}),
  writeResponse: (w, s) => {
    w.text(s.clusterId).u32(s.topics).u32(s.ranges).u32(s.segments)
    w.u32(s.shards).u32(s.shardsLed)
    w.u32(s.underReplicated).u32(s.unavailable)
    writeList(w, s.issues, (_, { topic, range, segment, kind, why }) => {
      w.text(topic).u32(range).i64(segment).u8(ISSUE_KINDS.indexOf(kind)).text(why)
    })
    writeList(w, s.brokers, (_, b) => {
      w.raw(fromHex(b.nodeId)).u32(b.nodeNumber).text(b.displayName).text(b.host).u16(b.clientPort)
      w.u8(MEMBER_STATES.indexOf(b.state)).u8(NODE_ROLES.indexOf(b.role)).text(b.hostLabel)
      w.text(b.rackLabel)
      w.u32(b.shards).u32(b.leads)
      w.text(b.version).i64(b.diskTotalBytes).i64(b.diskFreeBytes).bool(b.diskFull)
    })
  },
  readResponse: (r) => ({
    clusterId: r.text(),
    topics: r.u32(),
    ranges: r.u32(),
    segments: r.u32(),
    shards: r.u32(),
    shardsLed: r.u32(),
    underReplicated: r.u32(),
    unavailable: r.u32(),
    issues: readList(r, 17, () => ({
      topic: r.text(),
      range: r.u32(),
      segment: r.i64(),
      kind: readChoice(r, ISSUE_KINDS, 'kind of issue'),
      why: r.text(),
    })),
    brokers: readList(r, 59, () => ({
      nodeId: nodeId(toHex(r.raw(16))),
      nodeNumber: r.u32(),
      displayName: r.text(),
      host: r.text(),
      clientPort: r.u16(),
      state: readChoice(r, MEMBER_STATES, 'state'),
      role: readChoice(r, NODE_ROLES, 'role'),
      hostLabel: r.text(),
      rackLabel: r.text(),
      shards: r.u32(),
      leads: r.u32(),
      version: r.text(),
      diskTotalBytes: r.i64(),
      diskFreeBytes: r.i64(),
      diskFull: r.bool(),
    })),
  }),
}
