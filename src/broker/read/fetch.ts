// The one-shot fetch with long poll. It reads what there is; when that is less than `minBytes` it waits until one of its
// partitions has more or the time is over, and reads again. Errors of one partition do not hide the others' batches.

import { EastGuardError } from '../../base/errors.ts'
import type { Entry } from '../../model/entry.ts'
import type { Clock, Timer } from '../../ports/clock.ts'
import { toEastGuardError } from '../errors.ts'
import type { Watcher } from '../sinks.ts'
import type { Cursor } from './cursor.ts'

export interface FetchedPartition {
  readonly error: EastGuardError | undefined
  /** -1 when it is not known. */
  readonly highWatermark: number
  readonly logStart: number
  readonly entries: readonly Entry[]
}

export interface FetchPart {
  /** Or why there is none. */
  readonly cursor: Cursor | EastGuardError
  readonly maxBytes: number
}

export interface FetchLimits {
  readonly minBytes: number
  readonly maxBytes: number
  readonly maxWaitMs: number
}

const NOTHING: readonly Entry[] = []

export class Fetch implements Watcher {
  private readonly clock: Clock
  private readonly parts: readonly FetchPart[]
  private readonly limits: FetchLimits
  private readonly done: (partitions: readonly FetchedPartition[]) => void
  private deadline: number
  private timer: Timer | undefined
  private running = false
  private again = false
  private over = false

  constructor(
    clock: Clock,
    parts: readonly FetchPart[],
    limits: FetchLimits,
    done: (partitions: readonly FetchedPartition[]) => void,
  ) {
    this.clock = clock
    this.parts = parts
    this.limits = limits
    this.done = done
    this.deadline = clock.monotonic() + limits.maxWaitMs
  }

  start(): void {
    void this.run()
  }

  /** Answers with what there is, waiting no longer. */
  finish(): void {
    this.deadline = this.clock.monotonic()
    this.wake()
  }

  /** The client is gone: nothing is answered any more. */
  cancel(): void {
    this.over = true
    this.release()
  }

  wake(): void {
    if (this.over) return
    if (this.running) this.again = true
    else void this.run()
  }

  private async run(): Promise<void> {
    this.running = true
    do {
      this.again = false
      this.release()
      const read = await this.readAll()
      if (this.over) return
      const last = this.limits.maxWaitMs === 0 || this.clock.monotonic() >= this.deadline
      if (last || read.bytes >= this.limits.minBytes || read.failed) {
        this.over = true
        this.done(read.partitions)
        return
      }
      this.wait(read.partitions)
    } while (this.again)
    this.running = false
  }

  private wait(read: readonly FetchedPartition[]): void {
    for (let i = 0; i < this.parts.length; i++) {
      const { cursor } = this.parts[i] as FetchPart
      if (cursor instanceof EastGuardError) continue
      try {
        cursor.watch(this)
        // What was committed between reading and watching wakes nobody: look once more.
        if (cursor.committedEnd() !== read[i]?.highWatermark) this.again = true
      } catch {
        this.again = true
      }
    }
    this.timer = this.clock.after(Math.max(0, this.deadline - this.clock.monotonic()), () =>
      this.wake(),
    )
  }

  private release(): void {
    this.timer?.cancel()
    this.timer = undefined
    for (const { cursor } of this.parts) {
      if (!(cursor instanceof EastGuardError)) cursor.unwatch(this)
    }
  }

  private async readAll(): Promise<{
    partitions: FetchedPartition[]
    bytes: number
    failed: boolean
  }> {
    const partitions: FetchedPartition[] = []
    let bytes = 0
    let failed = false
    for (const { cursor, maxBytes } of this.parts) {
      const most = Math.min(maxBytes, this.limits.maxBytes - bytes)
      const one = await this.readOne(cursor, most)
      for (const entry of one.entries) bytes += entry.batch.length
      if (one.error !== undefined) failed = true
      partitions.push(one)
    }
    return { partitions, bytes, failed }
  }

  private async readOne(
    cursor: Cursor | EastGuardError,
    maxBytes: number,
  ): Promise<FetchedPartition> {
    if (cursor instanceof EastGuardError) return failure(cursor, -1, -1)
    try {
      const highWatermark = await cursor.highWatermark()
      if (maxBytes <= 0) {
        return { error: undefined, highWatermark, logStart: cursor.logStart, entries: NOTHING }
      }
      const entries = await cursor.next(maxBytes)
      return { error: undefined, highWatermark, logStart: cursor.logStart, entries }
    } catch (error) {
      const known = toEastGuardError(error)
      const end = known.detail['end']
      return failure(known, typeof end === 'number' ? end : -1, cursor.logStart)
    }
  }
}

function failure(error: EastGuardError, highWatermark: number, logStart: number): FetchedPartition {
  return { error, highWatermark, logStart, entries: NOTHING }
}
