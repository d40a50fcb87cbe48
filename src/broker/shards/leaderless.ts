// Says in the log when shards of this broker have had no leader for longer than an election takes, and when they have one
// again: one line each, however many shards it is.

import type { Log } from '../../ports/log.ts'

const TELL_MS = 5000
const LOOK_MS = 500

export class Leaderless {
  private readonly log: Log
  private readonly count: () => number
  private lookAtMs = 0
  /** Some shard has had none at every look since. */
  private sinceMs: number | undefined
  private told = false

  /** `count`: how many have none now. */
  constructor(log: Log, count: () => number) {
    this.log = log
    this.count = count
  }

  tick(now: number): void {
    if (now < this.lookAtMs) return
    this.lookAtMs = now + LOOK_MS
    const shards = this.count()
    if (shards === 0) this.well()
    else this.missing(shards, now)
  }

  private well(): void {
    if (this.told)
      this.log.info('every shard of the metadata that this broker keeps has a leader again')
    this.sinceMs = undefined
    this.told = false
  }

  private missing(shards: number, now: number): void {
    this.sinceMs ??= now
    if (this.told || now - this.sinceMs < TELL_MS) return
    this.told = true
    this.log.warn(
      'shards of the metadata have no leader: too few of the brokers that keep them answer',
      {
        shards,
      },
    )
  }
}
