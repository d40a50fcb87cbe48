// The next step that brings a shard's group to the members that it should have, or none. One step at a time, each of which
// keeps a quorum of members that live; the next is decided when this one has committed.
//
//   too few      a broker that should hold it becomes a learner, catches up, is promoted
//   too many     when all who should vote do: whoever should not is removed, the dead first; a leader hands over first.
//                One that lives stays while another is dead, if the loss of one more would be too much without it
//   then         leadership goes to the one that should have it
//
// A voter that is dead and that nobody takes the place of stays: without it the group would need the others no less, and when
// it comes back it is at home. Only who has left for good is removed without a successor.

import type { NodeId } from '../../model/ids.ts'
import type { Members } from '../../model/raft.ts'

export interface ShardFacts {
  readonly members: Members
  /** This broker: it leads. */
  readonly self: NodeId
  /** Who should hold the shard, the first to lead it. */
  readonly wanted: readonly NodeId[]
  /** How many should hold it, if there were enough brokers. */
  readonly copies: number
  alive(node: NodeId): boolean
  /** It was removed from the cluster, or is being drained: it will hold nothing. */
  gone(node: NodeId): boolean
}

export type ShardStep =
  | { readonly kind: 'add-learner' | 'promote' | 'remove'; readonly node: NodeId }
  | { readonly kind: 'hand-over'; readonly node: NodeId }

/** A group of one grows by two at once, see Raft.change. */
const LEARNERS_MAX = 2

/** The steps that make sense now, the best first: the first that Raft takes is the one. */
export function shardSteps(facts: ShardFacts): readonly ShardStep[] {
  const { members, wanted } = facts
  const { voters, learners } = members
  const steps: ShardStep[] = []
  for (const node of learners) {
    if (!wanted.includes(node)) steps.push({ kind: 'remove', node })
    else if (facts.alive(node)) steps.push({ kind: 'promote', node })
  }
  if (learners.length < LEARNERS_MAX) {
    for (const node of wanted) {
      if (isNew(members, node) && facts.alive(node)) steps.push({ kind: 'add-learner', node })
    }
  }
  if (wanted.every((node) => voters.includes(node))) steps.push(...removals(facts))
  if (steps.length === 0) steps.push(...handOvers(facts))
  return steps
}

function isNew({ voters, learners }: Members, node: NodeId): boolean {
  return !voters.includes(node) && !learners.includes(node)
}

function removals(facts: ShardFacts): readonly ShardStep[] {
  const { members, wanted, copies, self } = facts
  const surplus = members.voters.filter((node) => !wanted.includes(node))
  const complete = wanted.length >= copies
  const removable = surplus.filter((node) => complete || facts.gone(node))
  removable.sort((a, b) => Number(facts.alive(a)) - Number(facts.alive(b)))
  const steps: ShardStep[] = []
  for (const node of removable) {
    if (!affords(facts, node)) continue
    if (node !== self) steps.push({ kind: 'remove', node })
    else steps.push(...handOvers(facts))
  }
  return steps
}

/** Those who are left can go on, and can afford to lose one more if they could before: it may be lost already, and nobody knows. */
function affords(facts: ShardFacts, removed: NodeId): boolean {
  const { voters } = facts.members
  const left = voters.filter((node) => node !== removed)
  const spare = spareOf(facts, left)
  if (spare < 0) return false
  // An operator waits for those who are gone; and where all live none is lost yet.
  if (facts.gone(removed) || left.every((node) => facts.alive(node))) return true
  return spare >= Math.min(1, spareOf(facts, voters))
}

/** How many may be lost before there is no quorum. */
function spareOf(facts: ShardFacts, voters: readonly NodeId[]): number {
  const living = voters.filter((node) => facts.alive(node)).length
  return living - (Math.floor(voters.length / 2) + 1)
}

function handOvers(facts: ShardFacts): readonly ShardStep[] {
  const { members, wanted, self } = facts
  const leaders = wanted.filter((node) => members.voters.includes(node) && facts.alive(node))
  const [best] = leaders
  if (best === undefined || best === self) return []
  return [{ kind: 'hand-over', node: best }]
}
