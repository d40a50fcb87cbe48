// A group under a keeper that takes one allowed step after another, while brokers die, come back and are drained: it never
// loses its quorum by a step, and comes to what is wanted.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type Prng, prng } from '../../../src/base/prng.ts'
import { type ShardStep, shardSteps } from '../../../src/core/placement/shard-step.ts'
import { changed } from '../../../src/core/raft/members.ts'
import { type NodeId, nodeId } from '../../../src/model/ids.ts'
import type { Members } from '../../../src/model/raft.ts'
import { shardPlan } from '../../../src/model/ring.ts'

const COPIES = 3
const IDS: readonly NodeId[] = Array.from({ length: 6 }, (_, i) => nodeId(`${i + 1}`.repeat(32)))

interface World {
  members: Members
  leader: NodeId
  readonly alive: Set<NodeId>
  readonly gone: Set<NodeId>
}

function wanted({ alive, gone }: World): readonly NodeId[] {
  const nodes = IDS.filter((id) => alive.has(id) && !gone.has(id))
  const ring = nodes.map((node) => ({ node, hostLabel: node, rackLabel: '' }))
  return shardPlan(ring, 1, COPIES, 16)[0] ?? []
}

function steps(world: World): readonly ShardStep[] {
  return shardSteps({
    members: world.members,
    self: world.leader,
    wanted: wanted(world),
    copies: COPIES,
    alive: (node) => world.alive.has(node),
    gone: (node) => world.gone.has(node),
  })
}

function living({ members, alive }: World): number {
  return members.voters.filter((node) => alive.has(node)).length
}

function hasQuorum(world: World): boolean {
  return living(world) > world.members.voters.length / 2
}

function take(world: World, step: ShardStep): void {
  if (step.kind === 'hand-over') {
    assert.ok(world.members.voters.includes(step.node) && world.alive.has(step.node))
    world.leader = step.node
    return
  }
  const next = changed(world.members, step)
  assert.ok(next !== undefined, `${step.kind} ${step.node} makes sense`)
  assert.ok(step.kind !== 'remove' || step.node !== world.leader, 'a leader hands over first')
  const before = spare(world)
  world.members = next
  assert.ok(hasQuorum(world), `${step.kind} leaves a quorum`)
  const spares = step.kind !== 'remove' || world.gone.has(step.node) || allLive(world)
  assert.ok(spares || spare(world) >= Math.min(1, before), `${step.kind} leaves one to lose`)
}

function spare(world: World): number {
  return living(world) - Math.floor(world.members.voters.length / 2) - 1
}

function allLive(world: World): boolean {
  return living(world) === world.members.voters.length
}

function trouble(world: World, chance: Prng): void {
  const node = IDS[chance.below(IDS.length)] as NodeId
  const kind = chance.below(6)
  if (kind < 2) world.alive.add(node)
  else if (kind < 4) {
    const dies = world.alive.delete(node)
    // More than a minority at once is not a keeper's to mend.
    if (dies && !hasQuorum(world)) world.alive.add(node)
  } else if (kind === 4 && world.gone.size < 2) world.gone.add(node)
  else world.gone.delete(node)
  if (!world.alive.has(world.leader)) {
    world.leader = world.members.voters.find((voter) => world.alive.has(voter)) as NodeId
  }
}

test('no step leaves less than a quorum alive, and the steps end at the members that are wanted', () => {
  for (let seed = 1; seed <= 400; seed++) {
    const chance = prng(seed)
    const [first] = IDS as [NodeId]
    const world: World = {
      members: { voters: [first], learners: [] },
      leader: first,
      alive: new Set(IDS.slice(0, 1 + chance.below(6))),
      gone: new Set(),
    }
    for (let i = 0; i < 60; i++) {
      if (chance.below(4) === 0) trouble(world, chance)
      const possible = steps(world)
      if (possible.length > 0) take(world, possible[chance.below(possible.length)] as ShardStep)
    }
    for (let i = 0; i < 30; i++) {
      const [best] = steps(world)
      if (best === undefined) break
      take(world, best)
    }
    assert.deepEqual(steps(world), [], `seed ${seed} comes to an end`)
    const want = wanted(world)
    for (const node of want)
      assert.ok(world.members.voters.includes(node), `seed ${seed}: a holder votes`)
    if (want.length === COPIES) {
      assert.equal(world.members.voters.length, COPIES, `seed ${seed}`)
      assert.equal(world.leader, want[0])
    }
    for (const node of world.members.voters) {
      const left = world.gone.has(node)
      assert.ok(
        !left ||
          !hasQuorum({
            ...world,
            members: { voters: world.members.voters.filter((v) => v !== node), learners: [] },
          }),
        `seed ${seed}: who is gone votes no more`,
      )
    }
  }
})

test('one that lives is not removed while a dead one keeps its place and another loss would be too much', () => {
  const [a, b, c, d, e] = IDS as [NodeId, NodeId, NodeId, NodeId, NodeId]
  const members = { voters: [a, b, c, d, e], learners: [] }
  const facts = { members, self: a, copies: COPIES, gone: () => false }
  const alive = (node: NodeId): boolean => node !== c
  assert.deepEqual(shardSteps({ ...facts, wanted: [a, b, c], alive }), [])
  assert.deepEqual(shardSteps({ ...facts, wanted: [a, b, d], alive })[0], {
    kind: 'remove',
    node: c,
  })
  assert.deepEqual(shardSteps({ ...facts, wanted: [a, b, c], alive: () => true })[0], {
    kind: 'remove',
    node: d,
  })
})

test('a dead voter stays while nobody can take its place, and goes when somebody has', () => {
  const [a, b, c, d] = IDS as [NodeId, NodeId, NodeId, NodeId]
  const members = { voters: [a, b, c], learners: [] }
  const alive = new Set([a, b])
  const facts = { members, self: a, copies: COPIES, gone: () => false }
  const isAlive = (node: NodeId): boolean => alive.has(node)
  assert.deepEqual(shardSteps({ ...facts, wanted: [a, b], alive: isAlive }), [])
  alive.add(d)
  assert.deepEqual(shardSteps({ ...facts, wanted: [a, b, d], alive: isAlive }), [
    { kind: 'add-learner', node: d },
  ])
  const four = { voters: [a, b, c, d], learners: [] }
  assert.deepEqual(shardSteps({ ...facts, members: four, wanted: [a, b, d], alive: isAlive }), [
    { kind: 'remove', node: c },
  ])
})
