// A member's log in memory: what follows a base, and the newest snapshot.
//
//        snapshot.index
//   base      |                last
//    |--------|-----------------|
//     kept for followers that
//     are a little behind
//
// Members are in force from the entry that names them, committed or not (thesis, 4.1); when such an entry is cut off again,
// those before it are. So the log keeps who the members are at each point of itself.

import { assert } from '../../base/assert.ts'
import type { Entry, LogEnd, Members, Snapshot } from '../../model/raft.ts'
import type { Restored } from './types.ts'

interface MembersSince {
  readonly index: number
  readonly members: Members
}

export class RaftLog {
  private entries: Entry[]
  private baseIndex: number
  private baseTerm: number
  private history: MembersSince[]
  snapshot: Snapshot | undefined
  readonly deletedUpTo: LogEnd | undefined

  constructor({ hardState, snapshot, entries, members }: Restored) {
    this.deletedUpTo = hardState.deletedUpTo
    this.snapshot = snapshot
    this.baseIndex = snapshot?.index ?? 0
    this.baseTerm = snapshot?.term ?? 0
    // What a snapshot covers is not needed, and may lie before a hole that the snapshot filled.
    this.entries = entries.filter((entry) => entry.index > this.baseIndex)
    this.history = [{ index: this.baseIndex, members: snapshot?.members ?? members }]
    for (const [i, entry] of this.entries.entries()) {
      assert(entry.index === this.baseIndex + 1 + i, 'a restored log has no hole')
      this.noteMembers(entry)
    }
  }

  get lastIndex(): number {
    return this.baseIndex + this.entries.length
  }

  get lastTerm(): number {
    return this.entries.at(-1)?.term ?? this.baseTerm
  }

  /** The first index that can still be sent as an entry. */
  get firstIndex(): number {
    return this.baseIndex + 1
  }

  /** Undefined: compacted, or not there yet. */
  term(index: number): number | undefined {
    if (index === this.baseIndex) return this.baseTerm
    return this.entries[index - this.baseIndex - 1]?.term
  }

  /** Entries from `from` on, at least one if there is one, then as many as stay within `bytesMax`; at most up to `to`. */
  slice(from: number, to: number, bytesMax: number): readonly Entry[] {
    const taken: Entry[] = []
    let bytes = 0
    for (let index = from; index <= to; index++) {
      const entry = this.entries[index - this.baseIndex - 1]
      if (entry === undefined) break
      bytes += entryBytes(entry)
      if (taken.length > 0 && bytes > bytesMax) break
      taken.push(entry)
    }
    return taken
  }

  /** The furthest that this member has held the log, even if it has deleted it since. */
  get end(): LogEnd {
    const { deletedUpTo, lastIndex, lastTerm } = this
    if (deletedUpTo !== undefined && !this.isWhole) return deletedUpTo
    return { index: lastIndex, term: lastTerm }
  }

  /** False while a member that has deleted its log has less of it again than it had: its members are those of long ago. */
  get isWhole(): boolean {
    const { deletedUpTo, lastIndex, lastTerm } = this
    return deletedUpTo === undefined || reaches({ index: lastIndex, term: lastTerm }, deletedUpTo)
  }

  /** Whether a log that ends so lacks nothing that this member has had (the paper, 5.4.1). */
  isUpToDate(end: LogEnd): boolean {
    return reaches(end, this.end)
  }

  /** The greatest index, `index` or below, whose term is `term` or below: where two logs may still agree. */
  agreement(index: number, term: number): number {
    let at = Math.min(index, this.lastIndex)
    while (at > this.baseIndex && (this.term(at) as number) > term) at--
    return at
  }

  append(entry: Entry): void {
    assert(entry.index === this.lastIndex + 1, 'entries are appended one after another')
    this.entries.push(entry)
    this.noteMembers(entry)
  }

  /** Drops the entries from `index` on. */
  truncate(index: number): void {
    assert(index > this.baseIndex, 'what a snapshot covers is never cut off')
    this.entries.length = Math.min(this.entries.length, index - this.baseIndex - 1)
    this.history = this.history.filter((since) => since.index < index)
  }

  get members(): Members {
    return (this.history.at(-1) as MembersSince).members
  }

  /** Where the members in force were named. */
  get membersIndex(): number {
    return (this.history.at(-1) as MembersSince).index
  }

  membersAt(index: number): Members {
    const since = this.history.findLast((one) => one.index <= index)
    assert(since !== undefined, 'the members of compacted entries are not known')
    return since.members
  }

  /** The state machine's data after `index` takes the place of entries, but for the `kept` newest of them. */
  compact(index: number, data: Uint8Array, kept: number): Snapshot {
    const term = this.term(index)
    assert(term !== undefined, 'a snapshot is of an entry in the log')
    const snapshot: Snapshot = { index, term, members: this.membersAt(index), data }
    this.snapshot = snapshot
    this.rebase(Math.max(this.baseIndex, index - kept))
    return snapshot
  }

  /** The snapshot takes the place of everything. */
  reset(snapshot: Snapshot): void {
    this.snapshot = snapshot
    this.entries = []
    this.baseIndex = snapshot.index
    this.baseTerm = snapshot.term
    this.history = [{ index: snapshot.index, members: snapshot.members }]
  }

  private rebase(index: number): void {
    const members = this.membersAt(index)
    this.baseTerm = this.term(index) as number
    this.entries = this.entries.slice(index - this.baseIndex)
    this.baseIndex = index
    const later = this.history.filter((since) => since.index > index)
    this.history = [{ index, members }, ...later]
  }

  private noteMembers({ index, payload }: Entry): void {
    if (payload.kind === 'members') this.history.push({ index, members: payload.members })
  }
}

function reaches(end: LogEnd, other: LogEnd): boolean {
  return end.term === other.term ? end.index >= other.index : end.term > other.term
}

/** What an entry counts for in a bound. */
export function entryBytes({ payload }: Entry): number {
  const ENTRY_OVERHEAD_BYTES = 64
  return ENTRY_OVERHEAD_BYTES + (payload.kind === 'command' ? payload.data.length : 0)
}
