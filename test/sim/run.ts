// A run in this process. What the simulated broker or its clients throw without anyone to catch it would end a real
// process, so it is a violation.

import type { StoragePlan } from '../../src/sim/storage/plan.ts'
import { type Outcome, runStorage } from '../../src/sim/storage/scenario.ts'
import { settle } from '../ports/support.ts'

export async function run(plan: StoragePlan): Promise<Outcome> {
  const uncaught: Error[] = []
  const note = (error: unknown): void => {
    uncaught.push(error instanceof Error ? error : new Error(String(error)))
  }
  process.on('uncaughtException', note)
  process.on('unhandledRejection', note)
  try {
    return await runStorage(plan, { settle, uncaught: () => uncaught.shift() })
  } finally {
    process.off('uncaughtException', note)
    process.off('unhandledRejection', note)
  }
}
