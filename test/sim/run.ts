// Runs in this process. What simulated brokers or their clients throw without anyone to catch it would end a real process,
// so it is a violation.

import type { Loop } from '../../src/sim/stage.ts'
import type { StoragePlan } from '../../src/sim/storage/plan.ts'
import { type Outcome, runStorage } from '../../src/sim/storage/scenario.ts'
import { settle } from '../ports/support.ts'

export function run(plan: StoragePlan): Promise<Outcome> {
  return watched((loop) => runStorage(plan, loop))
}

/** Promises that nobody handles are only noticed in a turn of their own. */
const TICKS_PER_TURN = 100

/**
 * Node runs a tick when no promise can go on any more, many times in one turn of its loop. Turns cost several times as much, so
 * only some of the waiting is done by them.
 */
function settling(): () => Promise<void> {
  let ticks = 0
  return () => {
    ticks = (ticks + 1) % TICKS_PER_TURN
    return ticks === 0 ? settle() : new Promise((resolve) => process.nextTick(resolve))
  }
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
