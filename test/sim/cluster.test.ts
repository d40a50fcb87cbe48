// Whole brokers and their clients on a network that fails, under many seeds; and that a run is the same wherever it runs.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { clusterPlan } from '../../src/sim/cluster/plan.ts'
import { findNothing, sameHere, testBugbase } from './checks.ts'

const SEEDS = 200

/** What must have struck somewhere. Packets are not sent yet. */
const KINDS = [
  'partition',
  'cut',
  'lasting cut',
  'slow-link',
  'lossy-link',
  'reset',
  'cutShort',
  'half-open',
  'stalls',
  'timeouts',
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
  'move',
  'hand-over',
]

test('all numbers of brokers and both modes are met, and cuts that last', () => {
  const plans = Array.from({ length: 200 }, (_, seed) => clusterPlan(seed))
  for (let brokers = 1; brokers <= 5; brokers++) {
    assert.ok(plans.some((plan) => plan.brokers.length === brokers))
  }
  for (const mode of ['safety', 'liveness']) assert.ok(plans.some((plan) => plan.mode === mode))
  for (const { brokers, mode, lastingCut } of plans) {
    if (lastingCut !== undefined) assert.ok(mode === 'liveness' && brokers.length >= 3)
    const rates = brokers.map(({ clockRate }) => clockRate)
    assert.ok(Math.max(...rates) / Math.min(...rates) <= 1.05)
  }
})

test('what brokers promise holds whatever the network, the machines and their clocks do', async (t) => {
  const { counts, digests } = await findNothing('cluster', SEEDS)
  assert.equal(counts['seeds below 500 operations'], 0)
  assert.ok((counts['virtual seconds'] ?? 0) >= 60 * SEEDS)
  assert.ok((counts['answered'] ?? 0) > 0.8 * (counts['operations'] ?? 0))
  for (const kind of KINDS) assert.ok((counts[kind] ?? 0) > 0, `${kind} never struck`)
  await t.test('one seed gives one story, byte for byte, here and in a worker', () =>
    sameHere('cluster', digests, 3, 500),
  )
})

testBugbase('cluster', 'test/bugbase/cluster')
