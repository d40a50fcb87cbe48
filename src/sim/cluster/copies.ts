// What must be true of the brokers' copies of the metadata [I13], looked at from outside while they work. Clients see a copy only
// where they ask; here each is held against every other.
//
//   same place in a shard's log      the same state, to the byte, on every broker and for ever
//   same place in a shard's log      the same entry, committed anywhere; and no proposal in two places
//   one term of a shard              one leader
//   one start of a broker            its copy never goes back
//   a member that led among others   never is in an older term again, whatever its machine went through
//
// All of it is read where it lies: nothing is asked of brokers, so looking changes no run.

import { crc32cOf } from '../../base/checksum.ts'
import { encodeSnapshot } from '../../core/metadata/snapshot.ts'
import type { NodeId } from '../../model/ids.ts'
import type { Entry, ProposalId } from '../../model/raft.ts'
import type { Machine, Watcher } from '../machine.ts'

type Part = Pick<NonNullable<Machine['shards']>, 'count' | 'copyOf' | 'view' | 'committed'>

/** What is looked at of a machine. */
export interface Looked extends Pick<Machine, 'host' | 'nodeId'> {
  readonly shards: Part | undefined
}

/** Of one shard, as one start of a broker has it: how far its copy was when it was looked at, and what of its log was. */
interface Seen {
  applied: number
  looked: number
}

/** Of one shard. */
interface Truth {
  /** Checksums of states by applied index. */
  readonly states: Map<number, number>
  /** Committed entries by index: the term and, of commands, the proposal. */
  readonly entries: Map<number, string>
  /** Where each proposal is. */
  readonly proposals: Map<ProposalId, number>
  /** By term. */
  readonly leaders: Map<number, NodeId>
  /** The newest term in which each has led others. */
  readonly led: Map<NodeId, number>
}

export class Copies {
  private readonly machines: readonly Looked[]
  private readonly watcher: Watcher
  private truths: readonly Truth[] = []
  /** Of each start of a broker, how far its copies were. */
  private seen = new WeakMap<Part, Seen[]>()

  constructor(machines: readonly Looked[], watcher: Watcher) {
    this.machines = machines
    this.watcher = watcher
  }

  /** Nothing holds any longer of what was. */
  forget(): void {
    this.truths = []
    this.seen = new WeakMap()
  }

  look(): void {
    for (const { shards, nodeId, host } of this.machines) {
      if (shards === undefined || nodeId === undefined) continue
      for (let shard = 0; shard < shards.count; shard++) {
        this.lookAtCopy(shards, shard, host)
        this.lookAtLog(shards, shard, host)
        this.lookAtMember(shards, shard, nodeId, host)
      }
    }
  }

  private lookAtCopy(part: Part, shard: number, host: string): void {
    const { state } = part.copyOf(shard)
    const index = state.appliedIndex
    const seen = this.seenOf(part, shard)
    const before = seen.applied
    if (index === before) return
    seen.applied = index
    if (index < before) {
      this.watcher.violation(`${host}: its copy of shard ${shard} goes back: ${index}, ${before}`)
    }
    const bytes = encodeSnapshot(state)
    const sum = crc32cOf(bytes, 0, bytes.length)
    const { states } = this.truth(shard)
    const known = states.get(index)
    if (known === undefined) states.set(index, sum)
    else if (known !== sum) {
      const where = `copy of shard ${shard} at ${index}`
      this.watcher.violation(`${host}: its ${where} is not what another broker had there`)
    }
  }

  private lookAtMember(part: Part, shard: number, node: NodeId, host: string): void {
    const view = part.view(shard)
    if (view === undefined) return
    const { term, role, members } = view
    const { leaders, led } = this.truth(shard)
    const newest = led.get(node) ?? 0
    if (term < newest) {
      const what = `term ${term} of shard ${shard}, after it led in ${newest}`
      this.watcher.violation(`${host} is in ${what}`)
    }
    if (role !== 'leader') return
    const leader = leaders.get(term)
    if (leader !== undefined && leader !== node) {
      this.watcher.violation(`${host} leads shard ${shard} in term ${term}, as another did`)
    }
    leaders.set(term, node)
    // One that stands alone leads before its term is on its disk: nobody else can have heard of it.
    if (members.voters.length > 1) led.set(node, term)
  }

  private lookAtLog(part: Part, shard: number, host: string): void {
    const seen = this.seenOf(part, shard)
    const entries = part.committed(shard, seen.looked + 1)
    for (const entry of entries) this.lookAtEntry(entry, shard, host)
    seen.looked = entries.at(-1)?.index ?? seen.looked
  }

  private lookAtEntry({ index, term, payload }: Entry, shard: number, host: string): void {
    const { entries, proposals } = this.truth(shard)
    const id = payload.kind === 'command' ? payload.id : undefined
    const told = `${payload.kind} ${id ?? ''} of term ${term}`
    const known = entries.get(index)
    if (known === undefined) entries.set(index, told)
    else if (known !== told) {
      const what = `shard ${shard} at ${index}: ${told}, and another ${known}`
      this.watcher.violation(`${host} takes for committed in ${what}`)
    }
    if (id === undefined) return
    const place = proposals.get(id) ?? index
    proposals.set(id, place)
    if (place !== index) {
      this.watcher.violation(
        `shard ${shard}: proposal ${id} was taken twice, at ${place} and ${index}`,
      )
    }
  }

  private seenOf(part: Part, shard: number): Seen {
    let all = this.seen.get(part)
    if (all === undefined) {
      all = Array.from({ length: part.count }, () => ({ applied: 0, looked: 0 }))
      this.seen.set(part, all)
    }
    return all[shard] as Seen
  }

  private truth(shard: number): Truth {
    while (this.truths.length <= shard) {
      this.truths = [...this.truths, emptyTruth()]
    }
    return this.truths[shard] as Truth
  }
}

function emptyTruth(): Truth {
  return {
    states: new Map(),
    entries: new Map(),
    proposals: new Map(),
    leaders: new Map(),
    led: new Map(),
  }
}
