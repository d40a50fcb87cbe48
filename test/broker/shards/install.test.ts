import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { ShardedLog } from '../../../src/broker/metadata/sharded-log.ts'
import { create } from './trouble.ts'
import { type Broker, World } from './world.ts'

const SHARD = 0
const SNAPSHOT_FILE = 'journal/00000000.snapshot'

/** The first broker leads, and has compacted so much that the other can only be sent a snapshot. */
async function behind(): Promise<{
  readonly world: World
  readonly joining: Broker
  readonly log: ShardedLog
  /** The leader takes the other in. */
  readonly join: () => Promise<void>
}> {
  const world = new World(1, 2)
  const [leader, joining] = world.brokers as [Broker, Broker]
  for (const broker of world.brokers) world.start(broker)
  world.cutOff(joining)
  await world.run(500)
  assert.ok(leader.log !== undefined && joining.log !== undefined)
  const { shards } = leader.log
  for (let i = 0; i < 40; i++) {
    create(world, leader.log)
    await world.run(50)
  }
  assert.ok(shards.committed(SHARD, 1)[0]?.index !== 1, 'the first entries were compacted')
  const join = async (): Promise<void> => {
    assert.equal(shards.change(SHARD, { kind: 'add-learner', node: joining.id }), undefined)
    await world.run(200)
    world.heal()
  }
  return { world, joining, log: joining.log, join }
}

/** For the snapshot; until the answer is called. */
function noRoom({ disk }: Broker): () => void {
  const times = Number.POSITIVE_INFINITY
  return disk.fail({ operation: 'write', path: SNAPSHOT_FILE, fault: 'full', times })
}

test('a broker that closes waits for the snapshot that it is writing: its journal is closed afterwards', async () => {
  const { world, joining, log, join } = await behind()
  let writing = false
  let release: () => void = () => {}
  const held = new Promise<void>((resolve) => {
    release = resolve
  })
  joining.disk.before = async ({ kind, path }) => {
    if (kind !== 'rename' || !path.startsWith(SNAPSHOT_FILE)) return
    writing = true
    await held
  }
  await join()
  assert.ok(await world.runUntil(() => writing, 3000))
  let closed = false
  void log.close().then(() => {
    closed = true
  })
  await world.run(500)
  assert.equal(closed, false)
  release()
  assert.ok(await world.runUntil(() => closed, 3000))
  assert.ok(joining.disk.paths().includes(SNAPSHOT_FILE))
})

test('a broker whose disk has no room for a snapshot waits until there is, and hears nothing of the shard meanwhile', async () => {
  const { world, joining, log, join } = await behind()
  const room = noRoom(joining)
  const { failures } = joining.disk
  await join()
  await world.run(10_000)
  assert.deepEqual(world.truth.violations, [])
  const tries = joining.disk.failures - failures
  assert.ok(tries > 2 && tries < 20, `${tries} tries`)
  const [leader] = world.brokers as [Broker]
  assert.ok(leader.log !== undefined)
  for (let i = 0; i < 8; i++) create(world, leader.log)
  await world.run(1000)
  room()
  const { shards } = leader.log
  const follows = (): boolean =>
    log.shards.view(SHARD)?.appliedIndex === shards.view(SHARD)?.appliedIndex
  assert.equal(follows(), false)
  assert.ok(await world.runUntil(follows, 5000))
  assert.ok(joining.disk.paths().includes(SNAPSHOT_FILE))
})

test('a broker that waits for room for a snapshot can be closed', async () => {
  const { world, joining, log, join } = await behind()
  noRoom(joining)
  await join()
  await world.run(3000)
  let closed = false
  void log.close().then(() => {
    closed = true
  })
  assert.ok(await world.runUntil(() => closed, 3000))
  assert.deepEqual(world.truth.violations, [])
})
