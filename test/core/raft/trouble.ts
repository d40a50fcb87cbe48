// What goes wrong in a group, and what operators do meanwhile. Always so that a quorum of every set of members in sight still
// has its disks: what is lost with more is lost.

import type { Prng } from '../../../src/base/prng.ts'
import type { MembersChange } from '../../../src/core/raft/types.ts'
import type { NodeId } from '../../../src/model/ids.ts'
import type { Members } from '../../../src/model/raft.ts'
import type { Group } from './cluster.ts'
import { NOBODY } from './disk.ts'
import type { Machine } from './driver.ts'
import { name } from './story.ts'

/** Around `ms`, mostly less. */
export function spread(chance: Prng, ms: number): number {
  return ms * chance.float() * (0.5 + 1.5 * chance.float())
}

export function makeTrouble(group: Group): void {
  const { chance, profile, clock } = group
  const kind = profile.troubles[chance.below(profile.troubles.length)]
  const { electionTimeoutMs } = profile
  const machine = group.anyMachine()
  const leader = anyOf(chance, group.believers())
  switch (kind) {
    case 'kill':
      return killFor(group, machine, comesBack(group))
    case 'kill-leader':
      if (leader !== undefined) killFor(group, leader, comesBack(group))
      return
    case 'isolate-leader':
      if (leader !== undefined) split(group, [leader])
      return
    case 'halve':
      return halve(group, leader ?? machine)
    case 'cut-link':
      return cutPair(group, machine, group.anyMachine(), true)
    case 'one-way':
      return cutPair(group, machine, group.anyMachine(), false)
    case 'pause':
      return (chance.below(2) === 0 ? machine : (leader ?? machine)).pause(
        electionTimeoutMs * 3 * chance.float(),
      )
    case 'power-loss': {
      group.say('all lose power')
      const at = chance.below(2) === 0 ? 0 : electionTimeoutMs * chance.float()
      for (const one of group.machines) killFor(group, one, at * (0.5 + chance.float()))
      return
    }
    case 'wipe':
      return wipe(group, machine, leader)
    case 'members':
      return burst(group)
    case 'hand-over':
    case 'hand-over-unheard':
      if (leader === undefined) return
      handOver(group, leader)
      if (kind === 'hand-over') return
      for (const one of group.machines) group.cut.add(link(one, leader))
      group.say(`${name(leader.member)} hears nobody`)
      return
    case 'stick-disk':
      machine.stuckUntil = clock.monotonic() + electionTimeoutMs * 4 * chance.float()
      return
    case 'lose-promises':
      return losePromises(group, leader)
    case 'ambush':
      if (leader !== undefined && leader !== machine) ambush(group, leader, machine)
      return
    case 'rivals':
      if (leader !== undefined) rivals(group, leader)
      return
    case 'heal':
    case undefined:
      group.cut.clear()
      group.say('all links are whole')
  }
}

/** Somebody uses an election at once. */
export function seize(group: Group, leader: Machine): void {
  const { chance, profile, calm, clock } = group
  if (calm) return
  const soon = (): void => {
    clock.after(0, () => burst(group))
  }
  switch (chance.below(6)) {
    case 0:
      return soon()
    case 1:
      soon()
      return halve(group, leader)
    case 5:
      soon()
      return split(group, [leader])
    case 2:
      return split(group, [leader])
    case 3:
      return halve(group, leader)
    case 4:
      return killFor(group, leader, profile.electionTimeoutMs * 2 * chance.float())
  }
}

// Processes and disks.

function comesBack({ chance, profile }: Group): number {
  return chance.below(3) === 0 ? 0 : profile.electionTimeoutMs * 3 * chance.float()
}

function killFor(group: Group, machine: Machine, ms: number): void {
  machine.kill()
  group.startAfter(machine, ms)
}

/** Followers die at once, with what they had not synced, and come back at once; the leader is cut off from them. */
function losePromises(group: Group, leader: Machine | undefined): void {
  const { chance } = group
  for (const machine of group.machines) {
    if (machine !== leader && chance.below(2) === 0) killFor(group, machine, chance.float() * 2)
  }
  if (leader !== undefined) split(group, [leader])
}

