// Entries that were copied from another replica, looked at before they are put into a segment: they go on where it ends, end
// where it was sealed, and every partition's offsets go on where memory knows that they stand.

import { EastGuardError } from '../../base/errors.ts'
import type { Entry } from '../../model/entry.ts'
import type { Tail } from '../cache/tail.ts'
import type { SegmentLog } from '../types.ts'

/** Throws DAMAGED when the entries do not fit, whoever they came from. */
export function checkCopies(segment: SegmentLog, tail: Tail, entries: readonly Entry[]): void {
  const { key, end, endEntry = Number.POSITIVE_INFINITY } = segment
  const offsets = new Map<number, number>()
  for (const [i, { entryNumber, partition, baseOffset, recordCount }] of entries.entries()) {
    if (entryNumber !== end + i) throw unfit(key, `entry ${entryNumber} instead of ${end + i}`)
    if (entryNumber >= endEntry) throw unfit(key, `entry ${entryNumber}, it ends at ${endEntry}`)
    const next = offsets.get(partition) ?? tail.nextOffset(partition) ?? baseOffset
    if (baseOffset !== next) {
      throw unfit(key, `offset ${baseOffset} of partition ${partition} instead of ${next}`)
    }
    offsets.set(partition, baseOffset + recordCount)
  }
}

function unfit(key: SegmentLog['key'], what: string): EastGuardError {
  const { topicId, range, segment } = key
  const message = `a copy for segment ${segment} of range ${range} of topic ${topicId} does not fit: ${what}`
  return new EastGuardError('DAMAGED', message)
}
