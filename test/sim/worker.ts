// Runs its share of the seeds and reports each.

import { parentPort, workerData } from 'node:worker_threads'
import { crashPlan } from './crash-points.ts'
import { digestOf, SCENARIOS, type Scenario, type Told } from './scenarios.ts'

export interface SeedsTask {
  readonly scenario: string
  /** What a number means: a seed, or a crash point of the storage scenario's fixed workload. */
  readonly runs: 'seeds' | 'crash points'
  readonly first: number
  readonly step: number
  readonly end: number
}

export interface SeedsReport extends Pick<Told, 'counts'> {
  readonly seed: number
  readonly violations: number
  /** Of its story. */
  readonly digest: string
}

// Brokers refuse and disks fail thousands of times in a run, and nobody reads here where that was.
Error.stackTraceLimit = 0

const { scenario, runs, first, step, end } = workerData as SeedsTask
const { planOf, run } = SCENARIOS[scenario] as Scenario
for (let seed = first; seed < end; seed += step) {
  const { violations, story, counts } = await run(runs === 'seeds' ? planOf(seed) : crashPlan(seed))
  const report: SeedsReport = {
    seed,
    counts,
    violations: violations.length,
    digest: digestOf(story),
  }
  parentPort?.postMessage(report)
}
