// What is asked of every scenario: that a run is the same wherever it runs, that many seeds find nothing, and that what was
// once found is not found again.

import assert from 'node:assert/strict'
import { readdirSync, readFileSync } from 'node:fs'
import { test } from 'node:test'
import { digestOf, type Plan, SCENARIOS, type Scenario } from './scenarios.ts'
import { runSeeds } from './seeds.ts'

function named(name: string): Scenario {
  return SCENARIOS[name] as Scenario
}

/** The first `seeds` seeds: here, the first of them twice, and in so many workers. Their stories have `lines` at least. */
export async function sameEverywhere(
  name: string,
  seeds: number,
  lines: number,
  workers: readonly number[],
): Promise<void> {
  const { planOf, run } = named(name)
  const here = new Map<number, string>()
  for (let seed = 1; seed <= seeds; seed++) {
    const { story } = await run(planOf(seed))
    assert.ok(story.length > lines)
    here.set(seed, digestOf(story))
  }
  assert.equal(digestOf((await run(planOf(1))).story), here.get(1))
  for (const many of workers) {
    const { digests } = await runSeeds(name, 1, seeds, { workers: many })
    assert.deepEqual(new Map([...digests].sort(([a], [b]) => a - b)), here)
  }
}

/** What was counted over all of them. */
export async function findNothing(
  name: string,
  seeds: number,
): Promise<Readonly<Record<string, number>>> {
  const { failed, seeds: done, counts } = await runSeeds(name, 1, seeds)
  const replay = `npm run sim -- --scenario ${name} --seed ${failed} --trace`
  assert.equal(failed, undefined, `to see what happened: ${replay}`)
  assert.equal(done, seeds)
  return counts
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
