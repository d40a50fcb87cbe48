import assert from 'node:assert/strict'
import { test } from 'node:test'
import { runSeed } from './trouble.ts'

const SEEDS = 200

test('whatever happens to brokers, disks and links, metadata that was answered stays as it was answered', async () => {
  let answered = 0
  for (let seed = 1; seed <= SEEDS; seed++) {
    const { truth } = await runSeed(seed)
    assert.deepEqual(truth.violations, [], `seed ${seed}`)
    answered += truth.answered
  }
  assert.ok(answered > SEEDS, `${answered} changes were answered`)
})
