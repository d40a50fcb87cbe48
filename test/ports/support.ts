// What the shared suites need of both sides: a way to run the body of a test while time passes. Real time passes by
// itself; virtual time is driven by the event loop, step by step, until the body is done.

import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setImmediate as turn } from 'node:timers/promises'
import type { SimClock } from '../../src/sim/ports/clock.ts'

/** Lets every promise that can settle do so. */
export async function settle(): Promise<void> {
  await turn()
}

/** Promises that nobody handles are only noticed in a turn of their own. */
const TICKS_PER_TURN = 100

/**
 * Node runs a tick when no promise can go on any more, many times in one turn of its loop. Turns cost several times as much, so
 * only some of the waiting is done by them.
 */
export function settling(): () => Promise<void> {
  let ticks = 0
  return () => {
    ticks = (ticks + 1) % TICKS_PER_TURN
    return ticks === 0 ? settle() : new Promise((resolve) => process.nextTick(resolve))
  }
}

export async function driven<T>(clock: SimClock, body: () => Promise<T>): Promise<T> {
  let done = false
  const result = body().finally(() => {
    done = true
  })
  const settle = settling()
  await settle()
  while (!done) {
    clock.step()
    await settle()
  }
  return result
}

export async function inTempDir<T>(body: (dir: string) => Promise<T>): Promise<T> {
  const dir = await mkdtemp(join(tmpdir(), 'eastguard-test-'))
  try {
    return await body(dir)
  } finally {
    await rm(dir, { recursive: true, force: true })
  }
}
