// One message of a frame.
//
//   u8 kind │ u32 shard │ then
//   0 raft             raft.ts
//   1 propose          number term │ text id │ blob command
//   2 propose-answer   text id │ bool taken │ number index │ number term
//                                           │ choice refusal │ optional leader
//   3 read             text id
//   4 read-answer      text id │ optional number index │ optional leader
//   5 feed-request     number from index │ bool subscribe
//   6 feed             optional number prev term │ entries
//   7 feed-snapshot    number index │ number term │ members │ part
//   8 feed-end         optional leader
//
// Bodies tell their own ends, so nothing stands between two messages. What a later version adds gets a new kind, and is
// sent to nobody whose hello names an older version.

import type { ByteReader, ByteWriter } from '../../base/cursor.ts'
import type { NodeId } from '../../model/ids.ts'
import { REFUSALS } from '../../model/raft.ts'
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
import type { PeerMessage, Proposed } from './types.ts'

const KINDS = [
  'raft',
  'propose',
  'propose-answer',
  'read',
  'read-answer',
  'feed-request',
  'feed',
  'feed-snapshot',
  'feed-end',
] as const satisfies readonly PeerMessage['kind'][]

export function writeMessage(w: ByteWriter, message: PeerMessage): void {
  writeChoice(w, KINDS, message.kind)
  w.u32(message.shard)
  switch (message.kind) {
    case 'raft':
      writeRaft(w, message.message)
      return
    case 'propose':
      writeNumber(w, message.term)
      w.text(message.id).blob(message.command)
      return
    case 'propose-answer':
      w.text(message.id)
      writeProposed(w, message.outcome)
      return
    case 'read':
      w.text(message.id)
      return
    case 'read-answer':
      w.text(message.id)
      writeOptional(w, message.index, writeNumber)
      writeLeader(w, message.leader)
      return
    case 'feed-request':
      writeNumber(w, message.fromIndex)
      w.bool(message.subscribe)
      return
    case 'feed':
      writeOptional(w, message.prevTerm, writeNumber)
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
  const shard = r.u32()
  switch (kind) {
    case 'raft':
      return { kind, shard, message: readRaft(r, from, to) }
    case 'propose':
      return { kind, shard, term: readNumber(r), id: r.text(), command: readKept(r) }
    case 'propose-answer':
      return { kind, shard, id: r.text(), outcome: readProposed(r) }
    case 'read':
      return { kind, shard, id: r.text() }
    case 'read-answer': {
      const id = r.text()
      return { kind, shard, id, index: readOptional(r, readNumber), leader: readLeader(r) }
    }
    case 'feed-request':
      return { kind, shard, fromIndex: readNumber(r), subscribe: r.bool() }
    case 'feed':
      return { kind, shard, prevTerm: readOptional(r, readNumber), entries: readEntries(r) }
    case 'feed-snapshot': {
      const index = readNumber(r)
      const term = readNumber(r)
      return { kind, shard, index, term, members: readMembers(r), ...readPart(r) }
    }
    case 'feed-end':
      return { kind, shard, leader: readLeader(r) }
  }
}

function writeProposed(w: ByteWriter, outcome: Proposed): void {
  w.bool(outcome.taken)
  if (outcome.taken) {
    writeNumber(w, outcome.index)
    writeNumber(w, outcome.term)
  } else {
    writeChoice(w, REFUSALS, outcome.refusal)
    writeLeader(w, outcome.leader)
  }
}
function readProposed(r: ByteReader): Proposed {
  return r.bool()
    ? { taken: true, index: readNumber(r), term: readNumber(r) }
    : { taken: false, refusal: readChoice(r, REFUSALS), leader: readLeader(r) }
}
