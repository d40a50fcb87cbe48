// Runs in this process. What simulated brokers or their clients throw without anyone to catch it would end a real process,
// so it is a violation.

import type { Loop } from '../../src/sim/stage.ts'
import type { StoragePlan } from '../../src/sim/storage/plan.ts'
import { type Outcome, runStorage } from '../../src/sim/storage/scenario.ts'
import { settling } from '../ports/support.ts'

export function run(plan: StoragePlan): Promise<Outcome> {
  return watched((loop) => runStorage(plan, loop))
}

export async function watched<T>(body: (loop: Loop) => Promise<T>): Promise<T> {
  const uncaught: Error[] = []
  const note = (error: unknown): void => {
    uncaught.push(error instanceof Error ? error : new Error(String(error)))
  }
  process.on('uncaughtException', note)
  process.on('unhandledRejection', note)
  try {
    return await body({ settle: settling(), uncaught: () => uncaught.shift() })
  } finally {
    process.off('uncaughtException', note)
    process.off('unhandledRejection', note)
  }
}
