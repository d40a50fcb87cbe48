// What is left to do when a range has another open segment: states that were staged for it and did not commit go, and those
// of the past.

import type { Segment } from '../../core/metadata/types.ts'
import type { SegmentKey } from '../../model/segment-key.ts'
import type { RangeContext } from '../range/context.ts'
import type { Stager } from './stager.ts'

export class Aftermath {
  private readonly context: RangeContext
  private readonly stager: Stager

  constructor(context: RangeContext, stager: Stager) {
    this.context = context
    this.stager = stager
  }

  rolled(key: SegmentKey, open: Segment): void {
    const { context } = this
    context.counters.rolls.add(1)
    this.stager.forget({ ...key, segment: key.segment - 1 })
    context.store.keepState(key, open.token).catch((error: unknown) => {
      // A deleted topic has none. What stays otherwise goes with the next roll's.
      const what = 'range states that a roll needs no more could not be removed'
      context.log.info(what, { ...key, err: error })
    })
  }
}
