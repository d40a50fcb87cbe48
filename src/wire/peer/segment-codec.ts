// Messages about segments, behind their kind (message.ts).
//
//   9  lease-request    number seq │ number boot │ number oldest sync ms │ bool stopping │ bool disk full │ shards │ u32 count, { key │ choice why │ bool waited }
//   10 lease-answer     number seq │ shards │ u32 count, keys
//   11 ask-end          key │ number attempt │ choice why
//   12 give-end         key │ number boot │ number attempt │ number end │ number high watermark │ failed │ choice why
//   13 end-refused      key │ u16 error code │ text
//   14 fence            key
//   15 fence-answer     key │ number boot │ number end │ number high watermark │ optional text unsure
//   16 stage-order      key │ text token │ number end │ number tail from │ node ids
//   17 stage-report     key │ text token │ u8 0 │ failed                                              not all have it
//                                        │ u8 1 │ u32 count, number next offsets │ text digest       stored
//                                        │ u8 2 │ number bytes                                       under way
//   18 inspect          key
//   19 inspect-answer   key │ number boot │ u8 0 │ text digest            whole
//                                         │ u8 1 │ number end             part
//                                         │ u8 2 │ text                   damaged
//
//   key       16B topic id │ number range │ number segment
//   shards    u32 count, { u32 shard │ number index }
//   failed    u8 count, { 16B node │ text why }

import { assert } from '../../base/assert.ts'
import {
  type ByteReader,
  type ByteWriter,
  readList,
  Truncated,
  writeList,
} from '../../base/cursor.ts'
import { ERRORS, type ErrorCode, errorCodeOf } from '../../base/errors.ts'
import {
  readNodeId,
  readNodeIds,
  readTopicId,
  writeId,
  writeNodeIds,
} from '../../model/id-bytes.ts'
import {
  END_REASONS,
  type FailedReplica,
  type FenceAnswer,
  type InspectAnswer,
  type LeadersEnd,
  type StageReport,
} from '../../model/segment-ends.ts'
import type { SegmentKey } from '../../model/segment-key.ts'
import {
  readChoice,
  readNumber,
  readOptional,
  writeChoice,
  writeNumber,
  writeOptional,
} from './fields.ts'
import type { SegmentMessage, ShardAt, UnfitSegment } from './segments.ts'

export const SEGMENT_KINDS: readonly SegmentMessage['kind'][] = [
  'lease-request',
  'lease-answer',
  'ask-end',
  'give-end',
  'end-refused',
  'fence',
  'fence-answer',
  'stage-order',
  'stage-report',
  'inspect',
  'inspect-answer',
]

const KEY_BYTES_MIN = 18
const SHARD_BYTES_MIN = 5
const FAILED_MAX = 255
const FAILED = 0
const STORED = 1
const MOVED = 2
const WHOLE = 0
const PART = 1
const DAMAGED = 2

export function writeSegmentMessage(w: ByteWriter, message: SegmentMessage): void {
  if (message.kind === 'lease-request') {
    writeNumber(w, message.seq)
    writeNumber(w, message.boot)
    writeNumber(w, message.oldestSyncMs)
    w.bool(message.stopping)
    w.bool(message.diskFull)
    writeList(w, message.shards, writeShard)
    writeList(w, message.unfit, writeUnfit)
  } else if (message.kind === 'lease-answer') {
    writeNumber(w, message.seq)
    writeList(w, message.shards, writeShard)
    writeList(w, message.withheld, writeKey)
  } else {
    writeKey(w, message.key)
    writeOfSegment(w, message)
  }
}

type OfSegment = Extract<SegmentMessage, { readonly key: SegmentKey }>
function writeOfSegment(w: ByteWriter, message: OfSegment): void {
  switch (message.kind) {
    case 'ask-end':
      writeNumber(w, message.attempt)
      writeChoice(w, END_REASONS, message.why)
      return
    case 'give-end':
      writeNumber(w, message.boot)
      writeGiven(w, message.given)
      return
    case 'end-refused':
      w.u16(ERRORS[message.code].number).text(message.text)
      return
    case 'fence-answer':
      writeAnswer(w, message.answer)
      return
    case 'stage-order':
      w.text(message.token)
      writeNumber(w, message.end)
      writeNumber(w, message.tailFrom)
      writeNodeIds(w, message.replicas)
      return
    case 'stage-report':
      w.text(message.token)
      writeReport(w, message.report)
      return
    case 'inspect-answer':
      writeNumber(w, message.boot)
      writeInspected(w, message.answer)
      return
    case 'fence':
    case 'inspect':
  }
}

export function readSegmentMessage(r: ByteReader, kind: SegmentMessage['kind']): SegmentMessage {
  if (kind === 'lease-request') {
    return {
      kind,
      seq: readNumber(r),
      boot: readNumber(r),
      oldestSyncMs: readNumber(r),
      stopping: r.bool(),
      diskFull: r.bool(),
      shards: readList(r, SHARD_BYTES_MIN, readShard),
      unfit: readList(r, KEY_BYTES_MIN + 2, readUnfit),
    }
  }
  if (kind === 'lease-answer') {
    return {
      kind,
      seq: readNumber(r),
      shards: readList(r, SHARD_BYTES_MIN, readShard),
      withheld: readList(r, KEY_BYTES_MIN, readKey),
    }
  }
  return readOfSegment(r, kind)
}

