// Sealing what the metadata has sealed. The successor is open for everyone by then, so there is no going back: a seal that
// cannot be written, as the disk is full, is tried again until there is room.

import { keyText, type SegmentKey } from '../../model/segment-key.ts'
import type { Clock, Timer } from '../../ports/clock.ts'
import type { Log } from '../../ports/log.ts'
import type { SegmentLog } from '../../storage/types.ts'

const RETRY_MS_LEAST = 500
const RETRY_MS_MOST = 30_000

/** Nothing but an operator ends a segment so. It must not be served: its last records are not those of the range any more. */
export function isOverruled(segment: SegmentLog, end: number): boolean {
  return !segment.sealed && segment.highWatermark > end
}

export class Seals {
  private readonly log: Log
  private readonly clock: Clock
  private readonly running = new Map<string, Promise<void>>()
  /** Those that are tried again. */
  private readonly waiting = new Map<string, Timer>()
  private stopped = false
  /** Called when one is done, or cannot be for what is damaged. */
  onSealed: (key: SegmentKey) => void = () => {}

  constructor(clock: Clock, log: Log) {
    this.clock = clock
    this.log = log
  }

  /** One is being written, or will be. */
  has(key: SegmentKey): boolean {
    const text = keyText(key)
    return this.running.has(text) || this.waiting.has(text)
  }

  /** `segment`: undefined when nothing of it is here. */
  seal(
    key: SegmentKey,
    segment: SegmentLog | undefined,
    end: number,
    retryMs: number = RETRY_MS_LEAST,
  ): void {
    if (segment === undefined || segment.sealed || segment.damage !== undefined) {
      this.onSealed(key)
      return
    }
    if (isOverruled(segment, end)) {
      const { highWatermark } = segment
      const what =
        'a segment ends below what was readable here: an operator has forced its end, and the copy is made anew'
      this.log.error(what, { ...key, end, highWatermark })
      this.onSealed(key)
      return
    }
    const text = keyText(key)
    const work = segment.seal(end).then(
      () => {
        this.running.delete(text)
        this.onSealed(key)
      },
      (error: unknown) => {
        this.running.delete(text)
        if (segment.damage !== undefined) return this.onSealed(key)
        // A disk that failed stops the broker.
        this.log.error('a segment could not be sealed', { ...key, err: error })
        this.again(text, retryMs, () =>
          this.seal(key, segment, end, Math.min(RETRY_MS_MOST, 2 * retryMs)),
        )
      },
    )
    this.running.set(text, work)
  }

  private again(text: string, ms: number, seal: () => void): void {
    if (this.stopped) return
    const timer = this.clock.after(ms, () => {
      this.waiting.delete(text)
      seal()
    })
    this.waiting.set(text, timer)
  }

  /** Resolves when none is under way, and none will be tried again. */
  async stop(): Promise<void> {
    this.stopped = true
    for (const timer of this.waiting.values()) timer.cancel()
    this.waiting.clear()
    await Promise.all(this.running.values())
  }
}
