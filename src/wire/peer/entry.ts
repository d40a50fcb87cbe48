// An entry of a Raft log and the members of a group, in bytes. These layouts also lie on disks, so they never change: a
// payload that needs another gets another kind, and a reader that does not know a kind refuses it.
//
//   entry     u64 index │ u64 term │ payload
//   payload   u8 0                                empty
//             u8 1 │ text id │ blob data          command
//             u8 2 │ text id │ members            members
//   members   u8 count, 16B voters │ u8 count, 16B learners
//
// Here numbers have their full width: on a disk they are looked at with tools that show bytes.

import { unreachable } from '../../base/assert.ts'
import { type ByteReader, type ByteWriter, Truncated } from '../../base/cursor.ts'
import { readNodeIds, writeNodeIds } from '../../model/id-bytes.ts'
import type { Entry, Members, Payload } from '../../model/raft.ts'
import { readKept } from './fields.ts'

const EMPTY = 0
const COMMAND = 1
const MEMBERS = 2

const ENTRY_BYTES_MIN = 17

export function writeEntry(w: ByteWriter, entry: Entry): void {
  w.i64(entry.index).i64(entry.term)
  writePayload(w, entry.payload)
}
export function readEntry(r: ByteReader): Entry {
  return { index: r.u53(), term: r.u53(), payload: readPayload(r) }
}

export function writePayload(w: ByteWriter, payload: Payload): void {
  switch (payload.kind) {
    case 'empty':
      w.u8(EMPTY)
      return
    case 'command':
      w.u8(COMMAND).text(payload.id).blob(payload.data)
      return
    case 'members':
      w.u8(MEMBERS).text(payload.id)
      writeMembers(w, payload.members)
      return
    default:
      unreachable(payload)
  }
}
export function readPayload(r: ByteReader): Payload {
  const kind = r.u8()
  switch (kind) {
    case EMPTY:
      return { kind: 'empty' }
    case COMMAND:
      return { kind: 'command', id: r.text(), data: readKept(r) }
    case MEMBERS:
      return { kind: 'members', id: r.text(), members: readMembers(r) }
    default:
      throw new Truncated(`a payload of the unknown kind ${kind}`)
  }
}

export function writeMembers(w: ByteWriter, members: Members): void {
  writeNodeIds(w, members.voters)
  writeNodeIds(w, members.learners)
}
export function readMembers(r: ByteReader): Members {
  return { voters: readNodeIds(r), learners: readNodeIds(r) }
}

/** u32 count, entries: a stretch of a log, without a hole. */
export function writeEntries(w: ByteWriter, entries: readonly Entry[]): void {
  w.u32(entries.length)
  for (const entry of entries) writeEntry(w, entry)
}
/** `first`: the index that the first must have, if any has to. */
export function readEntries(r: ByteReader, first?: number): readonly Entry[] {
  const entries: Entry[] = []
  let index = first
  for (let left = r.count(ENTRY_BYTES_MIN); left > 0; left--) {
    const entry = readEntry(r)
    if (index !== undefined && entry.index !== index) {
      throw new Truncated(`entry ${entry.index} stands where ${index} belongs`)
    }
    index = entry.index + 1
    entries.push(entry)
  }
  return entries
}
