// Batches that a range has had before (PROTOCOLS §8): answered at once when they are committed or refused, and with the
// entry's own outcome while that is open.

import { unreachable } from '../../base/assert.ts'
import type { RangeState } from '../../core/producers/range-state.ts'
import type { ProduceSink } from '../sinks.ts'

interface Retry {
  readonly entryNumber: number
  readonly baseOffset: number
  readonly sink: ProduceSink
  readonly slot: number
}

export class Retries {
  private waiting: Retry[] = []

  /** `state` holds the facts of the verdict. */
  answer(
    verdict: Exclude<ReturnType<RangeState['check']>, 'accept'>,
    state: RangeState,
    logTimeMs: number,
    sink: ProduceSink,
    slot: number,
  ): void {
    const { verdictOffset: baseOffset, verdictEntry: entryNumber } = state
    switch (verdict) {
      case 'seen':
        sink.produced(slot, baseOffset, logTimeMs)
        return
      case 'pending':
        this.waiting.push({ entryNumber, baseOffset, sink, slot })
        return
      case 'DUPLICATE_SEQUENCE':
        sink.refused(slot, verdict, 'the batch was stored earlier, before the last five')
        return
      case 'OUT_OF_ORDER_SEQUENCE':
        sink.refused(slot, verdict, 'the sequence does not follow the last batch of its producer')
        return
      case 'UNKNOWN_PRODUCER_ID':
        sink.refused(slot, verdict, 'the producer was idle for too long and is forgotten here')
        return
      case 'PRODUCER_FENCED':
        sink.refused(slot, verdict, 'a newer epoch of this producer has written here')
        return
      default:
        unreachable(verdict)
    }
  }

  /** Entries below `end` are committed. */
  committed(end: number, logTimeMs: number): void {
    if (this.waiting.length === 0) return
    const { waiting } = this
    this.waiting = waiting.filter((retry) => retry.entryNumber >= end)
    for (const { entryNumber, baseOffset, sink, slot } of waiting) {
      if (entryNumber < end) sink.produced(slot, baseOffset, logTimeMs)
    }
  }

  clear(tell: (sink: ProduceSink, slot: number) => void): void {
    const { waiting } = this
    this.waiting = []
    for (const { sink, slot } of waiting) tell(sink, slot)
  }
}
