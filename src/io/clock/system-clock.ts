// The machine's clocks and timers.
//
// Node's timers count on the event loop's own cached time, in whole milliseconds, and so may fire up to a
// millisecond before `monotonic()` agrees that the time has passed. Leases and time-outs compare the two, so a timer
// that fires early is armed again for the rest. Timers never keep the process alive: what keeps a broker alive is its
// listeners.

import { performance } from 'node:perf_hooks'
import type { Clock, Timer } from '../../ports/clock.ts'

/** What setTimeout takes; a longer wait is made of several. */
const TIMEOUT_MS_MAX = 0x7fff_ffff

class SystemTimer implements Timer {
  private readonly due: number
  private readonly run: () => void
  private timeout: NodeJS.Timeout

  constructor(ms: number, run: () => void) {
    this.due = performance.now() + ms
    this.run = run
    this.timeout = this.arm(ms)
  }

  private arm(ms: number): NodeJS.Timeout {
    const wait = Math.min(Math.max(0, Math.ceil(ms)), TIMEOUT_MS_MAX)
    return setTimeout(fire, wait, this).unref()
  }

  fire(): void {
    const left = this.due - performance.now()
    if (left > 0) this.timeout = this.arm(left)
    else this.run()
  }

  cancel(): void {
    clearTimeout(this.timeout)
  }
}

function fire(timer: SystemTimer): void {
  timer.fire()
}

export function systemClock(): Clock {
  return {
    monotonic: () => performance.now(),
    wall: () => Date.now(),
    after: (ms, run) => new SystemTimer(ms, run),
    nextTurn: (run) => {
      setImmediate(run)
    },
  }
}
