import assert from 'node:assert/strict'
import { test } from 'node:test'
import { create } from './trouble.ts'
import { type Broker, SHARDS, World } from './world.ts'

const FILES_MAX = 4

test('a disk without room for snapshots is tried now and then, and the journal does not grow by that', async () => {
  const world = new World(1, 1)
  const [broker] = world.brokers as [Broker]
  const { disk } = broker
  world.start(broker)
  await world.run(500)
  const { log } = broker
  assert.ok(log !== undefined)
  const takenBack = Array.from({ length: SHARDS }, (_, shard) =>
    disk.fail({
      operation: 'write',
      path: `journal/0000000${shard}.snapshot`,
      fault: 'full',
      times: Number.POSITIVE_INFINITY,
    }),
  )
  const files = (): number => disk.paths().filter((path) => path.endsWith('.wal')).length
  while (files() <= 2 * FILES_MAX) {
    create(world, log)
    await world.run(20)
  }
  const { failures } = disk
  const before = files()
  await world.run(30_000)
  const tries = disk.failures - failures
  assert.ok(tries > 2 && tries < 10, `${tries} tries`)
  assert.equal(files(), before)
  for (const takeBack of takenBack) takeBack()
  const saved = (): boolean => disk.paths().some((path) => path.endsWith('.snapshot'))
  assert.ok(await world.runUntil(saved, 10_000))
  assert.deepEqual(world.truth.violations, [])
})
