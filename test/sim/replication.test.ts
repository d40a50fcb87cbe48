// Records that three brokers hold, under many seeds: whatever happens to links, machines and disks, what was promised holds.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { replicationPlan } from '../../src/sim/replication/plan.ts'
import { findNothing, sameHere, testBugbase } from './checks.ts'

const SEEDS = 150

/** What must have struck somewhere. */
const KINDS = [
  'partition',
  'cut',
  'slow-link',
  'lossy-link',
  'reset',
  'cutShort',
  'half-open',
  'unansweredDials',
  'pause',
  'kill',
  'power-cut',
  'power cut of several',
  'power cut of all',
  'crash-at-operation',
  'stop',
  'wall',
  'slow-disk',
  'fail-disk',
  'wipe',
  'restore',
  'full',
  'flip',
  'flip-log',
  'drain',
  'aimed',
  'topics deleted',
]

function isFlip(step: { readonly kind: string }): step is { kind: 'flip'; broker: number } {
  return step.kind === 'flip' || step.kind === 'flip-log'
}

test('a disk is lost only where every topic has three replicas, and of one broker only', () => {
  for (let seed = 0; seed < 2000; seed++) {
    const { steps, topics } = replicationPlan(seed)
    const losers = new Set<number>()
    // Which broker that is shows when it strikes.
    let aimed = 0
    for (const step of steps) {
      if (step.kind === 'aimed') aimed += step.steps.filter(isFlip).length
      else if (step.kind === 'wipe' || step.kind === 'restore' || isFlip(step)) {
        losers.add(step.broker)
      }
    }
    assert.ok(losers.size + aimed <= 1)
    if (losers.size + aimed > 0) assert.ok(topics.every(({ replicas }) => replicas === 3))
  }
})

test('what is acknowledged stays, and is what all replicas have, whatever the brokers go through', async (t) => {
  const { counts, digests } = await findNothing('replication', SEEDS)
  assert.equal(counts['seeds below 500 operations'], 0)
  assert.ok((counts['virtual seconds'] ?? 0) >= 60 * SEEDS)
  assert.ok((counts['acknowledged'] ?? 0) > 0.4 * (counts['operations'] ?? 0))
  assert.ok((counts['segments'] ?? 0) > 20 * SEEDS)
  assert.ok((counts['looks'] ?? 0) > 10 * SEEDS)
  for (const kind of KINDS) assert.ok((counts[kind] ?? 0) > 0, `${kind} never struck`)
  await t.test('one seed gives one story, byte for byte, here and in a worker', () =>
    sameHere('replication', digests, 2, 300),
  )
})

testBugbase('replication', 'test/bugbase/replication')
