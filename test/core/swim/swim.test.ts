// Whole clusters in virtual time: see cluster.ts and run.ts.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { runSwim } from './run.ts'

const SEEDS = 72

test('no ghost, nobody wronged, nobody missed; and when the trouble ends all know who is there', () => {
  const detected: number[] = []
  let [suspicions, deaths] = [0, 0]
  for (let seed = 1; seed <= SEEDS; seed++) {
    const run = runSwim(seed)
    assert.deepEqual(run.violations, [], `node build/test/core/swim/main.js --seed ${seed}`)
    suspicions += run.suspicions
    deaths += run.deaths
    if (run.detectedMs !== undefined) detected.push(run.detectedMs)
  }
  const median = detected.sort((a, b) => a - b)[detected.length >> 1] ?? 0
  assert.ok(median < 6000, `half of all deaths are known after ${median} ms only`)
  assert.ok(suspicions > SEEDS * 20 && deaths > SEEDS * 10)
})

test('one seed gives one story', () => {
  assert.deepEqual(runSwim(24), runSwim(24))
})
