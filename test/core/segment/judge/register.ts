// The shard's log as a linearizable register: commands one after the other through the real metadata machine, each view kept.
// Whoever is in office proposes. When another is elected, each proposal that is still on its way commits before the new one's
// own first entry, or never; who made it is not told.
//
//   proposals of term 3 ──x elected: term 4 ──── those that its log holds ── its own entry ──> it acts

import type { Command } from '../../../../src/core/metadata/commands.ts'
import { apply, emptyState } from '../../../../src/core/metadata/machine.ts'
import type { Segment, Topic } from '../../../../src/core/metadata/types.ts'
import type { ProposalOutcome } from '../../../../src/core/segment/care-types.ts'
import { TOPIC } from './place.ts'
import type { World } from './world.ts'

interface Proposal {
  readonly command: Command
  readonly told: (outcome: ProposalOutcome) => void
}

export class Register {
  term = 0
  private readonly views: (Topic | undefined)[] = [undefined]
  private readonly state = emptyState()
  private readonly world: World
  private flying = new Set<Proposal>()
  /** Of earlier terms, in the log of who leads now. */
  private inherited: Proposal[] = []

  constructor(world: World) {
    this.world = world
  }

  get index(): number {
    return this.views.length - 1
  }

  /** As of an index. */
  segments(index: number): readonly Segment[] {
    return this.views[index]?.ranges[0]?.segments ?? []
  }

  commit(command: Command): ProposalOutcome {
    const before = this.segments(this.index)
    const { result } = apply(this.state, command, this.index + 1)
    this.views.push(this.state.topics.get(TOPIC))
    this.world.committed(command, before, this.segments(this.index), result.ok)
    return result.ok ? 'applied' : 'refused'
  }

  /** `told` is called later, or never. */
  propose(term: number, command: Command, told: (outcome: ProposalOutcome) => void): void {
    const { world } = this
    if (term !== this.term) {
      world.later(world.profile.patienceMs, () => told('unknown'))
      return
    }
    const proposal = { command, told }
    this.flying.add(proposal)
    world.later(world.commitMs(), () => {
      if (!this.flying.delete(proposal)) return
      const outcome = this.commit(command)
      const lost = !world.calm && world.chance.below(10) === 0
      world.later(world.netMs(), () => told(lost ? 'unknown' : outcome))
    })
  }

  /** Another is elected. Answers its term. */
  elect(): number {
    const { chance, profile } = this.world
    const all = [...this.inherited, ...this.flying]
    for (const { told } of this.flying) {
      this.world.later(profile.patienceMs, () => told('unknown'))
    }
    this.flying = new Set()
    this.inherited = all.filter(() => chance.below(2) === 0)
    return ++this.term
  }

  /** The first entry of a term. False: there is another by now. */
  beginTerm(term: number): boolean {
    if (term !== this.term) return false
    for (const { command } of this.inherited) this.commit(command)
    this.inherited = []
    this.commit({ kind: 'AllocateProducerIds', count: 1 })
    return true
  }
}
