// Whole brokers and their clients on a network that fails, under many seeds; and that a run is the same wherever it runs.

import assert from 'node:assert/strict'
import { readdirSync, readFileSync } from 'node:fs'
import { test } from 'node:test'
import { clusterPlan } from '../../src/sim/cluster/plan.ts'
import { digestOf, type Plan, SCENARIOS, type Scenario } from './scenarios.ts'
import { runSeeds } from './seeds.ts'

const BUGBASE = 'test/bugbase/cluster'
const SEEDS = 200
const { planOf, run } = SCENARIOS['cluster'] as Scenario

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

test('one seed gives one story, byte for byte, twice here and in two workers of their own', async () => {
  const seeds = [1, 2, 3]
  const here = new Map<number, string>()
  for (const seed of seeds) {
    const { story } = await run(planOf(seed))
    assert.ok(story.length > 500)
    here.set(seed, digestOf(story))
  }
  assert.equal(digestOf((await run(planOf(1))).story), here.get(1))
  for (const workers of [1, 3]) {
    const { digests } = await runSeeds('cluster', 1, seeds.length, { workers })
    assert.deepEqual(new Map([...digests].sort(([a], [b]) => a - b)), here)
  }
})

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

test('what brokers promise holds whatever the network, the machines and their clocks do', async () => {
  const { failed, seeds, counts } = await runSeeds('cluster', 1, SEEDS)
  const replay = `npm run sim -- --scenario cluster --seed ${failed} --trace`
  assert.equal(failed, undefined, `to see what happened: ${replay}`)
  assert.equal(seeds, SEEDS)
  assert.equal(counts['seeds below 500 operations'], 0)
  assert.ok((counts['virtual seconds'] ?? 0) >= 60 * SEEDS)
  assert.ok((counts['answered'] ?? 0) > 0.8 * (counts['operations'] ?? 0))
  for (const kind of KINDS) assert.ok((counts[kind] ?? 0) > 0, `${kind} never struck`)
})

for (const file of readdirSync(BUGBASE)) {
  test(`bugbase: cluster/${file}`, async () => {
    const plan = JSON.parse(readFileSync(`${BUGBASE}/${file}`, 'utf8')) as Plan
    const { violations } = await run(plan)
    assert.deepEqual(violations, [])
  })
}