/**
 * The leader's lease against an election: one member does not hear it any more, but has all that it has, for nobody
 * proposes; as it asks another for its vote, that one dies and is back at once, and nobody hears the leader.
 */
function ambush(group: Group, leader: Machine, other: Machine): void {
  const { chance, clock, profile } = group
  const until = clock.monotonic() + profile.electionTimeoutMs * 4
  group.cut.clear()
  group.idle = { leader, until }
  clock.after(profile.electionTimeoutMs * 0.5, () => {
    if (!group.calm) cutPair(group, leader, other, true)
  })
  group.onVoteAsked = (from, to) => {
    if (clock.monotonic() > until) group.onVoteAsked = undefined
    if (from !== other || to === leader) return
    group.onVoteAsked = undefined
    split(group, [leader])
    if (chance.below(3) === 0) return
    to.kill()
    to.start()
  }
}

function wipe(group: Group, machine: Machine, leader: Machine | undefined): void {
  if (!canSpare(group, machine.member)) return
  machine.loseDisk(group.newMember())
  if (leader !== undefined && leader !== machine && group.chance.below(2) === 0) {
    split(group, [leader])
  }
  machine.start()
}

/** Whether a quorum of all members in sight is left without it. */
function canSpare(group: Group, gone: NodeId, ...more: readonly NodeId[]): boolean {
  const lost = (voter: NodeId): boolean =>
    voter === gone || more.includes(voter) || group.machineOf(voter) === undefined
  // What a leader has in memory only is not written yet.
  const inMemory = group.machines.map(({ raft }) => raft?.members ?? NOBODY)
  return [...group.truth.membersInSight(), ...inMemory].every(
    ({ voters }) => voters.length === 0 || isSafe(voters, lost),
  )
}

function isSafe(voters: readonly NodeId[], lost: (voter: NodeId) => boolean): boolean {
  return voters.filter((voter) => !lost(voter)).length > voters.length / 2
}

// Links.

function link(from: Machine, to: Machine): string {
  return `${from.member}>${to.member}`
}

function split(group: Group, side: readonly Machine[]): void {
  group.cut.clear()
  for (const one of side) {
    for (const other of group.machines) {
      if (side.includes(other)) continue
      group.cut.add(link(one, other))
      group.cut.add(link(other, one))
    }
  }
  group.say(`cut off: ${side.map(({ member }) => name(member)).join(' ')}`)
}

/** With some others on its side. */
function halve(group: Group, machine: Machine): void {
  const { chance, machines } = group
  const others = machines.filter((one) => one !== machine)
  const side = [machine]
  const count = 1 + chance.below(2)
  for (let i = 0; i < count; i++) {
    const [one] = others.splice(chance.below(others.length), 1)
    if (one !== undefined) side.push(one)
  }
  split(group, side)
}

function cutPair(group: Group, from: Machine, to: Machine, both: boolean): void {
  if (from === to) return
  group.cut.add(link(from, to))
  if (both) group.cut.add(link(to, from))
  group.say(`${name(to.member)} does not hear ${name(from.member)}${both ? ', nor it this' : ''}`)
}

// Operators.

function handOver(group: Group, leader: Machine): void {
  const voters = leader.raft?.members.voters ?? []
  const to = anyOf(group.chance, voters)
  if (to !== undefined) leader.handOver(to)
}

/** Several changes one after another, to everybody who believes that it leads. */
function burst(group: Group): void {
  const { chance } = group
  for (const believer of group.believers()) {
    const count = 1 + chance.below(3)
    for (let i = 0; i < count; i++) {
      const { raft } = believer
      const change = raft === undefined ? undefined : changeOf(group, raft.members)
      if (change !== undefined) believer.change(group.nextId(), change)
    }
  }
}

/**
 * Two changes of the same members: a leader that nobody hears makes one, and its successor, which only half of the others
 * hear from the first, another. With an even number of voters the two sets may have quorums that share nobody.
 */
