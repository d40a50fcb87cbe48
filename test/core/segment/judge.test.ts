// A range's segments in virtual time, under crashes, cut links, stuck and bad disks, and coordinators that come and go.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { runSegment } from './judge/world.ts'

const SEEDS = 300

test('nothing visible is lost, hidden or numbered twice; and then all replicas are whole and written to', () => {
  let [acknowledged, segments] = [0, 0]
  for (let seed = 1; seed <= SEEDS; seed++) {
    const run = runSegment(seed)
    assert.deepEqual(run.violations, [], `node build/test/core/segment/main.js --seed ${seed}`)
    acknowledged += run.acknowledged
    segments += run.segments
  }
  assert.ok(acknowledged > SEEDS * 50 && segments > SEEDS * 3)
})

test('one seed gives one story', () => {
  assert.deepEqual(runSegment(7, true), runSegment(7, true))
})
