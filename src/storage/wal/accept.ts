// What recovery accepts of a log, judged over all files of the newest generation (PROTOCOLS §3).
//
//        floor            S*
//   ......|================|~~~~~~~~~~~|  . . .
//   released  must be here    accepted as far as it is whole; behind the first fault nothing is
//             (missing = damage)                               (none of it was acknowledged)
//
// S* is the greatest LSN that anything on disk says was synced: a group header's S, or the LSN before a file's first,
// since a file begins after all before it was synced. A power cut may persist any part of the last group, so
// a fault above S* is no damage; below it, it is.

import type { Run } from './scan.ts'
import type { LostSpan } from './types.ts'

export interface Evidence {
  /** Of all files, in order of sequence. */
  readonly runs: readonly Run[]
  readonly floorLsn: number
  /** S* + 1. */
  readonly syncedEnd: number
  /** Newest files of which nothing can be read: nobody knows what they held. */
  readonly unreadable: readonly string[]
}

/** A part of a run that is accepted: records [firstLsn, endLsn). */
export interface AcceptedRun {
  readonly run: Run
  readonly firstLsn: number
  readonly endLsn: number
}

export interface Accepted {
  readonly runs: readonly AcceptedRun[]
  readonly lost: readonly LostSpan[]
  readonly endLsn: number
}

export function accept(evidence: Evidence): Accepted {
  const { floorLsn, syncedEnd } = evidence
  const runs: AcceptedRun[] = []
  const lost: LostSpan[] = []
  let cursor = floorLsn
  let before: Run | undefined
  for (const run of evidence.runs) {
    if (run.endLsn <= cursor) {
      before = run
      continue
    }
    if (run.firstLsn > cursor) {
      if (cursor >= syncedEnd) break
      const endLsn = Math.min(run.firstLsn, syncedEnd)
      lost.push(lostSpan(cursor, endLsn, before, run))
      cursor = endLsn
      if (run.firstLsn > cursor) break
    }
    // In mid-group and above S*: a fault lies between, and nothing says that this was synced.
    if (run.midGroup && run.firstLsn >= syncedEnd) break
    runs.push({ run, firstLsn: cursor, endLsn: run.endLsn })
    cursor = run.endLsn
    before = run
  }
  if (cursor < syncedEnd) {
    lost.push(lostSpan(cursor, syncedEnd, before, undefined))
    cursor = syncedEnd
  }
  for (const reason of evidence.unreadable)
    lost.push({ fromLsn: cursor, endLsn: undefined, reason })
  return { runs, lost, endLsn: cursor }
}

function lostSpan(
  fromLsn: number,
  endLsn: number,
  before: Run | undefined,
  after: Run | undefined,
): LostSpan {
  const span = { fromLsn, endLsn, reason: reasonOf(before, after) }
  if (before === undefined || before.endLsn !== fromLsn) return span
  const { sequence, endPosition: position } = before
  const endPosition = after?.sequence === sequence ? after.position : undefined
  return { ...span, place: { sequence, position, endPosition } }
}

function reasonOf(before: Run | undefined, after: Run | undefined): string {
  if (before === undefined) return 'the first log file that is needed is missing or unreadable'
  if (after !== undefined && after.sequence > before.sequence + 1) {
    return `log files ${before.sequence + 1} to ${after.sequence - 1} are missing or unreadable`
  }
  return `log file ${before.sequence} is damaged at byte ${before.endPosition}`
}
