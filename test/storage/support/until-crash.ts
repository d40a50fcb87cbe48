// Runs a process on a simulated disk until it ends or the disk crashes under it.

import type { Crash, SimDisk } from '../../../src/sim/ports/disk.ts'
import { settle } from './ports.ts'

export const KILL: Crash = { keepUnsynced: true }
/** A power cut that keeps any part of what was not synced. */
export const CUT: Crash = { keepUnsynced: 'some' }

/**
 * What `run` resolves to, or undefined when the disk crashed at `operation`. The disk has crashed either way when this
 * resolves: a run that ended earlier is crashed behind its end.
 */
export async function untilCrash<T>(
  sim: SimDisk,
  operation: number,
  crash: Crash,
  run: () => Promise<T>,
): Promise<T | undefined> {
  const crashed = sim.crashAt(operation, crash)
  const ended = await Promise.race([run(), crashed.then(() => undefined)])
  const disk = sim.mount()
  while (sim.operations < operation) void disk.space()
  await crashed
  return ended
}

/** `settle` for a process that runs on the disk now: once that has crashed, it never comes back, as no disk call does. */
export function settleWhileAlive(sim: SimDisk): () => Promise<void> {
  const { crashes } = sim
  return async () => {
    await settle()
    if (sim.crashes !== crashes) await new Promise<never>(() => undefined)
  }
}