function readOfSegment(r: ByteReader, kind: OfSegment['kind']): OfSegment {
  const key = readKey(r)
  switch (kind) {
    case 'ask-end':
      return { kind, key, attempt: readNumber(r), why: readChoice(r, END_REASONS) }
    case 'give-end':
      return { kind, key, boot: readNumber(r), given: readGiven(r) }
    case 'end-refused':
      return { kind, key, code: readCode(r), text: r.text() }
    case 'fence-answer':
      return { kind, key, answer: readAnswer(r) }
    case 'stage-order':
      return {
        kind,
        key,
        token: r.text(),
        end: readNumber(r),
        tailFrom: readNumber(r),
        replicas: readNodeIds(r),
      }
    case 'stage-report':
      return { kind, key, token: r.text(), report: readReport(r) }
    case 'inspect-answer':
      return { kind, key, boot: readNumber(r), answer: readInspected(r) }
    case 'fence':
    case 'inspect':
      return { kind, key }
  }
}

// The parts.

function writeKey(w: ByteWriter, { topicId, range, segment }: SegmentKey): void {
  writeId(w, topicId)
  writeNumber(w, range)
  writeNumber(w, segment)
}
function readKey(r: ByteReader): SegmentKey {
  return { topicId: readTopicId(r), range: readNumber(r), segment: readNumber(r) }
}

function writeShard(w: ByteWriter, { shard, index }: ShardAt): void {
  w.u32(shard)
  writeNumber(w, index)
}
function readShard(r: ByteReader): ShardAt {
  return { shard: r.u32(), index: readNumber(r) }
}

function writeUnfit(w: ByteWriter, { key, why, waited }: UnfitSegment): void {
  writeKey(w, key)
  writeChoice(w, END_REASONS, why)
  w.bool(waited)
}
function readUnfit(r: ByteReader): UnfitSegment {
  return { key: readKey(r), why: readChoice(r, END_REASONS), waited: r.bool() }
}

function writeFailed(w: ByteWriter, failed: readonly FailedReplica[]): void {
  assert(failed.length <= FAILED_MAX, 'a segment has fewer replicas than a byte counts')
  w.u8(failed.length)
  for (const { node, why } of failed) {
    writeId(w, node)
    w.text(why)
  }
}
function readFailed(r: ByteReader): readonly FailedReplica[] {
  return Array.from({ length: r.u8() }, () => ({ node: readNodeId(r), why: r.text() }))
}

function writeGiven(w: ByteWriter, given: LeadersEnd): void {
  writeNumber(w, given.attempt)
  writeNumber(w, given.end)
  writeNumber(w, given.highWatermark)
  writeFailed(w, given.failed)
  writeChoice(w, END_REASONS, given.why)
}
function readGiven(r: ByteReader): LeadersEnd {
  return {
    attempt: readNumber(r),
    end: readNumber(r),
    highWatermark: readNumber(r),
    failed: readFailed(r),
    why: readChoice(r, END_REASONS),
  }
}

function readCode(r: ByteReader): ErrorCode {
  const number = r.u16()
  const code = errorCodeOf(number)
  if (ERRORS[code].number !== number) throw new Truncated(`there is no error ${number}`)
  return code
}

function writeAnswer(w: ByteWriter, answer: FenceAnswer): void {
  writeNumber(w, answer.boot)
  writeNumber(w, answer.end)
  writeNumber(w, answer.highWatermark)
  writeOptional(w, answer.unsure, (_, why) => w.text(why))
}
function readAnswer(r: ByteReader): FenceAnswer {
  return {
    boot: readNumber(r),
    end: readNumber(r),
    highWatermark: readNumber(r),
    unsure: readOptional(r, () => r.text()),
  }
}

function writeReport(w: ByteWriter, report: StageReport): void {
  if ('moved' in report) {
    w.u8(MOVED)
    writeNumber(w, report.moved)
  } else if ('failed' in report) {
    w.u8(FAILED)
    writeFailed(w, report.failed)
  } else {
    w.u8(STORED)
    writeList(w, report.nextOffsets, writeNumber)
    w.text(report.stateDigest)
  }
}
function readReport(r: ByteReader): StageReport {
  const kind = r.u8()
  switch (kind) {
    case FAILED:
      return { failed: readFailed(r) }
    case STORED:
      return { nextOffsets: readList(r, 1, readNumber), stateDigest: r.text() }
    case MOVED:
      return { moved: readNumber(r) }
    default:
      throw new Truncated(`a staging is reported with ${kind}`)
  }
}

function writeInspected(w: ByteWriter, answer: InspectAnswer): void {
  switch (answer.kind) {
    case 'whole':
      w.u8(WHOLE).text(answer.digest)
      return
    case 'part':
      w.u8(PART)
      writeNumber(w, answer.end)
      return
    case 'damaged':
      w.u8(DAMAGED).text(answer.why)
  }
}
function readInspected(r: ByteReader): InspectAnswer {
  const kind = r.u8()
  switch (kind) {
    case WHOLE:
      return { kind: 'whole', digest: r.text() }
    case PART:
      return { kind: 'part', end: readNumber(r) }
    case DAMAGED:
      return { kind: 'damaged', why: r.text() }
    default:
      throw new Truncated(`a segment was inspected with ${kind}`)
  }
}
