// One message of a frame.
//
//   u8 kind │ u32 shard │ then
//   0 raft             raft.ts
//   1 propose          number term │ text proposer │ number number │ number below │ blob command
//   2 propose-answer   number term │ number number │ optional choice refusal │ optional leader
//   3 read             number id
//   4 read-answer      number id │ optional number index │ optional leader
//   5 feed-request     number from index │ optional held: number index │ number bytes
//   6 feed             entries
//   7 feed-snapshot    number index │ number term │ members │ part
//   8 feed-end         optional leader
//
// and without a shard, from 9 on, what segment-codec.ts lists.
//
// Bodies tell their own ends, so nothing stands between two messages. What a later version adds gets a new kind, and is
// sent to nobody whose hello names an older version.

import type { ByteReader, ByteWriter } from '../../base/cursor.ts'
import type { NodeId } from '../../model/ids.ts'
import { REFUSALS, type Refusal } from '../../model/raft.ts'
import { readEntries, readMembers, writeEntries, writeMembers } from './entry.ts'
import {
  readChoice,
  readKept,
  readLeader,
  readNumber,
  readOptional,
  readPart,
  writeChoice,
  writeLeader,
  writeNumber,
  writeOptional,
  writePart,
} from './fields.ts'
import { readRaft, writeRaft } from './raft.ts'
import { readSegmentMessage, SEGMENT_KINDS, writeSegmentMessage } from './segment-codec.ts'
import type { FeedRequest, PeerMessage, ShardMessage } from './types.ts'

const SHARD_KINDS = [
  'raft',
  'propose',
  'propose-answer',
  'read',
  'read-answer',
  'feed-request',
  'feed',
  'feed-snapshot',
  'feed-end',
] as const satisfies readonly ShardMessage['kind'][]
const KINDS: readonly PeerMessage['kind'][] = [...SHARD_KINDS, ...SEGMENT_KINDS]

export function writeMessage(w: ByteWriter, message: PeerMessage): void {
  writeChoice(w, KINDS, message.kind)
  if ('shard' in message) writeShardMessage(w, message)
  else writeSegmentMessage(w, message)
}

function writeShardMessage(w: ByteWriter, message: ShardMessage): void {
  w.u32(message.shard)
  switch (message.kind) {
    case 'raft':
      writeRaft(w, message.message)
      return
    case 'propose':
      writeNumber(w, message.term)
      w.text(message.proposer)
      writeNumber(w, message.number)
      writeNumber(w, message.below)
      w.blob(message.command)
      return
    case 'propose-answer':
      writeNumber(w, message.term)
      writeNumber(w, message.number)
      writeOptional(w, message.refusal, writeRefusal)
      writeLeader(w, message.leader)
      return
    case 'read':
      writeNumber(w, message.id)
      return
    case 'read-answer':
      writeNumber(w, message.id)
      writeOptional(w, message.index, writeNumber)
      writeLeader(w, message.leader)
      return
    case 'feed-request':
      writeNumber(w, message.fromIndex)
      writeOptional(w, message.held, writeHeld)
      return
    case 'feed':
      writeEntries(w, message.entries)
      return
    case 'feed-snapshot':
      writeNumber(w, message.index)
      writeNumber(w, message.term)
      writeMembers(w, message.members)
      writePart(w, message)
      return
    case 'feed-end':
      writeLeader(w, message.leader)
  }
}

/** A snapshot's bytes are a view of what was read. */
export function readMessage(r: ByteReader, from: NodeId, to: NodeId): PeerMessage {
  const kind = readChoice(r, KINDS)
  return isOfShard(kind) ? readShardMessage(r, kind, from, to) : readSegmentMessage(r, kind)
}

type ShardKind = ShardMessage['kind']
const OF_SHARD: ReadonlySet<PeerMessage['kind']> = new Set(SHARD_KINDS)
function isOfShard(kind: PeerMessage['kind']): kind is ShardKind {
  return OF_SHARD.has(kind)
}

function readShardMessage(r: ByteReader, kind: ShardKind, from: NodeId, to: NodeId): ShardMessage {
  const shard = r.u32()
  switch (kind) {
    case 'raft':
      return { kind, shard, message: readRaft(r, from, to) }
    case 'propose':
      return {
        kind,
        shard,
        term: readNumber(r),
        proposer: r.text(),
        number: readNumber(r),
        below: readNumber(r),
        command: readKept(r),
      }
    case 'propose-answer':
      return {
        kind,
        shard,
        term: readNumber(r),
        number: readNumber(r),
        refusal: readOptional(r, readRefusal),
        leader: readLeader(r),
      }
    case 'read':
      return { kind, shard, id: readNumber(r) }
    case 'read-answer': {
      const id = readNumber(r)
      return { kind, shard, id, index: readOptional(r, readNumber), leader: readLeader(r) }
    }
    case 'feed-request':
      return { kind, shard, fromIndex: readNumber(r), held: readOptional(r, readHeld) }
    case 'feed':
      return { kind, shard, entries: readEntries(r) }
    case 'feed-snapshot': {
      const index = readNumber(r)
      const term = readNumber(r)
      return { kind, shard, index, term, members: readMembers(r), ...readPart(r) }
    }
    case 'feed-end':
      return { kind, shard, leader: readLeader(r) }
  }
}

type Held = NonNullable<FeedRequest['held']>
function writeHeld(w: ByteWriter, { index, bytes }: Held): void {
  writeNumber(w, index)
  writeNumber(w, bytes)
}
function readHeld(r: ByteReader): Held {
  return { index: readNumber(r), bytes: readNumber(r) }
}

function writeRefusal(w: ByteWriter, refusal: Refusal): void {
  writeChoice(w, REFUSALS, refusal)
}
function readRefusal(r: ByteReader): Refusal {
  return readChoice(r, REFUSALS)
}
