import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { SEGMENT_TIMING } from '../../../src/core/segment/types.ts'
import type { TopicId } from '../../../src/model/ids.ts'
import type { SegmentKey } from '../../../src/model/segment-key.ts'
import { node } from '../../core/metadata/support.ts'
import { World } from './world.ts'

const { leaseGraceMs, leaseTtlMs, fenceWaitMs } = SEGMENT_TIMING

function keyOf(world: World, topicId: TopicId): SegmentKey {
  return { topicId, range: 0, segment: world.open({ topicId })?.segment ?? -1 }
}

function leased(world: World, number: number, topicId: TopicId): boolean {
  return world.machine(number).control?.leased(keyOf(world, topicId)) ?? false
}

describe('a segment leader', () => {
  it('is confirmed as soon as it leads, and for as long as its coordinator hears it', async () => {
    const world = new World(2)
    await world.run(20)
    const topicId = world.create('a', [2])
    assert.equal(leased(world, 2, topicId), false)
    await world.run(10)
    assert.equal(leased(world, 2, topicId), true)
    assert.equal(leased(world, 1, topicId), false)
    await world.run(5000)
    assert.equal(leased(world, 2, topicId), true)
    assert.deepEqual(world.rolls, [])
    world.cut.add(node(2))
    await world.run(leaseTtlMs)
    assert.equal(leased(world, 2, topicId), false)
  })

  it('that ends its segment has a successor in a moment', async () => {
    const world = new World(1)
    const topicId = world.create('a', [1])
    const machine = world.machine(1)
    machine.entries.set(`${topicId}/0/1`, 7)
    await world.run(500)
    machine.giveEnd(keyOf(world, topicId), 0, 'full')
    await world.run(10)
    assert.equal(world.rolls.length, 1)
    assert.deepEqual(world.open({ topicId })?.firstOffsets, [7, 7])
  })

  it('whose disk is stuck is not confirmed', async () => {
    const world = new World(2)
    const topicId = world.create('a', [2, 1])
    await world.run(500)
    world.machine(2).oldestSyncMs = SEGMENT_TIMING.replicaAckTimeoutMs + 1
    await world.run(leaseTtlMs)
    assert.equal(leased(world, 2, topicId), false)
    await world.run(1000)
    assert.deepEqual(world.replicasOf(topicId)[0], 1)
  })
})

describe('a broker whose disk is full', () => {
  it('gives its open segments to others that have room, gets nothing, and takes part again when it has room', async () => {
    const world = new World(3)
    const led = world.create('led', [2, 1, 3], 2)
    const followed = world.create('followed', [1, 3, 2], 2)
    await world.run(500)
    const machine = world.machine(2)
    machine.diskFull = true
    await world.run(1000)
    for (const topicId of [led, followed]) {
      assert.deepEqual(new Set(world.replicasOf(topicId)), new Set([1, 3]))
    }
    const rolls = world.rolls.length
    await world.run(20_000)
    assert.equal(world.rolls.length, rolls, 'nothing moves while it is full')
    const said = (number: number): boolean | undefined =>
      world.machine(1).control?.diskFull(node(number))
    assert.deepEqual([1, 2, 3].map(said), [false, true, false])
    machine.diskFull = false
    await world.run(10_000)
    assert.equal(said(2), false)
    for (const topicId of [led, followed]) {
      assert.deepEqual(new Set(world.replicasOf(topicId)), new Set([1, 2, 3]))
    }
  })

  it('counts for the sealed segments that it holds: who leaves stays until whoever gets its part has it', async () => {
    const world = new World(4)
    const topicId = world.create('a', [1, 2, 3], 2)
    await world.run(500)
    world.machine(1).giveEnd(keyOf(world, topicId), 0, 'full')
    await world.run(3000)
    assert.equal(world.sealed(topicId)?.digest, 'd')
    world.machine(2).diskFull = true
    await world.run(500)
    world.machine(4).lacks.add(`${topicId}/0/1`)
    world.command({ kind: 'SetNodeRole', nodeId: node(3), role: 'draining' })
    await world.run(20_000)
    assert.deepEqual(world.sealed(topicId)?.replicas.map(Number), [1, 2, 3, 4])
    world.machine(4).lacks.clear()
    await world.run(20_000)
    assert.deepEqual(world.sealed(topicId)?.replicas.map(Number), [1, 2, 4])
  })

  it('keeps its open segments where the others are too few for them, or full as well', async () => {
    const world = new World(3)
    world.create('two', [1, 2, 3], 3)
    await world.run(500)
    world.machine(2).diskFull = true
    await world.run(5000)
    assert.deepEqual(world.rolls, [])
    const all = world.create('all', [1, 2, 3], 1)
    for (const machine of world.machines) machine.diskFull = true
    await world.run(200)
    const [first] = world.replicasOf(all)
    await world.run(5000)
    const rolls = world.rolls.length
    await world.run(20_000)
    assert.equal(world.rolls.length, rolls, 'nothing moves while all are full')
    assert.equal(world.replicasOf(all)[0], first)
  })
})

