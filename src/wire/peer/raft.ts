// What the members of a Raft group tell each other. Who sent it and to whom is not written: the link knows.
//
//   u8 kind │ number term │ then
//   0 vote              bool pre │ bool transfer │ number last index │ number last term
//   1 vote-answer       bool pre │ bool granted
//   2 append            number prev index │ number prev term │ number commit │ number round │ entries
//   3 heartbeat         number commit │ number round
//   4 append-answer     number round │ u8 0                      agreed, says nothing of the log
//                                    │ u8 1 │ number match       agreed
//                                    │ u8 2 │ number prev index │ number hint index │ number hint term
//   5 snapshot          number index │ number snapshot term │ number round │ members │ part
//   6 snapshot-answer   number index │ number offset │ number round
//   7 timeout-now

import { type ByteReader, type ByteWriter, Truncated } from '../../base/cursor.ts'
import type { NodeId } from '../../model/ids.ts'
import type { AppendAnswer, Message } from '../../model/raft.ts'
import { readEntries, readMembers, writeEntries, writeMembers } from './entry.ts'
import { readChoice, readNumber, readPart, writeChoice, writeNumber, writePart } from './fields.ts'

const KINDS = [
  'vote',
  'vote-answer',
  'append',
  'heartbeat',
  'append-answer',
  'snapshot',
  'snapshot-answer',
  'timeout-now',
] as const satisfies readonly Message['kind'][]

export function writeRaft(w: ByteWriter, message: Message): void {
  writeChoice(w, KINDS, message.kind)
  writeNumber(w, message.term)
  switch (message.kind) {
    case 'vote':
      w.bool(message.pre).bool(message.transfer)
      writeNumber(w, message.lastIndex)
      writeNumber(w, message.lastTerm)
      return
    case 'vote-answer':
      w.bool(message.pre).bool(message.granted)
      return
    case 'append':
      writeNumber(w, message.prevIndex)
      writeNumber(w, message.prevTerm)
      writeNumber(w, message.commit)
      writeNumber(w, message.round)
      writeEntries(w, message.entries)
      return
    case 'heartbeat':
      writeNumber(w, message.commit)
      writeNumber(w, message.round)
      return
    case 'append-answer':
      writeNumber(w, message.round)
      writeResult(w, message.result)
      return
    case 'snapshot':
      writeNumber(w, message.index)
      writeNumber(w, message.snapshotTerm)
      writeNumber(w, message.round)
      writeMembers(w, message.members)
      writePart(w, message)
      return
    case 'snapshot-answer':
      writeNumber(w, message.index)
      writeNumber(w, message.offset)
      writeNumber(w, message.round)
      return
    case 'timeout-now':
  }
}

/** A snapshot's bytes are a view of what was read. */
export function readRaft(r: ByteReader, from: NodeId, to: NodeId): Message {
  const kind = readChoice(r, KINDS)
  const head = { from, to, term: readNumber(r) }
  switch (kind) {
    case 'vote':
      return {
        kind,
        ...head,
        pre: r.bool(),
        transfer: r.bool(),
        lastIndex: readNumber(r),
        lastTerm: readNumber(r),
      }
    case 'vote-answer':
      return { kind, ...head, pre: r.bool(), granted: r.bool() }
    case 'append': {
      const prevIndex = readNumber(r)
      const prevTerm = readNumber(r)
      const commit = readNumber(r)
      const round = readNumber(r)
      const entries = readEntries(r, prevIndex + 1)
      return { kind, ...head, prevIndex, prevTerm, entries, commit, round }
    }
    case 'heartbeat':
      return { kind, ...head, commit: readNumber(r), round: readNumber(r) }
    case 'append-answer':
      return { kind, ...head, round: readNumber(r), result: readResult(r) }
    case 'snapshot': {
      const index = readNumber(r)
      const snapshotTerm = readNumber(r)
      const round = readNumber(r)
      const members = readMembers(r)
      return { kind, ...head, index, snapshotTerm, round, members, ...readPart(r) }
    }
    case 'snapshot-answer':
      return {
        kind,
        ...head,
        index: readNumber(r),
        offset: readNumber(r),
        round: readNumber(r),
      }
    case 'timeout-now':
      return { kind, ...head }
  }
}

const HEARD = 0
const MATCHES = 1
const DIFFERS = 2

function writeResult(w: ByteWriter, result: AppendAnswer['result']): void {
  if (!result.ok) {
    w.u8(DIFFERS)
    writeNumber(w, result.prevIndex)
    writeNumber(w, result.hintIndex)
    writeNumber(w, result.hintTerm)
  } else if (result.match === undefined) w.u8(HEARD)
  else {
    w.u8(MATCHES)
    writeNumber(w, result.match)
  }
}
function readResult(r: ByteReader): AppendAnswer['result'] {
  const result = r.u8()
  switch (result) {
    case HEARD:
      return { ok: true }
    case MATCHES:
      return { ok: true, match: readNumber(r) }
    case DIFFERS:
      return {
        ok: false,
        prevIndex: readNumber(r),
        hintIndex: readNumber(r),
        hintTerm: readNumber(r),
      }
    default:
      throw new Truncated(`an append was answered with ${result}`)
  }
}
