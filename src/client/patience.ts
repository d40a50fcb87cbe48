// Trouble that the client deals with by itself, told once it lasts: who waits at a prompt, or reads a log, should know for
// what. A fail-over is over before that.

import type { EastGuardError } from '../base/errors.ts'
import type { Clock } from '../ports/clock.ts'
import type { Log } from '../ports/log.ts'

const LASTING_MS = 5000

export class Patience {
  private readonly clock: Clock
  private readonly log: Log
  private readonly what: string
  private sinceMs: number | undefined
  private told = false

  /** `what` cannot be done, as a sentence without its end: "partition 3 of 'orders' takes no records". */
  constructor(clock: Clock, log: Log, what: string) {
    this.clock = clock
    this.log = log
    this.what = what
  }

  failed(error: EastGuardError): void {
    const nowMs = this.clock.monotonic()
    this.sinceMs ??= nowMs
    const ms = nowMs - this.sinceMs
    if (this.told || ms < LASTING_MS) return
    this.told = true
    const seconds = Math.round(ms / 1000)
    const { code, message } = error
    this.log.warn(`${this.what} for ${seconds} s now, and is tried again: ${message}`, { code })
  }

  well(): void {
    if (this.told) this.log.info(`it works again: ${this.what} no more`)
    this.sinceMs = undefined
    this.told = false
  }
}
