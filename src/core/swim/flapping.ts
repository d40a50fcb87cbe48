// A member that comes and goes is worse than one that is gone: each time, everything is moved. So each return from the dead
// counts, and each suspicion that it had to refute counts a little; time forgives. Whoever has more than one return to answer
// for is held back, longer each time: it is alive, it is probed, and it is not counted on (PROTOCOLS §10).
//
//   returns, not yet forgiven     1       2            3            4        ...
//   held back                     -    about holdMs   twice      4 times    up to holdMaxMs: left out, with an alert

import type { SwimSettings } from './types.ts'

/** Of a refuted suspicion, beside a return. */
const SUSPICION_SHARE = 0.1
/** More is as bad. */
const SCORE_MAX = 10

export class Flaps {
  heldUntil: number = Number.NEGATIVE_INFINITY
  private score = 0
  private at = 0

  isHeld(now: number): boolean {
    return now < this.heldUntil
  }

  returned(now: number, settings: SwimSettings): void {
    this.add(1, now, settings)
  }

  refuted(now: number, settings: SwimSettings): void {
    this.add(SUSPICION_SHARE, now, settings)
  }

  private add(weight: number, now: number, { flapForgivenMs }: SwimSettings): void {
    const forgiven = (now - this.at) / flapForgivenMs
    this.score = Math.min(SCORE_MAX, Math.max(0, this.score - forgiven) + weight)
    this.at = now
  }

  /** For how long it is to be held back from now on; 0: not at all. */
  holdMs({ holdMs, holdMaxMs }: SwimSettings): number {
    if (this.score <= 1.5) return 0
    return Math.min(holdMaxMs, holdMs * 2 ** (this.score - 2))
  }
}
