import assert from 'node:assert/strict'
import { test } from 'node:test'
import { CacheBudget } from '../../../src/storage/cache/budget.ts'
import { Tail } from '../../../src/storage/cache/tail.ts'
import { batchOf } from '../segment/rig.ts'

function entry(entryNumber: number): Parameters<Tail['push']>[0] {
  const spot = { entryNumber, partition: 0, baseOffset: entryNumber, recordCount: 1, logTimeMs: 0 }
  const batch = batchOf(100, 1, 0, 1)
  return { ...spot, highWatermark: 0, leastKeyHash: 0, greatestKeyHash: 1, batch }
}

test('segments that come and go below the limit leave nothing behind in the budget', () => {
  const budget = new CacheBudget(1024 * 1024)
  const stays = new Tail(budget, 0)
  stays.push(entry(0))
  budget.wrote(stays, 1, budget.unflushedBytes)
  for (let i = 0; i < 20_000; i++) {
    const tail = new Tail(budget, 0)
    tail.push(entry(0))
    budget.wrote(tail, 1, budget.unflushedBytes)
    tail.clear(1)
  }
  assert.ok(budget.waiting < 2000, `${budget.waiting} blocks wait for eviction`)
  assert.equal(stays.end, 1)
})
