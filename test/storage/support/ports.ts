// The smallest twins of the other ports that storage needs: time that the test moves, seeded chance, lines kept.

import { prng } from '../../../src/base/prng.ts'
import type { Clock } from '../../../src/ports/clock.ts'
import type { Log } from '../../../src/ports/log.ts'
import type { Random } from '../../../src/ports/random.ts'

export interface ManualClock extends Clock {
  advance(ms: number): void
  /** The wall clock alone is set. */
  shiftWall(ms: number): void
}

export function manualClock(): ManualClock {
  let now = 0
  let wallStart = 1_700_000_000_000
  let timers: { at: number; run: () => void }[] = []
  return {
    monotonic: () => now,
    wall: () => wallStart + now,
    shiftWall(ms) {
      wallStart += ms
    },
    after(ms, run) {
      const timer = { at: now + ms, run }
      timers.push(timer)
      return {
        cancel() {
          timers = timers.filter((other) => other !== timer)
        },
      }
    },
    nextTurn: (run) => void setImmediate(run),
    advance(ms) {
      now += ms
      const due = timers.filter((timer) => timer.at <= now).sort((a, b) => a.at - b.at)
      timers = timers.filter((timer) => timer.at > now)
      for (const timer of due) timer.run()
    },
  }
}

export function seededRandom(seed: number): Random {
  const chance = prng(seed)
  return { bytes: (length) => chance.bytes(length), float: () => chance.float() }
}

export function keptLog(): Log & { readonly lines: readonly string[] } {
  const lines: string[] = []
  const log = {
    lines,
    debug: (message: string) => void lines.push(message),
    info: (message: string) => void lines.push(message),
    warn: (message: string) => void lines.push(message),
    error: (message: string) => void lines.push(message),
    child: () => log,
  }
  return log
}

/** Lets everything that is ready run: promises, and what they start. */
export async function settle(): Promise<void> {
  for (let i = 0; i < 3; i++) await new Promise((resolve) => setImmediate(resolve))
}
