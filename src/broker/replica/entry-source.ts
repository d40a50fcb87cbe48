// The entries of one segment as its followers are sent them: mostly the same to all, so an encoding is kept for those who have
// not had it.
//
//   follower B asks ──┐                 ┌── follower C asks
//                     v                 v
//   log    ...│ 300 ... 610 │ 611 ... 920 │ 921 ... end           each once, and forgotten when all have had it
//
// One link takes several before the next link is asked, so more than one is kept; a follower that lags further behind has
// its own made. When all that there is has been committed nobody needs any more, and nothing is kept: it would hold memory for as
// long as nobody writes.

import type { Entry, SegmentPlace } from '../../model/entry.ts'
import { type EncodedEntries, encodeEntries } from '../../wire/data/entries.ts'

/** As much as a link takes at once, about. */
const KEPT_MAX = 4

/** Of the log of an open segment. */
export interface SourceLog {
  readonly end: number
  readEntries(fromEntry: number, maxBytes: number): readonly Entry[] | undefined
}

interface Kept {
  readonly from: number
  readonly encoded: EncodedEntries
  /** There were more entries than found room. */
  readonly full: boolean
  /** Followers that have not had it. */
  wanted: number
}

export class EntrySource {
  private readonly log: () => SourceLog | undefined
  private readonly place: SegmentPlace
  private readonly followers: number
  private kept: Kept[] = []

  constructor(log: () => SourceLog | undefined, place: SegmentPlace, followers: number) {
    this.log = log
    this.place = place
    this.followers = followers
  }

  /** For one of the followers. Undefined: memory does not reach back so far. */
  read(from: number, budgetBytes: number): EncodedEntries | undefined {
    const log = this.log()
    const kept = this.kept.find((one) => one.from === from)
    if (kept !== undefined && serves(kept, budgetBytes, log?.end ?? 0)) {
      if (--kept.wanted === 0) this.drop(kept)
      return kept.encoded
    }
    const entries = log?.readEntries(from, budgetBytes)
    if (log === undefined || entries === undefined) return undefined
    const encoded = encodeEntries(this.place, entries)
    if (kept !== undefined) this.drop(kept)
    if (this.followers > 1 && encoded.count > 0) {
      const full = from + encoded.count < log.end
      this.kept.push({ from, encoded, full, wanted: this.followers - 1 })
      if (this.kept.length > KEPT_MAX) this.kept.shift()
    }
    return encoded
  }

  /** All that there is has been committed. */
  forget(): void {
    if (this.kept.length > 0) this.kept = []
  }

  private drop(kept: Kept): void {
    this.kept = this.kept.filter((one) => one !== kept)
  }
}

/** Whether as much would be encoded now, about. */
function serves({ from, encoded, full }: Kept, budgetBytes: number, end: number): boolean {
  const { count, bytes } = encoded
  if (count > 1 && bytes > budgetBytes) return false
  return full || from + count === end
}
