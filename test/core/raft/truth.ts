// What is true of a Raft group, whatever its members believe [I13]. It sees what machines write, apply and answer, and shares
// nothing with what it judges:
//
//   - a term has one leader; a member's term never goes back, and its vote in a term never changes
//   - an entry of an index and a term is one entry, and so is the one before it
//   - what one machine has applied at an index, all apply; states after it are equal
//   - what is applied lies on the disks of a quorum when the first machine applies it, and nobody who knows
//     of that machine's term drops it afterwards
//   - a commit index never goes back in one life; a member goes by the members that its log names last
//   - a read shows all that was acknowledged, and all that another read showed, before it was asked, in real time
//   - a proposal is answered by its own entry
//   - a learner is promoted only with all that its leader has committed; beside a lone voter, only with a second such learner

import type { Effects } from '../../../src/core/raft/types.ts'
import type { NodeId } from '../../../src/model/ids.ts'
import type { Entry, HardState, Members, Payload } from '../../../src/model/raft.ts'
import { afterEntry, type Disk, FIRST_STATE, type State, termOn } from './disk.ts'
import { describeMembers, name } from './story.ts'

interface Chosen {
  readonly term: number
  readonly id: string
  /** Of the first that applied it: a leader of this term or a later one has it. */
  readonly appliedInTerm: number
}

interface MembersSince {
  readonly index: number
  readonly members: Members
}

export class Truth {
  readonly violations: string[] = []
  /** Of every member that ever was; of one whose machine lost it, as it was then. */
  readonly disks: Map<NodeId, Disk> = new Map()
  readonly leaders: Map<number, NodeId> = new Map()
  /** All that the group ever answered is in the state after this index. */
  answeredUpTo = 0
  acknowledged = 0
  reads = 0
  conflicts = 0
  private readonly say: (line: string) => void
  private readonly promised = new Map<NodeId, HardState>()
  private readonly written = new Map<string, string>()
  private readonly membersWritten: MembersSince[]
  private readonly membersChosen: MembersSince[]
  private readonly chosen: (Chosen | undefined)[] = []
  private readonly states: (State | undefined)[] = [FIRST_STATE]
  private readonly appliedAt = new Map<string, number>()

  constructor(founders: Members, say: (line: string) => void) {
    this.say = say
    this.membersWritten = [{ index: 0, members: founders }]
    this.membersChosen = [{ index: 0, members: founders }]
  }

  violation(what: string): void {
    this.violations.push(what)
    this.say(`VIOLATION: ${what}`)
  }

  leads(member: NodeId, term: number): void {
    const known = this.leaders.get(term)
    if (known === undefined) {
      this.leaders.set(term, member)
      this.say(`${name(member)} leads in term ${term}`)
    } else if (known !== member) {
      this.violation(`${name(known)} and ${name(member)} lead in term ${term}`)
    }
  }

  // Disks.

  /** What is about to be written; the disk is as it was before. */
  writes(disk: Disk, effects: Effects): void {
    const { entries, snapshot, installed } = effects
    let before: number | 'covered' | undefined
    const first = entries[0]
    if (first !== undefined) {
      if (installed && snapshot?.index === first.index - 1) before = snapshot.term
      else before = first.index === 1 ? 0 : termOn(disk, first.index - 1)
    }
    for (const { index, term, payload } of entries) {
      if (before !== 'covered') {
        const what = `'${idOf(payload)}' after term ${before}`
        const key = `${index}/${term}`
        const known = this.written.get(key)
        if (known === undefined) {
          this.written.set(key, what)
          if (payload.kind === 'members') {
            this.membersWritten.push({ index, members: payload.members })
          }
        } else if (known !== what) {
          this.violation(
            `entry ${index} of term ${term} is ${known}, and on ${name(disk.member)} ${what}`,
          )
        }
      }
      before = term
    }
  }

  /** What has become durable; the disk is as it was before. */
  stores(disk: Disk, effects: Effects): void {
    const { hardState, installed, truncatedFrom, snapshot } = effects
    const { term, vote } = disk.hardState
    if (hardState !== undefined) {
      if (hardState.term < term)
        this.violation(`${name(disk.member)} goes back to ${hardState.term}`)
      else if (hardState.term === term && vote !== undefined && hardState.vote !== vote) {
        this.violation(`${name(disk.member)} votes twice in term ${term}`)
      }
    }
    const droppedFrom = installed ? (snapshot?.index ?? 0) + 1 : truncatedFrom
    if (droppedFrom === undefined) return
    for (const entry of disk.entries) {
      if (entry.index < droppedFrom) continue
      this.conflicts++
      const chosen = this.chosen[entry.index]
      // Who does not know of that term yet may still follow a leader of an older one, which is counted by nobody.
      if (chosen?.term === entry.term && disk.hardState.term >= chosen.appliedInTerm) {
        this.violation(`${name(disk.member)} drops entry ${entry.index}, which is committed`)
      }
    }
  }

