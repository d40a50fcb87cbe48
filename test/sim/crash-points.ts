// One workload, crashed at each of its disk operations: rolls, flushes, snapshots of the journal, recycled log files, a
// deletion, a creation and restarts. The start after the crash crashes too.

import { readFileSync } from 'node:fs'
import type { StoragePlan, TimedStep } from '../../src/sim/storage/plan.ts'

export function crashWorkload(): StoragePlan {
  return JSON.parse(readFileSync('test/sim/crash-workload.json', 'utf8')) as StoragePlan
}

/** The workload with a crash at its `operations`-th disk operation. */
export function crashPlan(operations: number): StoragePlan {
  const plan = crashWorkload()
  const crash: TimedStep = {
    kind: 'crash-at-operation',
    atMs: -1,
    operations,
    keep: (['all', 'some', 'none'] as const)[operations % 3] ?? 'none',
    downMs: 5,
    startsToo: [1 + ((operations * 7) % 50)],
  }
  return { ...plan, steps: [crash, ...plan.steps] }
}
