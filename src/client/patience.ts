// Trouble with a topic that the client deals with by itself, told once it lasts: who waits at a prompt, or reads a log, should
// know for what. A fail-over is over before that. Partitions fail together, so those that come soon after one that was told
// of are counted and told of together.

import type { EastGuardError } from '../base/errors.ts'
import type { Clock } from '../ports/clock.ts'
import type { Log } from '../ports/log.ts'

const LASTING_MS = 5000
const GATHER_MS = 1000

export class Patience {
  private readonly clock: Clock
  private readonly log: Log
  private readonly topic: string
  private readonly done: 'written' | 'read'
  /** Partitions that fail, and since when. */
  private readonly sinceMs = new Map<number, number>()
  private readonly told = new Set<number>()
  private toldMs: number | undefined

  /** `done`: what cannot be done with partitions of the topic. */
  constructor(clock: Clock, log: Log, topic: string, done: 'written' | 'read') {
    this.clock = clock
    this.log = log
    this.topic = topic
    this.done = done
  }

  failed(partition: number, error: EastGuardError): void {
    const nowMs = this.clock.monotonic()
    const since = this.sinceMs.get(partition) ?? nowMs
    this.sinceMs.set(partition, since)
    if (this.told.has(partition) || nowMs - since < LASTING_MS) return
    if (this.toldMs !== undefined && nowMs - this.toldMs < GATHER_MS) return
    const first = this.told.size === 0
    this.toldMs = nowMs
    const lasting = [...this.sinceMs].filter(([, ms]) => nowMs - ms >= LASTING_MS)
    const news = lasting.map(([one]) => one).filter((one) => !this.told.has(one))
    for (const one of news) this.told.add(one)
    const more = first ? '' : 'more '
    const which = news.length === 1 ? `partition ${partition}` : `${news.length} ${more}partitions`
    const seconds = Math.round((nowMs - since) / 1000)
    const { code, message } = error
    this.log.warn(
      `${which} of '${this.topic}' could not be ${this.done} for ${seconds} s, and the client tries again: ${message}`,
      { code },
    )
  }

  well(partition: number): void {
    if (!this.sinceMs.delete(partition) || !this.told.delete(partition)) return
    if (this.told.size > 0) return
    this.toldMs = undefined
    this.log.info(`it works again: '${this.topic}' is ${this.done}`)
  }
}