  /** It is what it promises now, and what it starts with. */
  votes(member: NodeId, now: HardState): void {
    const before = this.promised.get(member) ?? now
    this.promised.set(member, now)
    if (now.term < before.term) {
      this.violation(`${name(member)} goes back from term ${before.term} to ${now.term}`)
    } else if (now.term === before.term && before.vote !== undefined && now.vote !== before.vote) {
      this.violation(`${name(member)} votes twice in term ${now.term}`)
    }
  }

  /** All that the member knows is durable: it goes by the members that its disk names last. */
  believes({ member, entries, snapshot, founders }: Disk, believed: Members): void {
    let named = snapshot?.members ?? founders
    for (const { payload } of entries) if (payload.kind === 'members') named = payload.members
    if (named === believed) return
    const [is, should] = [describeMembers(believed), describeMembers(named)]
    if (is !== should)
      this.violation(`${name(member)} goes by members ${is}, its disk says ${should}`)
  }

  // State machines.

  /** The state after it, which the machine must have come to. */
  applies(member: NodeId, memberTerm: number, entry: Entry, after: State): void {
    const { index, term, payload } = entry
    const id = idOf(payload)
    const chosen = this.chosen[index]
    if (chosen === undefined) this.choose(member, memberTerm, entry, id)
    else if (chosen.id !== id || chosen.term !== term) {
      const other = `'${chosen.id}' of term ${chosen.term}`
      this.violation(
        `${name(member)} applies '${id}' of term ${term} at ${index}, another ${other}`,
      )
    }
    this.reaches(member, after)
  }

  /** By a snapshot, or entry by entry. */
  reaches(member: NodeId, state: State | undefined): void {
    const known = this.states[state?.index ?? -1]
    if (state === undefined || known?.hash !== state.hash || known.commands !== state.commands) {
      this.violation(`${name(member)} comes to a state that nobody else has at ${state?.index}`)
    }
  }

  private choose(member: NodeId, memberTerm: number, entry: Entry, id: string): void {
    const { index, term, payload } = entry
    const before = this.states[index - 1]
    if (before === undefined) return this.violation(`${name(member)} applies ${index} too early`)
    this.chosen[index] = { term, id, appliedInTerm: memberTerm }
    this.states[index] = afterEntry(before, entry)
    if (payload.kind === 'members') this.membersChosen.push({ index, members: payload.members })
    if (payload.kind === 'command') {
      const at = this.appliedAt.get(id)
      if (at !== undefined) this.violation(`${id} is applied at ${at} and ${index}`)
      this.appliedAt.set(id, index)
    }
    if (!this.isOnQuorum(index, term)) {
      this.violation(`${name(member)} applies entry ${index} of term ${term}, which no quorum has`)
    }
  }

  /** A leader counts by the members that it has, which may be newer than those at the index. */
  private isOnQuorum(index: number, term: number): boolean {
    const inForce = this.membersChosen.findLast((since) => since.index <= index)?.index ?? 0
    return this.membersWritten.some(({ index: since, members: { voters } }) => {
      if (since < inForce) return false
      let holders = 0
      for (const voter of voters) {
        const there = termOn(this.disks.get(voter) as Disk, index)
        if (there === 'covered' || there === term) holders++
      }
      return holders > voters.length / 2
    })
  }

  /** Members that count for somebody now, or may come to. */
  *membersInSight(): Generator<Members> {
    const since = this.membersChosen.at(-1)?.index ?? 0
    for (const { index, members } of this.membersWritten) if (index >= since) yield members
  }

  // Clients and operators.

  answers(id: string, entry: Entry): void {
    if (this.chosen[entry.index]?.id !== id) {
      this.violation(`${id} is answered by the entry of '${idOf(entry.payload)}'`)
    }
    this.acknowledged++
    this.answeredUpTo = Math.max(this.answeredUpTo, entry.index)
  }

  /** Whoever asked from elsewhere has a copy of its own and waits until that is at `index`, no longer. */
  answersRead(member: NodeId, id: string, index: number, answeredBefore: number): void {
    if (index < answeredBefore) {
      const what = `with the state after ${index}; ${answeredBefore} had been answered`
      this.violation(`${name(member)} answers read ${id} ${what} before it was asked`)
    }
    this.reads++
  }

  shows(state: State): void {
    this.answeredUpTo = Math.max(this.answeredUpTo, state.index)
  }

  /** The leader takes the change; it has committed entries up to `commit`, and the members are those before. */
  promotes(leader: NodeId, members: Members, learner: NodeId, commit: number): void {
    const hasAll = (node: NodeId): boolean => {
      const disk = this.disks.get(node)
      return disk !== undefined && (commit === 0 || termOn(disk, commit) !== undefined)
    }
    if (!hasAll(learner)) {
      this.violation(`${name(leader)} promotes ${name(learner)}, which lacks entry ${commit}`)
    } else if (members.voters.length === 1) {
      const second = members.learners.some((other) => other !== learner && hasAll(other))
      if (!second) this.violation(`${name(leader)} promotes ${name(learner)} without a second`)
    }
  }
}

function idOf(payload: Payload): string {
  return payload.kind === 'empty' ? '' : payload.id
}
