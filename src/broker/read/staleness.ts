// Which replicas lag so far behind, for all they know, that readers should go elsewhere: a follower that has not heard of its
// leader, and a leader that has had no lease, for `hw_stale_ms`. Whoever waits at the end of such a replica is woken, so that it
// finds out. Only those that somebody waits at are looked at: most brokers have many ranges that nobody reads.

import type { Clock, Timer } from '../../ports/clock.ts'
import type { RangeCopy } from '../range/copy.ts'
import { RangeFollower } from '../range/follower.ts'
import { RangeLeader } from '../range/leader.ts'

/** Parts of `hw_stale_ms`. */
const LOOK_PARTS = 4

export function isStale({ role, open, context }: RangeCopy): boolean {
  const now = context.clock.monotonic()
  if (role instanceof RangeFollower) {
    const { heardAtMs } = role
    return heardAtMs === undefined || now - heardAtMs >= context.hwStaleMs
  }
  if (!(role instanceof RangeLeader) || open.replicas.length === 1) return false
  return role.unleasedForMs(now) >= context.hwStaleMs
}

export class StaleWatch {
  private readonly clock: Clock
  private readonly watched: Set<RangeCopy>
  private readonly everyMs: number
  private timer: Timer | undefined

  constructor(clock: Clock, watched: Set<RangeCopy>, hwStaleMs: number) {
    this.clock = clock
    this.watched = watched
    this.everyMs = hwStaleMs / LOOK_PARTS
  }

  start(): void {
    this.timer = this.clock.after(this.everyMs, () => {
      this.start()
      this.look()
    })
  }

  private look(): void {
    for (const copy of Array.from(this.watched)) {
      if (copy.watchers.none) this.watched.delete(copy)
      else if (isStale(copy)) copy.watchers.wakeAll()
    }
  }

  stop(): void {
    this.timer?.cancel()
  }
}
