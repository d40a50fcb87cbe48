// How many stagings a coordinator has under way at a time: as many as brokers are done with soon. When a broker fails all ranges are
// rolled in which it had a part; were all of these staged at once, each would take too long, be given up and begun anew, and none
// would end. Those that are quick make room for more, those that are slow for fewer.

import type { SegmentTiming } from './types.ts'

const FIRST = 16
const LEAST = 4
const MOST = 64
/** Of the time after which a staging is given up. */
const QUICK = 0.1
const SLOW = 0.3
const STEP = 0.5

export class Pace {
  private now = FIRST
  private readonly timing: SegmentTiming

  constructor(timing: SegmentTiming) {
    this.timing = timing
  }

  /** At a time. */
  get count(): number {
    return Math.floor(this.now)
  }

  /** A staging was done, or given up, after so long. */
  took(ms: number): void {
    const { stageTimeoutMs } = this.timing
    if (ms >= stageTimeoutMs) this.now /= 2
    else if (ms >= stageTimeoutMs * SLOW) this.now -= STEP
    else if (ms <= stageTimeoutMs * QUICK) this.now += STEP
    this.now = Math.min(MOST, Math.max(LEAST, this.now))
  }
}
