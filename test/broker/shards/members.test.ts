import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { ShardedLog } from '../../../src/broker/metadata/sharded-log.ts'
import type { MembersChange } from '../../../src/core/raft/types.ts'
import { create } from './trouble.ts'
import { type Broker, World } from './world.ts'

const SHARD = 0

async function started(brokers: number): Promise<World> {
  const world = new World(1, brokers)
  for (const broker of world.brokers) world.start(broker)
  await world.run(500)
  return world
}

function logOf({ log }: Broker): ShardedLog {
  assert.ok(log !== undefined)
  return log
}

async function change(
  world: World,
  leader: Broker,
  kind: MembersChange['kind'],
  broker: Broker,
): Promise<void> {
  const { shards } = logOf(leader)
  const took = (): boolean => shards.change(SHARD, { kind, node: broker.id }) === undefined
  assert.ok(await world.runUntil(took, 3000), kind)
  assert.ok(await world.runUntil(() => shards.view(SHARD)?.settled === true, 3000))
}

/** The first broker leads, and the others vote. */
async function group(brokers: number): Promise<World> {
  const world = await started(brokers)
  const [leader, ...others] = world.brokers as [Broker, ...Broker[]]
  for (const other of others) await change(world, leader, 'add-learner', other)
  for (const other of others) await change(world, leader, 'promote', other)
  return world
}

async function isAnswered(world: World, log: ShardedLog): Promise<boolean> {
  let answered = false
  void log.propose({ kind: 'AllocateProducerIds', count: 1 }).then(() => {
    answered = true
  })
  return world.runUntil(() => answered, 3000)
}

async function isFresh(world: World, log: ShardedLog): Promise<boolean> {
  let fresh = false
  void log.shards.fresh(SHARD).then(
    () => {
      fresh = true
    },
    () => undefined,
  )
  return world.runUntil(() => fresh, 3000)
}

test('a learner that was removed, which nobody tells it, goes on to know what its shard does', async () => {
  const world = await started(2)
  const [leader, learner] = world.brokers as [Broker, Broker]
  await change(world, leader, 'add-learner', learner)
  assert.ok(await isFresh(world, logOf(learner)))
  await change(world, leader, 'remove', learner)
  for (let i = 0; i < 5; i++) create(world, logOf(leader))
  await world.run(5000)
  assert.ok(await isFresh(world, logOf(learner)))
  assert.deepEqual(logOf(learner).state.topics, logOf(leader).state.topics)
})

test('who waits for brokers that are away to know all says so once, and goes on when they are there', async () => {
  const world = new World(1, 2)
  const [founder, late] = world.brokers as [Broker, Broker]
  world.start(late)
  await world.run(100)
  let fresh = false
  void logOf(late)
    .allFresh()
    .then(() => {
      fresh = true
    })
  await world.run(5000)
  assert.equal(fresh, false)
  const said = late.logged.lines.filter((line) => line.includes('waits for its metadata'))
  assert.equal(said.length, 1)
  world.start(founder)
  assert.ok(await world.runUntil(() => fresh, 3000))
})

async function withoutLeader({ metrics }: Broker): Promise<number> {
  const found = /^eastguard_shards_without_leader (\d+)$/m.exec(await metrics.render())
  return Number(found?.[1])
}

test('who is cut off counts its shards as without a leader, and says so once; who was removed does not, though it hears none', async () => {
  const world = await group(4)
  const [leader, removed, , cutOff] = world.brokers as [Broker, Broker, Broker, Broker]
  await change(world, leader, 'remove', removed)
  await world.run(5000)
  assert.equal(await withoutLeader(removed), 0)
  world.cutOff(cutOff)
  await world.run(10_000)
  assert.equal(await withoutLeader(cutOff), 1)
  assert.equal(await withoutLeader(leader), 0)
  world.heal()
  await world.run(5000)
  const said = cutOff.logged.lines.filter((line) => line.includes('leader'))
  assert.deepEqual(said, [
    'shards of the metadata have no leader: too few of the brokers that keep them answer',
    'every shard of the metadata that this broker keeps has a leader again',
  ])
  assert.ok(!removed.logged.lines.some((line) => line.includes('leader')))
})

test('a shard is handed over to nobody who lags, however often that is asked for: proposals go on', async () => {
  const world = await group(3)
  const [leader, , behind] = world.brokers as [Broker, Broker, Broker]
  const { shards } = logOf(leader)
  world.cutOff(behind)
  assert.ok(await isAnswered(world, logOf(leader)))
  for (let i = 0; i < 20; i++) {
    assert.equal(shards.handOver(SHARD, behind.id), 'not-caught-up')
    await world.run(100)
  }
  assert.ok(await isAnswered(world, logOf(leader)))
  world.heal()
  const took = (): boolean => shards.handOver(SHARD, behind.id) === undefined
  assert.ok(await world.runUntil(took, 3000))
  assert.ok(await world.runUntil(() => logOf(behind).shards.view(SHARD)?.role === 'leader', 3000))
  assert.ok(await isAnswered(world, logOf(leader)))
})

test('a leader whose term is over by what the copy has applied is not said to lead', async () => {
  const world = await started(2)
  const [leader, learner] = world.brokers as [Broker, Broker]
  await change(world, leader, 'add-learner', learner)
  assert.ok(await isFresh(world, logOf(learner)))
  const { shards } = logOf(learner)
  const { appliedIndex, appliedTerm } = shards.copyOf(SHARD)
  const term = appliedTerm + 1
  const next = { index: appliedIndex + 1, term, payload: { kind: 'empty' } } as const
  world.cutOff(learner)
  const fed = (): boolean => {
    shards.receive(leader.id, [{ kind: 'feed', shard: SHARD, entries: [next] }])
    return shards.copyOf(SHARD).appliedTerm === term
  }
  assert.ok(await world.runUntil(fed, 3000))
  // The old leader has not heard of the next, and speaks on.
  world.heal()
  assert.ok(await world.runUntil(() => shards.view(SHARD)?.leader === leader.id, 3000))
  assert.equal(shards.leaderOf(SHARD), undefined)
})