describe('a coordinator', () => {
  it('that may have a successor confirms nothing', async () => {
    const world = new World(2)
    const topicId = world.create('a', [1])
    await world.run(500)
    world.unsure.add(node(1))
    await world.run(leaseTtlMs)
    assert.equal(leased(world, 1, topicId), false)
  })

  it('gives a new leader time to ask, whenever it was elected itself', async () => {
    const world = new World(2)
    await world.run(leaseGraceMs * 2)
    world.cut.add(node(2))
    world.create('a', [2, 1])
    await world.run(leaseTtlMs)
    world.cut.delete(node(2))
    await world.run(1000)
    assert.deepEqual(world.fenced(1), [])
  })

  it('confirms no lease of a segment that it has fenced', async () => {
    const world = new World(2)
    const topicId = world.create('a', [2])
    await world.run(500)
    world.cut.add(node(2))
    await world.run(leaseGraceMs + 300)
    assert.deepEqual(new Set(world.fenced(1)), new Set([`${topicId}/0/1`]))
    world.cut.delete(node(2))
    const fenced = keyOf(world, topicId)
    while (world.rolls.length === 0) {
      assert.equal(world.machine(2).control?.leased(fenced), false)
      await world.run(1)
    }
  })

  it('that was stopped for a while takes nobody for silent who asked meanwhile', async () => {
    const world = new World(3)
    world.create('a', [2, 3])
    await world.run(500)
    const machine = world.machine(1)
    machine.paused = true
    await world.run(leaseGraceMs * 2)
    world.resume(machine)
    await world.run(1000)
    assert.deepEqual(world.fenced(1), [])
  })

  it('that is deposed forgets what it was at', async () => {
    const world = new World(3)
    world.create('a', [2])
    await world.run(500)
    world.cut.add(node(2))
    await world.run(leaseGraceMs + 300)
    for (const shard of world.leaders.keys()) world.leaders[shard] = { node: node(3), term: 2 }
    await world.run(100)
    const before = world.fenced(1).length
    await world.run(leaseGraceMs + 3000)
    assert.equal(world.fenced(1).length, before)
    assert.ok(world.fenced(3).length > 0)
  })

  it('sees to no more at a time than it can', async () => {
    const world = new World(2)
    for (let i = 0; i < 300; i++) world.create(`t${i}`, [2])
    await world.run(500)
    world.cut.add(node(2))
    while (world.fenced(1).length === 0) await world.run(1)
    assert.ok(world.fenced(1).length <= 64, `${world.fenced(1).length} at once`)
    // Who cannot be helped keeps nobody else waiting.
    await world.run(10_000)
    assert.equal(new Set(world.fenced(1)).size, 300)
  })

  it('stages no more at a time than brokers are done with soon: all is staged once, and nobody is fenced for being slow', async () => {
    const world = new World(2)
    const stageMs = 200
    const topics = Array.from({ length: 200 }, (_, i) => world.create(`t${i}`, [2, 1]))
    await world.run(500)
    const machine = world.machine(2)
    machine.stageMs = stageMs
    const began = world.clock.monotonic()
    while (world.rolls.length < topics.length) {
      for (const key of machine.led()) if (key.segment === 1) machine.giveEnd(key, 0, 'full')
      await world.run(100)
      const tookMs = world.clock.monotonic() - began
      assert.ok(tookMs < 1.2 * topics.length * stageMs, `${world.rolls.length} rolls`)
    }
    assert.equal(machine.ordered.size, topics.length)
    assert.deepEqual(world.fenced(1), [])
  })
})

