// What must be true of the brokers' copies of the metadata, looked at from outside while they work. Clients see a copy only
// where they ask; here each is held against every other.
//
//   same place in a shard's log      the same state, to the byte, on every broker and for ever
//   one term of a shard              one leader
//   one start of a broker            its copy never goes back
//   a member that led among others   never is in an older term again, whatever its machine went through
//
// All of it is read where it lies: nothing is asked of brokers, so looking changes no run.

import { crc32cOf } from '../../base/checksum.ts'
import { encodeSnapshot } from '../../core/metadata/snapshot.ts'
import type { NodeId } from '../../model/ids.ts'
import type { Machine, Watcher } from '../machine.ts'

type Part = Pick<NonNullable<Machine['shards']>, 'count' | 'copyOf' | 'view'>

/** What is looked at of a machine. */
export interface Looked extends Pick<Machine, 'host' | 'nodeId'> {
  readonly shards: Part | undefined
}

/** Of one shard. */
interface Truth {
  /** Checksums of states by applied index. */
  readonly states: Map<number, number>
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
  private seen = new WeakMap<Part, number[]>()

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
        this.lookAtMember(shards, shard, nodeId, host)
      }
    }
  }

  private lookAtCopy(part: Part, shard: number, host: string): void {
    const { state } = part.copyOf(shard)
    const index = state.appliedIndex
    const reached = this.reached(part)
    const before = reached[shard] ?? 0
    if (index === before) return
    reached[shard] = index
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

  private reached(part: Part): number[] {
    let reached = this.seen.get(part)
    if (reached === undefined) {
      reached = []
      this.seen.set(part, reached)
    }
    return reached
  }

  private truth(shard: number): Truth {
    while (this.truths.length <= shard) {
      this.truths = [...this.truths, { states: new Map(), leaders: new Map(), led: new Map() }]
    }
    return this.truths[shard] as Truth
  }
}
