// What is asked of every scenario: that a run is the same wherever it runs, that many seeds find nothing, and that what was
// once found is not found again.

import assert from 'node:assert/strict'
import { readdirSync, readFileSync } from 'node:fs'
import { availableParallelism } from 'node:os'
import { test } from 'node:test'
import { digestOf, type Plan, SCENARIOS, type Scenario } from './scenarios.ts'
import { runSeeds, type SeedsResult } from './seeds.ts'

function named(name: string): Scenario {
  return SCENARIOS[name] as Scenario
}

/** In a suite, where other test files run at the same time. Each worker more would compile all brokers once more, too. */
export const WORKERS: number = Math.max(1, Math.floor(availableParallelism() / 2))

/** What many seeds found, which is nothing: counts and the digest of each story. */
export async function findNothing(name: string, seeds: number): Promise<SeedsResult> {
  const result = await runSeeds(name, 1, seeds, { workers: WORKERS })
  const { failed, seeds: done } = result
  const replay = `npm run sim -- --scenario ${name} --seed ${failed} --trace`
  assert.equal(failed, undefined, `to see what happened: ${replay}`)
  assert.equal(done, seeds)
  return result
}

/**
 * The first `seeds` seeds once more, here and not in a worker. The other way round: what a run leaves behind in its process
 * would show in the next. Their stories have more than `lines` lines.
 */
export async function sameHere(
  name: string,
  digests: SeedsResult['digests'],
  seeds: number,
  lines: number,
): Promise<void> {
  const { planOf, run } = named(name)
  for (let seed = seeds; seed >= 1; seed--) {
    const { story } = await run(planOf(seed))
    assert.ok(story.length > lines)
    assert.equal(digestOf(story), digests.get(seed), `seed ${seed}`)
  }
}

export function testBugbase(name: string, folder: string): void {
  for (const file of readdirSync(folder).filter((one) => one.endsWith('.json'))) {
    test(`bugbase: ${name}/${file}`, async () => {
      const plan = JSON.parse(readFileSync(`${folder}/${file}`, 'utf8')) as Plan
      const { violations } = await named(name).run(plan)
      assert.deepEqual(violations, [])
    })
  }
}
