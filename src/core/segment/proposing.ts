// A proposal of the coordinator, until the log shows what became of it. Its outcome may stay unknown; the same proposal may then
// be made again, since it compares and sets on the open segment and its attempt. Another one under that attempt may not.

import { pauseMs } from './avoided.ts'
import type { CancelEffect, ProposalOutcome, RollEffect } from './care-types.ts'

/** An outcome, or the log entry of a proposal that was applied, comes sooner than this. */
const SILENT_MS = 5000
const AGAIN_MS = 200

export class Proposal {
  readonly effect: RollEffect | CancelEffect
  private dueMs: number
  private times = 0

  constructor(effect: RollEffect | CancelEffect, nowMs: number) {
    this.effect = effect
    this.dueMs = nowMs + SILENT_MS
  }

  settled(outcome: ProposalOutcome, nowMs: number): void {
    this.times++
    const unknown = outcome === 'unknown'
    this.dueMs = nowMs + (unknown ? pauseMs(this.times, AGAIN_MS) : SILENT_MS)
  }

  /** It is time to make it again. */
  due(nowMs: number): boolean {
    if (nowMs < this.dueMs) return false
    this.dueMs = nowMs + SILENT_MS
    return true
  }
}
