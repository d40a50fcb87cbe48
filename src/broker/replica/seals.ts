// Sealing what the metadata has sealed. The successor is open for everyone by then, so there is no going back: a seal that
// cannot be written is asked for again at the next start, by the metadata.

import { EastGuardError } from '../../base/errors.ts'
import { keyText, type SegmentKey } from '../../model/segment-key.ts'
import type { Log } from '../../ports/log.ts'
import type { SegmentLog } from '../../storage/types.ts'

/** Nothing but an operator ends a segment so. It must not be served: its last records are not those of the range any more. */
export function isOverruled(segment: SegmentLog, end: number): boolean {
  return !segment.sealed && segment.highWatermark > end
}

export class Seals {
  private readonly log: Log
  private readonly running = new Map<string, Promise<void>>()
  /** Called when one is done, or cannot be for what is damaged. */
  onSealed: (key: SegmentKey) => void = () => {}

  constructor(log: Log) {
    this.log = log
  }

  /** One is being written. */
  has(key: SegmentKey): boolean {
    return this.running.has(keyText(key))
  }

  /** `segment`: undefined when nothing of it is here. */
  seal(key: SegmentKey, segment: SegmentLog | undefined, end: number): void {
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
        // Damage is marked at the segment itself, and a disk that failed stops the broker.
        if (error instanceof EastGuardError && error.code === 'DAMAGED') this.onSealed(key)
        else this.log.error('a segment could not be sealed', { ...key, err: error })
      },
    )
    this.running.set(text, work)
  }

  /** Resolves when none is under way. */
  async settled(): Promise<void> {
    await Promise.all(this.running.values())
  }
}
