// What the shared suites need of both sides: a way to run the body of a test while time passes. Real time passes by
// itself; virtual time is driven by the event loop, a step per turn, until the body is done.

import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setImmediate as turn } from 'node:timers/promises'
import type { SimClock } from '../../src/sim/ports/clock.ts'

/** Lets every promise that can settle do so. */
export async function settle(): Promise<void> {
  await turn()
}

export async function driven<T>(clock: SimClock, body: () => Promise<T>): Promise<T> {
  let done = false
  const result = body().finally(() => {
    done = true
  })
  await turn()
  while (!done) {
    clock.step()
    await turn()
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
