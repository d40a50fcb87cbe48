// Which replicas lag so far behind, for all they know, that readers should go elsewhere: a follower that has not heard of its
// leader, and a leader that has had no lease, for `hw_stale_ms`. Whoever waits at the end of such a replica is woken, so that it
// finds out.

import type { Clock, Timer } from '../../ports/clock.ts'
import type { RangeCopy } from '../range/copy.ts'
import { RangeFollower } from '../range/follower.ts'
import { RangeLeader } from '../range/leader.ts'
import type { TopicRuntimes } from '../topics/runtimes.ts'

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
  private readonly runtimes: TopicRuntimes
  private readonly everyMs: number
  private timer: Timer | undefined

  constructor(clock: Clock, runtimes: TopicRuntimes, hwStaleMs: number) {
    this.clock = clock
    this.runtimes = runtimes
    this.everyMs = hwStaleMs / LOOK_PARTS
  }

  start(): void {
    this.timer = this.clock.after(this.everyMs, () => {
      this.start()
      this.look()
    })
  }

  private look(): void {
    for (const runtime of this.runtimes.all()) {
      for (const copy of runtime.allCopies()) {
        if (!copy.watchers.none && isStale(copy)) copy.watchers.wakeAll()
      }
    }
  }

  stop(): void {
    this.timer?.cancel()
  }
}