describe('a leader that is silent', () => {
  it('is fenced, and another one leads when its lease has surely run out', async () => {
    const world = new World(3)
    const topicId = world.create('a', [2, 1, 3], 2)
    await world.run(1000)
    world.cut.add(node(2))
    await world.run(leaseTtlMs)
    assert.equal(leased(world, 2, topicId), false)
    assert.deepEqual(world.rolls, [])
    world.dead.add(node(2))
    await world.run(leaseGraceMs - leaseTtlMs + fenceWaitMs + 500)
    assert.equal(world.rolls.length, 1)
    const replicas = world.replicasOf(topicId)
    assert.ok(!replicas.includes(2), String(replicas))
    assert.equal(replicas.length, 2)
    await world.run(200)
    assert.equal(leased(world, replicas[0] as number, topicId), true)
  })

  it('keeps its segments when the coordinator changes and it is heard again', async () => {
    const world = new World(3)
    const topicId = world.create('a', [2, 3], 1)
    await world.run(1000)
    for (const shard of world.leaders.keys()) world.leaders[shard] = { node: node(3), term: 2 }
    await world.run(5000)
    assert.deepEqual(world.rolls, [])
    assert.equal(leased(world, 2, topicId), true)
  })

  it('counts for a new coordinator as confirmed at its election', async () => {
    const world = new World(3)
    world.create('a', [2, 3], 1)
    await world.run(1000)
    world.cut.add(node(2))
    await world.run(1500)
    const elected = world.clock.monotonic()
    for (const shard of world.leaders.keys()) world.leaders[shard] = { node: node(3), term: 2 }
    await world.run(5000)
    const [roll] = world.rolls
    assert.ok(roll !== undefined && roll.atMs >= elected + leaseGraceMs, JSON.stringify(roll))
    assert.equal(roll.by, node(3))
  })
})

describe('a broker that has started again', () => {
  it('has its segments succeeded, not all at once, those that are waited for first', async () => {
    const world = new World(2)
    const topics = Array.from({ length: 300 }, (_, i) => world.create(`t${i}`, [2, 1]))
    await world.run(1000)
    const machine = world.machine(2)
    world.stop(machine)
    world.start(machine)
    const waited = topics.at(-1) as TopicId
    machine.waited.add(`${waited}/0/1`)
    machine.control?.hooks.waits(keyOf(world, waited))
    await world.run(60)
    assert.ok(world.rolls.length > 0 && world.rolls.length <= 64, `${world.rolls.length} rolls`)
    assert.ok(world.rolls.some(({ key }) => key.topicId === waited))
    await world.run(10_000)
    assert.equal(world.rolls.length, 300)
  })
})

describe('a coordinator that is deposed', () => {
  it('ends nothing any more', async () => {
    const world = new World(3)
    const topicId = world.create('a', [2])
    await world.run(500)
    world.machine(2).giveEnd(keyOf(world, topicId), 0, 'full')
    // It has been staged, and is being proposed.
    await world.run(9)
    for (const shard of world.leaders.keys()) world.leaders[shard] = { node: node(3), term: 2 }
    await world.run(20)
    assert.deepEqual(world.rolls, [])
    world.machine(2).giveEnd(keyOf(world, topicId), 0, 'full')
    await world.run(30)
    assert.deepEqual(
      world.rolls.map(({ by }) => by),
      [node(3)],
    )
  })
})

