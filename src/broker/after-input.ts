// A timer for whoever draws conclusions from silence. When the process got no time for a while, timers fire before what the network
// has brought meanwhile is read: so a late one runs only a turn later, behind that. A broker that stood still for a second would
// otherwise take the leaders of all its shards for dead, whose beats lie in its sockets.

import type { Clock, Timer } from '../ports/clock.ts'

export function afterInput(clock: Clock, ms: number, run: () => void): Timer {
  const dueMs = clock.monotonic() + ms
  let cancelled = false
  const timer = clock.after(ms, () => {
    if (clock.monotonic() - dueMs < ms) return run()
    clock.nextTurn(() => {
      if (!cancelled) run()
    })
  })
  return {
    cancel: () => {
      cancelled = true
      timer.cancel()
    },
  }
}
