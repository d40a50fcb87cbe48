// Runs its share of the seeds and reports each.

import { parentPort, workerData } from 'node:worker_threads'
import { storagePlan } from '../../src/sim/storage/plan.ts'
import type { Outcome } from '../../src/sim/storage/scenario.ts'
import { crashPlan } from './crash-points.ts'
import { run } from './run.ts'

export interface SeedsTask {
  /** What a number means: a seed, or a crash point of the fixed workload. */
  readonly runs: 'seeds' | 'crash points'
  readonly first: number
  readonly step: number
  readonly end: number
}

export interface SeedsReport
  extends Pick<Outcome, 'sent' | 'acknowledged' | 'read' | 'operations'> {
  readonly seed: number
  readonly violations: number
}

const { runs, first, step, end } = workerData as SeedsTask
for (let seed = first; seed < end; seed += step) {
  const { sent, acknowledged, read, operations, violations } = await run(
    runs === 'seeds' ? storagePlan(seed) : crashPlan(seed),
  )
  const report: SeedsReport = {
    seed,
    sent,
    acknowledged,
    read,
    operations,
    violations: violations.length,
  }
  parentPort?.postMessage(report)
}
