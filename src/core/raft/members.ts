// Who counts, and the steps from one set of members to the next: one node at a time, so that any quorum before a step and
// any after it have a member in common.

import type { NodeId } from '../../model/ids.ts'
import type { Members } from '../../model/raft.ts'
import type { MembersChange } from './types.ts'

export function isVoter(members: Members, node: NodeId): boolean {
  return members.voters.includes(node)
}

export function isMember(members: Members, node: NodeId): boolean {
  return members.voters.includes(node) || members.learners.includes(node)
}

function quorum(members: Members): number {
  return Math.floor(members.voters.length / 2) + 1
}

/** The greatest value that a quorum of the voters has reached. */
export function quorumValue(members: Members, valueOf: (voter: NodeId) => number): number {
  const values = members.voters.map(valueOf).sort((a, b) => b - a)
  return values[quorum(members) - 1] ?? 0
}

export function hasQuorum(members: Members, holds: (voter: NodeId) => boolean): boolean {
  return members.voters.filter(holds).length >= quorum(members)
}

/** Undefined: the node is not what the change needs it to be, or nobody would be left to vote. */
export function changed({ voters, learners }: Members, change: MembersChange): Members | undefined {
  const { kind, node } = change
  const others = (nodes: readonly NodeId[]): NodeId[] => nodes.filter((other) => other !== node)
  switch (kind) {
    case 'add-learner':
      if (voters.includes(node) || learners.includes(node)) return undefined
      return { voters, learners: [...learners, node] }
    case 'promote':
      if (!learners.includes(node)) return undefined
      return { voters: [...voters, node], learners: others(learners) }
    case 'remove': {
      if (!voters.includes(node) && !learners.includes(node)) return undefined
      const left = others(voters)
      return left.length === 0 ? undefined : { voters: left, learners: others(learners) }
    }
  }
}