function rivals(group: Group, leader: Machine): void {
  const { clock, profile, calm } = group
  const { voters } = leader.raft?.members ?? NOBODY
  if (calm || voters.length % 2 > 0 || voters.length < 4) return
  group.scriptUntil = clock.monotonic() + profile.electionTimeoutMs * 8
  split(group, [leader])
  removeOther(group, leader)
  group.onElected = (successor) => {
    const [, ...rest] = group.machines.filter(
      (machine) => machine !== leader && machine !== successor,
    )
    if (successor === leader) return
    split(group, [leader, ...rest])
    clock.after(0, () => removeOther(group, successor, leader.member))
  }
}

function removeOther(group: Group, from: Machine, which?: NodeId): void {
  const { voters } = from.raft?.members ?? NOBODY
  const node =
    which ??
    anyOf(
      group.chance,
      voters.filter((voter) => voter !== from.member),
    )
  const lost = (voter: NodeId): boolean => voter === node || group.machineOf(voter) === undefined
  if (node === undefined || !isSafe(voters, lost)) return
  from.change(group.nextId(), { kind: 'remove', node })
}

function changeOf(group: Group, { voters, learners }: Members): MembersChange | undefined {
  const { chance } = group
  const lost = (node: NodeId): boolean => group.machineOf(node) === undefined
  const gone = [...voters, ...learners].find(lost)
  if (gone !== undefined && chance.below(2) === 0) return { kind: 'remove', node: gone }
  switch (chance.below(3)) {
    case 0: {
      return { kind: 'add-learner', node: group.anyMachine().member }
    }
    case 1: {
      const node = anyOf(chance, learners)
      return node === undefined || lost(node) ? undefined : { kind: 'promote', node }
    }
    default: {
      const node = anyOf(chance, [...voters, ...learners])
      if (node === undefined) return undefined
      const left = voters.filter((voter) => voter !== node)
      return isSafe(left, lost) ? { kind: 'remove', node } : undefined
    }
  }
}

// Peace.

/** Ends the trouble, but for one fault that stays. Machines that nobody is sure to hear from are given back. */
export function makePeace(group: Group): ReadonlySet<Machine> {
  const { profile, chance, machines } = group
  group.cut.clear()
  group.say(`the trouble ends: ${profile.peace}`)
  if (profile.peace === 'dead-minority') {
    buryAfterPromotion(group)
    return new Set()
  }
  for (const machine of machines) machine.start()
  const one = group.anyMachine()
  const other = group.anyMachine()
  if (profile.peace === 'whole' || !canSpare(group, one.member)) return new Set()
  if (profile.peace === 'cut-pair') {
    cutPair(group, one, other, chance.below(2) === 0)
    return new Set()
  }
  for (const from of machines) if (from !== one) group.cut.add(link(from, one))
  group.say(`${name(one.member)} hears nobody`)
  return new Set([one])
}

/** As many as can be spared never come back, the leader first; a learner that was just promoted does not know of it. */
function buryAfterPromotion(group: Group): void {
  const { chance, clock, profile, machines } = group
  const [leader] = group.believers()
  const learner = anyOf(chance, leader?.raft?.members.learners ?? [])
  const unknowing = learner === undefined ? undefined : group.machineOf(learner)
  if (leader !== undefined && unknowing !== undefined) {
    for (const machine of machines) group.cut.add(link(machine, unknowing))
    leader.change(group.nextId(), { kind: 'promote', node: unknowing.member })
  }
  clock.after(profile.electionTimeoutMs / 2, () => {
    group.cut.clear()
    const dead: NodeId[] = []
    const others = machines.filter((machine) => machine !== leader && chance.below(2) === 0)
    for (const machine of leader === undefined ? others : [leader, ...others]) {
      if (!canSpare(group, machine.member, ...dead)) continue
      machine.kill()
      dead.push(machine.member)
    }
    for (const machine of machines) if (!dead.includes(machine.member)) machine.start()
  })
}

function anyOf<T>(chance: Prng, things: readonly T[]): T | undefined {
  return things[chance.below(things.length)]
}
