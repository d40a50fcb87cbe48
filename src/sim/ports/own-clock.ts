// A machine's own clocks, off from the world's: they began elsewhere, run a little fast or slow, and the wall clock is set
// now and then. Whoever compares times of two machines, or takes a wall clock for a duration, is seen to be wrong.

import type { Prng } from '../../base/prng.ts'
import type { Clock } from '../../ports/clock.ts'
import type { SimClock } from './clock.ts'
import type { Gate } from './gate.ts'

export interface MachineClock {
  /** Its milliseconds per one of the world's: 1.05 is a clock that is 5 % fast. */
  readonly rate: number
  /** What its monotonic clock showed when the world began. */
  readonly startMs: number
  /** Its wall clock against the world's; may jump by days. */
  wallShiftMs: number
}

export function trueClock(): MachineClock {
  return { rate: 1, startMs: 0, wallShiftMs: 0 }
}

/** Clocks of two machines run apart by less than 5 %. */
export const CLOCK_RATES = [0.976, 1.024] as const

/** Of a machine, as a plan says it. */
export interface ClockPlan {
  readonly clockRate: number
  readonly clockStartMs: number
}

/** True, or off by as much as may be. */
export function drawnClock(chance: Prng): ClockPlan {
  const [slow, fast] = CLOCK_RATES
  return {
    clockRate: chance.below(2) === 0 ? 1 : slow + chance.float() * (fast - slow),
    clockStartMs: chance.below(1_000_000_000),
  }
}

export function plannedClock({ clockRate, clockStartMs }: ClockPlan): MachineClock {
  return { rate: clockRate, startMs: clockStartMs, wallShiftMs: 0 }
}

/** With a rate, the sums of times are rounded; a timer must not see that it came too early. */
const ROUNDING_MS = 1e-6

export function ownClock(clock: SimClock, machine: MachineClock, gate: Gate): Clock {
  const { rate, startMs } = machine
  const more = rate === 1 ? 0 : ROUNDING_MS
  return {
    monotonic: () => startMs + clock.monotonic() * rate,
    wall: () => Math.floor(clock.wall() + machine.wallShiftMs),
    after: (ms, run) => {
      // It may be due already and wait at the gate: cancelled then, it does not run either.
      let cancelled = false
      const due = (): void => {
        if (!cancelled) run()
      }
      const timer = clock.after(ms / rate + more, () => gate.pass(due, 'timer'))
      return {
        cancel: () => {
          cancelled = true
          timer.cancel()
        },
      }
    },
    nextTurn: (run) => clock.nextTurn(() => gate.pass(run)),
  }
}
