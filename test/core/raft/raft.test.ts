// Whole groups in virtual time: crashes, cut and slow links, lost and doubled messages, members that come and go.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { runRaft } from './cluster.ts'

const SEEDS = 500

test('one leader per term, one history, nothing acknowledged lost, no stale read; and then all is well again', () => {
  let [acknowledged, reads, leaders, conflicts] = [0, 0, 0, 0]
  for (let seed = 1; seed <= SEEDS; seed++) {
    const run = runRaft(seed)
    assert.deepEqual(run.violations, [], `node build/test/core/raft/main.js --seed ${seed}`)
    acknowledged += run.acknowledged
    reads += run.readsAnswered
    leaders += run.leaders
    conflicts += run.conflicts
  }
  assert.ok(acknowledged > SEEDS * 50 && reads > SEEDS * 50)
  assert.ok(leaders > SEEDS * 4 && conflicts > SEEDS * 2)
})

test('one seed gives one story', () => {
  assert.deepEqual(runRaft(7), runRaft(7))
})
