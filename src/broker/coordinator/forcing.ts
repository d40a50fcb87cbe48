// An operator ends the segment of a range that stands still because no replica surely has all of it. What is known is told
// before anything is done: how much the answers hold is all that anybody can say of what would be lost.

import { EastGuardError } from '../../base/errors.ts'
import type { Forceable } from '../../model/segment-ends.ts'
import type { SegmentKey } from '../../model/segment-key.ts'
import type { RangeCares } from './range-cares.ts'

/** `end`: undefined: nothing is done. Throws END_NOT_FORCED. */
export function forceEnd(cares: RangeCares, key: SegmentKey, end: number | undefined): Forceable {
  const { segment } = key
  const one = cares.of(key)
  const known = one?.open.segment === segment ? one.care.forceable : undefined
  if (known === undefined) {
    const what = `segment ${segment} of range ${key.range}`
    const why = one?.care.trouble
    const message =
      why === undefined
        ? `nothing is known that keeps ${what} from being ended or written; answers of its replicas may be waited for still`
        : `${what} cannot be ended by force: ${why}`
    throw new EastGuardError('END_NOT_FORCED', message)
  }
  if (end === undefined) return known
  let refused: string | undefined
  cares.tell(key, (care) => {
    refused = care.force(end)
  })
  if (refused === undefined) return known
  throw new EastGuardError(
    'END_NOT_FORCED',
    `segment ${segment} is not ended at ${end}: ${refused}`,
  )
}
