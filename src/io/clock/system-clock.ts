// The machine's clocks and timers.
//
// Node's timers count on the event loop's own cached time, in whole milliseconds, and so may fire up to a
// millisecond before `monotonic()` agrees that the time has passed. Leases and time-outs compare the two, so a timer
// that fires early is armed again for the rest. A broker's timers do not keep its process alive: its listeners do. A
// client's do (`keepAlive`): between two attempts to connect, a timer is all that its caller waits for.

import { performance } from 'node:perf_hooks'
import type { Clock, Timer } from '../../ports/clock.ts'

/** What setTimeout takes; a longer wait is made of several. */
const TIMEOUT_MS_MAX = 0x7fff_ffff

class SystemTimer implements Timer {
  private readonly due: number
  private readonly run: () => void
  private readonly keepAlive: boolean
  private timeout: NodeJS.Timeout

  constructor(ms: number, run: () => void, keepAlive: boolean) {
    this.due = performance.now() + ms
    this.run = run
    this.keepAlive = keepAlive
    this.timeout = this.arm(ms)
  }

  private arm(ms: number): NodeJS.Timeout {
    const wait = Math.min(Math.max(0, Math.ceil(ms)), TIMEOUT_MS_MAX)
    const timeout = setTimeout(fire, wait, this)
    return this.keepAlive ? timeout : timeout.unref()
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

export function systemClock(options: { readonly keepAlive?: boolean } = {}): Clock {
  const { keepAlive = false } = options
  return {
    monotonic: () => performance.now(),
    wall: () => Date.now(),
    after: (ms, run) => new SystemTimer(ms, run, keepAlive),
    nextTurn: (run) => {
      setImmediate(run)
    },
  }
}
