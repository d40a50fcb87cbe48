// The whole broker on a disk that fails, under many seeds; and what makes that worth something: that a run is the same each
// time, and that what was once found is not found again.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { storagePlan } from '../../src/sim/storage/plan.ts'
import { findNothing, testBugbase, WORKERS } from './checks.ts'
import { crashWorkload } from './crash-points.ts'
import { run } from './run.ts'
import { runSeeds } from './seeds.ts'

const SEEDS = 2000

test('one seed gives one story, to the letter', async () => {
  for (const seed of [1, 2, 3]) {
    const once = await run(storagePlan(seed))
    const again = await run(storagePlan(seed))
    assert.deepEqual(again, once)
    assert.ok(once.story.length > 10)
  }
})

test('every kind of trouble is met, and runs get somewhere all the same', async () => {
  const kinds = new Set<string>()
  for (let seed = 1; seed <= 200; seed++) {
    for (const { kind } of storagePlan(seed).steps) kinds.add(kind)
  }
  assert.deepEqual([...kinds].sort(), [
    'alter',
    'crash-at-operation',
    'create',
    'delete',
    'fail',
    'fail-sync',
    'fail-write',
    'full',
    'kill',
    'power-cut',
    'read',
    'reset',
    'rot',
    'send',
    'slow',
    'stop',
    'wall',
    'widen',
  ])
})

test('nothing acknowledged is lost and nothing else is there, whatever the disk does', async () => {
  const { acknowledged = 0 } = (await findNothing('storage', SEEDS)).counts
  assert.ok(acknowledged > SEEDS * 20, `${acknowledged} records were acknowledged`)
})

test('a crash at every disk operation of a workload, and again in the start that follows', async () => {
  const { troubledOperations, violations } = await run(crashWorkload())
  assert.deepEqual(violations, [])
  assert.ok(troubledOperations > 300, `${troubledOperations} operations`)
  const how = { runs: 'crash points', workers: WORKERS } as const
  const result = await runSeeds('storage', 1, troubledOperations, how)
  assert.equal(result.failed, undefined)
  assert.equal(result.seeds, troubledOperations)
})

testBugbase('storage', 'test/bugbase')
