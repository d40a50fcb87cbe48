// The machine's state as bytes: what a checkpoint stores, and what Raft sends to a member that is far behind.
//
//   u16 version (3), i64 applied index, i64 next producer id,
//   bool founded, then 16B cluster id, u32 shards, i64 founded at; u32 next node number, u32 nodes, then each:
//     16B node id, u32 number, u8 role
//   u32 topics, then each topic:
//     16B id, text name, policy, i64 created at, i64 version, u32 next range, text creation token,
//     log start offsets, u32 ranges, then each range:
//       u32 number, u32 first partition, u32 end partition, u32s parents, u32s children, u32 segments, then each:
//         i64 number, i64 end entry (-1: open), replicas, first offsets, i64 opened at, u32 attempt, token,
//         digest of the state, [from version 3: digest of the entries, bool tail, then i64 from, holders, token]
//
// Topics go in the order of creation, which is the same on every replica, so equal states have equal bytes. A decoded
// state is checked by the invariants before it is believed. Version 2 is read too: it knew one replica and no tails.

import { ByteReader, ByteWriter } from '../../base/cursor.ts'
import {
  readClusterId,
  readNodeId,
  readNodeIds,
  readTopicId,
  writeId,
  writeNodeIds,
} from '../../model/id-bytes.ts'
import { readNodeRole, writeNodeRole } from './codec/cluster.ts'
import {
  malformed,
  readNumbers,
  readOffsets,
  readPolicy,
  writeNumbers,
  writeOffsets,
  writePolicy,
} from './fields.ts'
import { stateFault } from './invariants.ts'
import { emptyState, putTopic } from './machine.ts'
import { activeOf } from './topic.ts'
import type { MetadataState, Range, Segment, Tail, Topic } from './types.ts'

const VERSION = 3
const VERSION_OLDEST = 2
const NODE_BYTES = 21
const OPEN = -1
const TOPIC_BYTES_LEAST = 100
const RANGE_BYTES_LEAST = 24
const SEGMENT_BYTES_LEAST = 37

export function encodeSnapshot(state: MetadataState): Uint8Array {
  const w = new ByteWriter(4096)
  w.u16(VERSION).i64(state.appliedIndex).i64(state.nextProducerId)
  writeCluster(w, state)
  w.u32(state.topics.size)
  for (const topic of state.topics.values()) writeTopic(w, topic)
  return w.finish()
}

/** Throws Truncated. */
export function decodeSnapshot(bytes: Uint8Array): MetadataState {
  const r = new ByteReader(bytes)
  const version = r.u16()
  if (version < VERSION_OLDEST || version > VERSION) {
    throw malformed(`a metadata snapshot of version ${version}`)
  }
  const state = emptyState()
  state.appliedIndex = r.u53()
  state.nextProducerId = r.u53()
  readCluster(r, state)
  const topics = r.count(TOPIC_BYTES_LEAST)
  for (let i = 0; i < topics; i++) putTopic(state, readTopic(r, version))
  r.done()
  const fault = state.topics.size === topics ? stateFault(state) : 'a topic id occurs twice'
  if (fault !== undefined) throw malformed(fault)
  return state
}

function writeCluster(w: ByteWriter, { cluster, nodes, nextNodeNumber }: MetadataState): void {
  w.bool(cluster !== undefined)
  if (cluster !== undefined) {
    writeId(w, cluster.clusterId)
    w.u32(cluster.shards).i64(cluster.foundedAtMs)
  }
  w.u32(nextNodeNumber).u32(nodes.size)
  for (const [node, { number, role }] of nodes) {
    writeId(w, node)
    w.u32(number)
    writeNodeRole(w, role)
  }
}
function readCluster(r: ByteReader, state: MetadataState): void {
  if (r.bool()) {
    state.cluster = { clusterId: readClusterId(r), shards: r.u32(), foundedAtMs: r.u53() }
  }
  state.nextNodeNumber = r.u32()
  for (let left = r.count(NODE_BYTES); left > 0; left--) {
    const node = readNodeId(r)
    const number = r.u32()
    if (number >= state.nextNodeNumber) throw malformed(`node number ${number} was never given`)
    state.nodes.set(node, { number, role: readNodeRole(r) })
  }
}

function writeTopic(w: ByteWriter, topic: Topic): void {
  writeId(w, topic.topicId)
  w.text(topic.name)
  writePolicy(w, topic.policy)
  w.i64(topic.createdAtMs).i64(topic.version).u32(topic.nextRange).text(topic.creationToken)
  writeOffsets(w, topic.logStartOffsets)
  w.u32(topic.ranges.length)
  for (const range of topic.ranges) writeRange(w, range)
}
function readTopic(r: ByteReader, snapshot: number): Topic {
  const topicId = readTopicId(r)
  const name = r.text()
  const policy = readPolicy(r)
  const createdAtMs = r.u53()
  const version = r.u53()
  const nextRange = r.u32()
  const creationToken = r.text()
  const logStartOffsets = readOffsets(r)
  const ranges = Array.from({ length: r.count(RANGE_BYTES_LEAST) }, () => readRange(r, snapshot))
  return {
    name,
    topicId,
    policy,
    createdAtMs,
    version,
    ranges,
    active: activeOf(ranges),
    nextRange,
    logStartOffsets,
    creationToken,
  }
}

function writeRange(w: ByteWriter, range: Range): void {
  w.u32(range.range).u32(range.firstPartition).u32(range.endPartition)
  writeNumbers(w, range.parents)
  writeNumbers(w, range.children)
  w.u32(range.segments.length)
  for (const segment of range.segments) writeSegment(w, segment)
}
function readRange(r: ByteReader, snapshot: number): Range {
  const range = r.u32()
  const firstPartition = r.u32()
  const endPartition = r.u32()
  const parents = readNumbers(r)
  const children = readNumbers(r)
  const segments = Array.from({ length: r.count(SEGMENT_BYTES_LEAST) }, () =>
    readSegment(r, snapshot),
  )
  const state = children.length === 0 ? 'active' : 'sealed'
  return { range, state, firstPartition, endPartition, segments, parents, children }
}

function writeSegment(w: ByteWriter, segment: Segment): void {
  w.i64(segment.segment).i64(segment.endEntry ?? OPEN)
  writeNodeIds(w, segment.replicas)
  writeOffsets(w, segment.firstOffsets)
  w.i64(segment.openedAtMs).u32(segment.attempt).text(segment.token).text(segment.stateDigest)
  w.text(segment.digest).bool(segment.tail !== undefined)
  if (segment.tail !== undefined) writeTail(w, segment.tail)
}
function readSegment(r: ByteReader, snapshot: number): Segment {
  const segment = r.u53()
  const endEntry = r.i64()
  if (endEntry < OPEN) throw malformed(`the end of segment ${segment} is ${endEntry}`)
  const rest = {
    segment,
    replicas: readNodeIds(r),
    firstOffsets: readOffsets(r),
    openedAtMs: r.u53(),
    attempt: r.u32(),
    token: r.text(),
    stateDigest: r.text(),
    digest: snapshot >= 3 ? r.text() : '',
    tail: snapshot >= 3 && r.bool() ? readTail(r) : undefined,
  }
  return endEntry === OPEN ? { ...rest, state: 'open' } : { ...rest, state: 'sealed', endEntry }
}

function writeTail(w: ByteWriter, { from, holders, token }: Tail): void {
  w.i64(from)
  writeNodeIds(w, holders)
  w.text(token)
}
function readTail(r: ByteReader): Tail {
  return { from: r.u53(), holders: readNodeIds(r), token: r.text() }
}