describe('brokers that come and go', () => {
  it('fill the empty seats, and leave the others where they are', async () => {
    const world = new World(3)
    const topicId = world.create('a', [1, 2, 3], 2)
    await world.run(500)
    world.cut.add(node(3))
    world.dead.add(node(3))
    await world.run(2000)
    assert.deepEqual(world.replicasOf(topicId), [1, 2])
    world.cut.delete(node(3))
    world.dead.delete(node(3))
    await world.run(5000)
    assert.deepEqual(world.replicasOf(topicId), [1, 2, 3])
  })

  it('hand over what they lead before they stop', async () => {
    const world = new World(3)
    const one = world.create('a', [2, 3])
    const other = world.create('b', [2])
    const followed = world.create('c', [1, 2])
    await world.run(500)
    let done = false
    void world
      .machine(2)
      .control?.drain(3000)
      .then(() => {
        done = true
      })
    await world.run(1000)
    assert.equal(done, true)
    assert.deepEqual(world.machine(2).led(), [])
    for (const topicId of [one, other, followed]) {
      assert.ok(!world.replicasOf(topicId).includes(2), topicId)
      // It will be back, with all of it.
      assert.ok(world.sealed(topicId)?.replicas.includes(node(2)), topicId)
    }
    // The end was given, nobody was fenced.
    assert.ok(!world.machine(1).sent.some(({ message }) => message.kind === 'fence'))
  })

  it('do not wait for others that take nothing', async () => {
    const world = new World(2)
    world.create('a', [1, 2], 2)
    await world.run(500)
    const drained: number[] = []
    for (const { control } of world.machines) {
      void control?.drain(30_000).then(() => drained.push(world.clock.monotonic()))
    }
    await world.run(5000)
    assert.equal(drained.length, 2)
  })

  it('say once that too few are left, not of each range', async () => {
    const world = new World(2)
    for (let i = 0; i < 200; i++) world.create(`t${i}`, [1, 2], 2)
    await world.run(500)
    for (const { control } of world.machines) void control?.drain(30_000)
    await world.run(100)
    const first = world.machine(1)
    for (const key of first.led()) first.giveEnd(key, 0, 'drained')
    await world.run(5000)
    const told = first.log.lines.filter((line) => line.startsWith('too few brokers')) ?? []
    assert.deepEqual(told, [
      'too few brokers: 0 can hold a segment that needs 2, while 2 of its brokers stop or are stopped',
    ])
  })

  it('do not wait for others when there are none', async () => {
    const world = new World(1)
    world.create('a', [1])
    await world.run(500)
    let done = false
    void world
      .machine(1)
      .control?.drain(3000)
      .then(() => {
        done = true
      })
    await world.run(1)
    assert.equal(done, true)
  })
})

describe('a sealed segment', () => {
  async function rolled(world: World, replicas: readonly number[]): Promise<TopicId> {
    const topicId = world.create('a', replicas, 2)
    await world.run(500)
    world.machine(replicas[0] as number).giveEnd(keyOf(world, topicId), 0, 'full')
    await world.run(50)
    return topicId
  }

  it('is settled when all of its replicas have it', async () => {
    const world = new World(3)
    const topicId = await rolled(world, [1, 2, 3])
    const { lacks } = world.machine(3)
    lacks.add(`${topicId}/0/1`)
    await world.run(1000)
    assert.equal(world.sealed(topicId)?.digest, '')
    lacks.clear()
    await world.run(3000)
    assert.equal(world.sealed(topicId)?.digest, 'd')
  })

  it('is not settled by what a replica said in an earlier start', async () => {
    const world = new World(3)
    const topicId = await rolled(world, [1, 2, 3])
    const restarted = world.machine(3)
    restarted.lacks.add(`${topicId}/0/1`)
    world.stop(restarted)
    world.start(restarted)
    await world.run(1000)
    const key = { topicId, range: 0, segment: 1 }
    const answer = { kind: 'whole', digest: 'd' } as const
    const said = { kind: 'inspect-answer', key, answer } as const
    const { control } = world.machine(1)
    control?.receive(restarted.node, [{ ...said, boot: 1 }])
    await world.run(20)
    assert.equal(world.sealed(topicId)?.digest, '')
    control?.receive(restarted.node, [{ ...said, boot: 2 }])
    await world.run(20)
    assert.equal(world.sealed(topicId)?.digest, 'd')
  })

  it('is held by another broker when one of its own is away for too long, and not before', async () => {
    const world = new World(4)
    const topicId = await rolled(world, [1, 2, 3])
    await world.run(3000)
    world.cut.add(node(3))
    world.dead.add(node(3))
    world.machine(4).lacks.add(`${topicId}/0/1`)
    await world.run(SEGMENT_TIMING.repairDelayMs - 1000)
    assert.deepEqual(world.sealed(topicId)?.replicas.map(Number), [1, 2, 3])
    await world.run(30_000)
    assert.deepEqual(world.sealed(topicId)?.replicas.map(Number), [1, 2, 3, 4])
    world.machine(4).lacks.clear()
    await world.run(30_000)
    assert.deepEqual(world.sealed(topicId)?.replicas.map(Number), [1, 2, 4])
  })

  it('leaves a broker that is drained, as the open one does', async () => {
    const world = new World(4)
    const topicId = await rolled(world, [1, 2, 3])
    await world.run(3000)
    world.command({ kind: 'SetNodeRole', nodeId: node(2), role: 'draining' })
    await world.run(30_000)
    for (const { replicas } of world.state.topics.get(topicId)?.ranges[0]?.segments ?? []) {
      assert.deepEqual(new Set(replicas.map(Number)), new Set([1, 3, 4]))
    }
  })
})
