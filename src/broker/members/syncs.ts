// The syncs that this broker asks for. core/swim wants few at a time and gives each up after the same time as `ask` does, so
// that one which goes to nowhere holds up no other.

import type { Address } from '../../base/address.ts'
import { Truncated } from '../../base/cursor.ts'
import { messageOf } from '../../base/errors.ts'
import type { SyncAnswer, SyncRequest } from '../../model/swim.ts'
import type { Clock } from '../../ports/clock.ts'
import type { Counter } from '../../ports/metrics.ts'
import type { Streams } from '../../ports/streams.ts'
import { readSyncAnswer, writeSyncRequest } from '../../wire/swim/sync.ts'
import { ask } from './ask.ts'

/** Those that were given up may not have ended yet. */
const AT_ONCE_MAX = 8

export interface SyncsOptions {
  readonly clock: Clock
  /** Of the cluster port. */
  readonly streams: () => Streams
  readonly timeoutMs: number
  readonly malformed: Counter
  answered(to: Address, answer: SyncAnswer): void
  failed(to: Address, why: string): void
}

export class Syncs {
  private readonly options: SyncsOptions
  private readonly underWay = new Map<string, AbortController>()

  constructor(options: SyncsOptions) {
    this.options = options
  }

  /** Exactly one of `answered` and `failed` follows, later, unless it is asked for again meanwhile, or stopped. */
  ask(to: Address, request: SyncRequest): void {
    const { underWay } = this
    const key = `${to.host}:${to.port}`
    const controller = new AbortController()
    const { signal } = controller
    const before = underWay.get(key)
    underWay.set(key, controller)
    before?.abort()
    this.exchange(to, request, signal).then(
      (answer) => {
        if (this.ended(key, controller)) this.options.answered(to, answer)
      },
      (error: unknown) => {
        const why = messageOf(error)
        if (this.ended(key, controller)) this.options.failed(to, why)
      },
    )
  }

  private async exchange(
    to: Address,
    request: SyncRequest,
    signal: AbortSignal,
  ): Promise<SyncAnswer> {
    const { clock, streams, timeoutMs, malformed } = this.options
    if (this.underWay.size > AT_ONCE_MAX) throw new Error('too many syncs are under way')
    const bytes = writeSyncRequest(request)
    const ports = { clock, streams: streams() }
    const answer = await ask({ ports, to, request: bytes, timeoutMs, signal })
    try {
      return readSyncAnswer(answer)
    } catch (error) {
      if (error instanceof Truncated) malformed.add(1)
      throw error
    }
  }

  /** False: another one to the same broker has taken its place. */
  private ended(key: string, controller: AbortController): boolean {
    if (this.underWay.get(key) !== controller) return false
    this.underWay.delete(key)
    return true
  }

  stop(): void {
    const all = [...this.underWay.values()]
    this.underWay.clear()
    for (const controller of all) controller.abort()
  }
}
