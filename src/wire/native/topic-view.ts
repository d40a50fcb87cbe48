// A topic as DESCRIBE_TOPICS shows it.
//
//   topic    text name │ 16B topic id │ policy │ i64 created ms │ i64 version │ list i64 log starts │ list range
//   range    u32 range │ u8 state │ u32 first │ u32 end │ list u32 parents │ list u32 children │ list segment
//   segment  i64 segment │ u8 state │ i64 opened ms │ i64 end entry (-1 open) │ text digest │ i64 tail from (-1 none) │
//            i64 entries held (-1 not here) │ i64 bytes held │ list 16B replicas │ list i64 first offsets

import { fromHex, toHex } from '../../base/bytes.ts'
import { type ByteReader, type ByteWriter, readList, writeList } from '../../base/cursor.ts'
import { nodeId, topicId } from '../../model/ids.ts'
import type { RangeView, SegmentView, TopicView } from '../../model/metadata.ts'
import { readWholePolicy, writePolicy } from './policy.ts'

const SEGMENT_BYTES_LEAST = 59
const NONE = -1

const writeI64 = (w: ByteWriter, value: number): void => {
  w.i64(value)
}
const readI64 = (r: ByteReader): number => r.i64()
const writeU32 = (w: ByteWriter, value: number): void => {
  w.u32(value)
}
const readU32 = (r: ByteReader): number => r.u32()

export function writeTopicView(w: ByteWriter, topic: TopicView): void {
  w.text(topic.name).raw(fromHex(topic.topicId))
  writePolicy(w, topic.policy)
  w.i64(topic.createdAtMs).i64(topic.version)
  writeList(w, topic.logStartOffsets, writeI64)
  writeList(w, topic.ranges, writeRange)
}

/** What a view may take in bytes, without writing it. */
export function topicViewBytesMost(topic: TopicView): number {
  let bytes = 2048 + 8 * topic.logStartOffsets.length
  for (const range of topic.ranges) {
    bytes += 25 + 4 * (range.parents.length + range.children.length)
    for (const s of range.segments) {
      // A digest is hexadecimal; a character of any text takes three bytes at most.
      bytes += SEGMENT_BYTES_LEAST + 3 * (s.digest?.length ?? 0)
      bytes += 16 * s.replicas.length + 8 * s.firstOffsets.length
    }
  }
  return bytes
}

/** What is left for routing: the last segment of each range, whose first replica leads, and no offsets. */
export function briefTopicView(topic: TopicView): TopicView {
  return {
    ...topic,
    logStartOffsets: [],
    ranges: topic.ranges.map((range) => ({
      ...range,
      segments: range.segments.slice(-1).map(briefSegment),
    })),
  }
}

function briefSegment({
  segment,
  state,
  replicas,
  openedAtMs,
  endEntry,
}: SegmentView): SegmentView {
  const brief = { segment, state, replicas, openedAtMs, firstOffsets: [], digest: '' }
  return endEntry === undefined ? brief : { ...brief, endEntry }
}

export function readTopicView(r: ByteReader): TopicView {
  return {
    name: r.text(),
    topicId: topicId(toHex(r.raw(16))),
    policy: readWholePolicy(r),
    createdAtMs: r.i64(),
    version: r.i64(),
    logStartOffsets: readList(r, 8, readI64),
    ranges: readList(r, 25, readRange),
  }
}

function writeRange(w: ByteWriter, range: RangeView): void {
  w.u32(range.range)
    .bool(range.state === 'sealed')
    .u32(range.firstPartition)
    .u32(range.endPartition)
  writeList(w, range.parents, writeU32)
  writeList(w, range.children, writeU32)
  writeList(w, range.segments, writeSegment)
}

function readRange(r: ByteReader): RangeView {
  return {
    range: r.u32(),
    state: r.bool() ? 'sealed' : 'active',
    firstPartition: r.u32(),
    endPartition: r.u32(),
    parents: readList(r, 4, readU32),
    children: readList(r, 4, readU32),
    segments: readList(r, SEGMENT_BYTES_LEAST, readSegment),
  }
}

function writeSegment(w: ByteWriter, s: SegmentView): void {
  w.i64(s.segment)
    .bool(s.state === 'sealed')
    .i64(s.openedAtMs)
    .i64(s.endEntry ?? NONE)
    .text(s.digest ?? '')
    .i64(s.tail?.from ?? NONE)
    .i64(s.held?.entries ?? NONE)
    .i64(s.held?.bytes ?? NONE)
  writeList(w, s.replicas, (_, replica) => {
    w.raw(fromHex(replica))
  })
  writeList(w, s.firstOffsets, writeI64)
}

function readSegment(r: ByteReader): SegmentView {
  const segment = r.i64()
  const state = r.bool() ? 'sealed' : 'open'
  const openedAtMs = r.i64()
  const endEntry = r.i64()
  const digest = r.text()
  const from = r.i64()
  const entries = r.i64()
  const bytes = r.i64()
  return {
    segment,
    state,
    openedAtMs,
    ...(endEntry >= 0 ? { endEntry } : {}),
    digest,
    ...(from >= 0 ? { tail: { from } } : {}),
    ...(entries >= 0 ? { held: { entries, bytes } } : {}),
    replicas: readList(r, 16, () => nodeId(toHex(r.raw(16)))),
    firstOffsets: readList(r, 8, readI64),
  }
}
