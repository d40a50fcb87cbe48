// What a machine keeps of a group, and the state machine that the group's log drives here: it counts its commands and hashes
// their ids, so that two of them agree exactly when they have applied the same.

import { fromUtf8, utf8 } from '../../../src/base/bytes.ts'
import type { Effects } from '../../../src/core/raft/types.ts'
import type { NodeId } from '../../../src/model/ids.ts'
import type { Entry, HardState, Members, Snapshot } from '../../../src/model/raft.ts'

export const NOBODY: Members = { voters: [], learners: [] }

/** A member is its disk: with another disk it would be another member. */
export interface Disk {
  readonly member: NodeId
  /** Of the group when it was founded; nobody on whoever came later. */
  readonly founders: Members
  hardState: HardState
  snapshot: Snapshot | undefined
  /** They follow the snapshot without a hole. */
  entries: Entry[]
}

export function emptyDisk(member: NodeId, founders: Members): Disk {
  const hardState = { term: 0, vote: undefined }
  return { member, founders, hardState, snapshot: undefined, entries: [] }
}

export function isDirty(effects: Effects): boolean {
  const { hardState, snapshot, truncatedFrom, entries } = effects
  return (
    hardState !== undefined ||
    snapshot !== undefined ||
    truncatedFrom !== undefined ||
    entries.length > 0
  )
}

/** One synced write: it is there whole, or not at all. */
export function store(disk: Disk, effects: Effects): void {
  const { hardState, snapshot, truncatedFrom, entries, installed } = effects
  if (hardState !== undefined) disk.hardState = hardState
  if (installed) disk.entries = []
  else if (truncatedFrom !== undefined) {
    disk.entries = disk.entries.filter(({ index }) => index < truncatedFrom)
  }
  disk.entries.push(...entries)
  if (snapshot === undefined) return
  disk.snapshot = snapshot
  disk.entries = disk.entries.filter(({ index }) => index > snapshot.index)
}

/** The term of an entry that the disk holds; 'covered' by its snapshot; undefined: it holds none. */
export function termOn(disk: Disk, index: number): number | 'covered' | undefined {
  const base = disk.snapshot?.index ?? 0
  if (index === base && disk.snapshot !== undefined) return disk.snapshot.term
  if (index <= base) return 'covered'
  return disk.entries[index - base - 1]?.term
}

export interface State {
  readonly index: number
  readonly commands: number
  readonly hash: number
}

export const FIRST_STATE: State = { index: 0, commands: 0, hash: 0 }

export function afterEntry(state: State, { index, payload }: Entry): State {
  if (payload.kind !== 'command') return { ...state, index }
  let hash = state.hash
  for (let i = 0; i < payload.id.length; i++) {
    hash = (Math.imul(hash, 31) + payload.id.charCodeAt(i)) | 0
  }
  return { index, commands: state.commands + 1, hash }
}

/** In several parts; each machine writes the same state in its own way, so that parts of two do not fit together. */
export function encodeState({ index, commands, hash }: State, writer: string): Uint8Array {
  const text = `${index} ${commands} ${hash}`
  return utf8(`${text} ${writer.repeat(20 + (commands % 3) * 30)} ${text}`)
}

/** Undefined: no state was ever written so. */
export function decodeState(data: Uint8Array): State | undefined {
  const [index, commands, hash, filler = '', ...again] = fromUtf8(data).split(' ')
  const whole = again.join(' ') === `${index} ${commands} ${hash}`
  if (!whole || new Set(filler).size !== 1) return undefined
  return { index: Number(index), commands: Number(commands), hash: Number(hash) }
}
