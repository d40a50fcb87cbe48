// What a member of a shard's group keeps in the metadata journal, and what it is after a restart.
//
//   record    u8 1 │ hard state              hard state   i64 term │ bool voted │ 16B for whom
//             u8 2 │ entry                   what stood at its index and behind it does not count any more, unless it is the
//                                            same entry once more
//             u8 3 │ members                 who founded the group: of a log that begins at entry 1
//   snapshot  u16 version (1) │ hard state │ i64 index │ i64 term │ members │ the machine's state
//
// A snapshot carries the hard state, since the records it frees may have been the only ones that told it; records behind it
// may be older than that, so the greater term counts, and in one term a vote more than none.

import { fromHex, toHex } from '../../base/bytes.ts'
import { ByteReader, ByteWriter, Truncated } from '../../base/cursor.ts'
import { EastGuardError } from '../../base/errors.ts'
import type { Restored } from '../../core/raft/types.ts'
import { nodeId } from '../../model/ids.ts'
import type { Entry, HardState, Members, Snapshot } from '../../model/raft.ts'
import type { RecoveredShard } from '../../storage/journal/journal.ts'
import { readEntry, readMembers, writeEntry, writeMembers } from '../../wire/peer/entry.ts'

const KIND_HARD_STATE = 1
const KIND_ENTRY = 2
const KIND_FOUNDED = 3
const VERSION = 1

const NOBODY: Members = { voters: [], learners: [] }

export function hardStateRecord(hardState: HardState): Uint8Array {
  const w = new ByteWriter(32).u8(KIND_HARD_STATE)
  writeHardState(w, hardState)
  return w.finish()
}

export function entryRecord(entry: Entry): Uint8Array {
  const w = new ByteWriter(128).u8(KIND_ENTRY)
  writeEntry(w, entry)
  return w.finish()
}

export function foundedRecord(members: Members): Uint8Array {
  const w = new ByteWriter(64).u8(KIND_FOUNDED)
  writeMembers(w, members)
  return w.finish()
}

export function encodeShardSnapshot(hardState: HardState, snapshot: Snapshot): Uint8Array {
  const w = new ByteWriter(128 + snapshot.data.length).u16(VERSION)
  writeHardState(w, hardState)
  w.i64(snapshot.index).i64(snapshot.term)
  writeMembers(w, snapshot.members)
  return w.raw(snapshot.data).finish()
}

/** Throws DAMAGED. */
export function restoreShard(shard: number, found: RecoveredShard): Restored {
  try {
    return restore(found)
  } catch (error) {
    if (!(error instanceof Truncated)) throw error
    const message = `metadata shard ${shard} in the journal cannot be read: ${error.message}`
    throw new EastGuardError('DAMAGED', message, { cause: error })
  }
}

function restore({ snapshot: bytes, records }: RecoveredShard): Restored {
  let hardState: HardState = { term: 0, vote: undefined }
  let snapshot: Snapshot | undefined
  let members = NOBODY
  const entries: Entry[] = []
  if (bytes !== undefined) {
    const read = decodeShardSnapshot(bytes)
    hardState = read.hardState
    snapshot = read.snapshot
  }
  for (const { bytes: record } of records) {
    const r = new ByteReader(record)
    const kind = r.u8()
    if (kind === KIND_HARD_STATE) hardState = later(hardState, readHardState(r))
    else if (kind === KIND_FOUNDED) members = readMembers(r)
    else if (kind === KIND_ENTRY) {
      const entry = readEntry(r)
      if (entry.index <= (snapshot?.index ?? 0)) continue
      // Written again by a checkpoint, whose rest a crash may have kept back: what followed may be acknowledged.
      if (entries[entry.index - (entries[0]?.index ?? 0)]?.term === entry.term) continue
      while ((entries.at(-1)?.index ?? 0) >= entry.index) entries.pop()
      entries.push(entry)
    } else throw new Truncated(`a record of kind ${kind}`)
    r.done()
  }
  return { hardState, snapshot, entries, members }
}

function later(known: HardState, read: HardState): HardState {
  if (read.term !== known.term) return read.term > known.term ? read : known
  return read.vote === undefined ? known : read
}

function decodeShardSnapshot(bytes: Uint8Array): {
  readonly hardState: HardState
  readonly snapshot: Snapshot
} {
  const r = new ByteReader(bytes)
  const version = r.u16()
  if (version !== VERSION) throw new Truncated(`a shard's snapshot of version ${version}`)
  const hardState = readHardState(r)
  const index = r.i64()
  const term = r.i64()
  const members = readMembers(r)
  return { hardState, snapshot: { index, term, members, data: r.raw(r.left) } }
}

function writeHardState(w: ByteWriter, { term, vote }: HardState): void {
  w.i64(term).bool(vote !== undefined)
  if (vote !== undefined) w.raw(fromHex(vote))
}

function readHardState(r: ByteReader): HardState {
  const term = r.i64()
  return { term, vote: r.bool() ? nodeId(toHex(r.raw(16))) : undefined }
}
