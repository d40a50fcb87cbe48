// What is missing between the entries that are left, and what stands in its place. Entry numbers and offsets are dense, so
// that the neighbours of a gap say what was in it:
//
//   entry        0      1      2      3      4      5
//   partition 0  [0,2)                [5,6)                 offsets 2 to 4 were in entry 1 or 2
//   partition 1                              [0,1)  ?       offset 1 on: in entry 5, if anything else knows the end
//
// A piece of a partition's offsets that is missing goes, whole, into one of the lost entries between its neighbours: the
// first that is free, the piece that must be placed soonest first. Lost entries that are left over have no offsets.

import type { LostOffsets } from './types.ts'

/** Of an entry that is left: enough to put it in its place. */
export interface Placed {
  readonly entryNumber: number
  readonly partition: number
  readonly baseOffset: number
  readonly recordCount: number
}

export interface Bounds {
  readonly firstPartition: number
  readonly firstOffsets: readonly number[]
  /** By partition, counted from the first: where it ends as far as anything knows. */
  readonly endOffsets: readonly number[]
  readonly endEntry: number
}

/** A run of lost entries [first, end), and the offsets that went with it. */
export interface Gap {
  readonly first: number
  readonly end: number
  readonly offsets: readonly LostOffsets[]
}

interface Missing extends LostOffsets {
  /** Numbers of the entries of the partition before and behind it. */
  readonly after: number
  readonly before: number
}

/** `known` in entry order, each entry once, all below the end. */
export function gapsOf(known: readonly Placed[], bounds: Bounds): readonly Gap[] {
  const waiting = missingOffsets(known, bounds).sort((a, b) => a.after - b.after)
  const gaps: Gap[] = []
  let next = 0
  let eligible: Missing[] = []
  const close = (end: number): void => {
    if (end <= next) return
    while (waiting.length > 0 && (waiting[0] as Missing).after < next) {
      eligible.push(waiting.shift() as Missing)
    }
    eligible.sort((a, b) => a.before - b.before || a.partition - b.partition)
    const placed = eligible.slice(0, end - next)
    eligible = eligible.slice(placed.length)
    const offsets = placed.map(({ partition, from, end: to }) => ({ partition, from, end: to }))
    gaps.push({ first: next, end, offsets })
  }
  for (const { entryNumber } of known) {
    close(entryNumber)
    next = entryNumber + 1
  }
  close(bounds.endEntry)
  return gaps
}

function missingOffsets(known: readonly Placed[], bounds: Bounds): Missing[] {
  const { firstPartition, firstOffsets, endOffsets, endEntry } = bounds
  const next = firstOffsets.slice()
  const last = firstOffsets.map(() => -1)
  const missing: Missing[] = []
  const reached = (at: number, offset: number, entryNumber: number): void => {
    const from = next[at] as number
    if (offset > from) {
      const partition = firstPartition + at
      missing.push({ partition, from, end: offset, after: last[at] as number, before: entryNumber })
    }
  }
  for (const { entryNumber, partition, baseOffset, recordCount } of known) {
    const at = partition - firstPartition
    reached(at, baseOffset, entryNumber)
    next[at] = baseOffset + recordCount
    last[at] = entryNumber
  }
  for (let at = 0; at < next.length; at++) reached(at, endOffsets[at] ?? 0, endEntry)
  return missing
}

/** The entries in place of a gap, in order. `nextOffset` of the first partition is where those without offsets stand. */
export function fillsOf(gap: Gap, firstPartition: number, nextOffset: number): readonly Placed[] {
  const fills: Placed[] = []
  let standing = nextOffset
  for (let entryNumber = gap.first; entryNumber < gap.end; entryNumber++) {
    const lost = gap.offsets[entryNumber - gap.first]
    if (lost === undefined) {
      const partition = firstPartition
      fills.push({ entryNumber, partition, baseOffset: standing, recordCount: 0 })
      continue
    }
    const { partition, from, end } = lost
    fills.push({ entryNumber, partition, baseOffset: from, recordCount: end - from })
    if (partition === firstPartition) standing = end
  }
  return fills
}
