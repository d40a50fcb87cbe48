// One segment judged by what is left of it: whole, or which entries and offsets are lost and what is to be rebuilt.

import type { Disk } from '../../ports/disk.ts'
import { mayMissMore } from '../recovery/recover-segments.ts'
import { segmentBase } from '../segment/paths.ts'
import { type Bounds, type Gap, gapsOf, type Placed } from './losses.ts'
import { type Fault, type LeftEntry, type Survey, surveySegment } from './survey-segment.ts'
import type { Loss, SegmentFacts } from './types.ts'

export interface Evidence {
  /** The least entry number that the WAL has. */
  readonly walFirst: number | undefined
  /** Its entries in the WAL from the sound end of the file on. */
  readonly inWal: readonly LeftEntry[]
  /** Why an earlier start marked it. */
  readonly mark: string | undefined
  /** What lost records of the WAL held of it; their places count, their bytes do not. */
  readonly lost: readonly Placed[]
  /** What is wrong with the WAL, and whether nothing tells what that has cost. */
  readonly lostInWal: string | undefined
  readonly untold: boolean
}

/** A segment of which not all is well. */
export interface Finding {
  readonly facts: SegmentFacts
  readonly base: string
  readonly entries: readonly LeftEntry[]
  readonly gaps: readonly Gap[]
  readonly losses: readonly Loss[]
  /** The file is to be made anew, though perhaps nothing is lost. */
  readonly rebuild: boolean
}

/** Undefined: nothing is wrong with it. */
export async function judgeSegment(
  disk: Disk,
  facts: SegmentFacts,
  look: Survey,
  evidence: Evidence,
): Promise<Finding | undefined> {
  const { mark } = evidence
  const doubt = evidence.untold ? evidence.lostInWal : undefined
  const base = segmentBase(facts.topicName, facts.key)
  const open = facts.endEntry === undefined
  const dense = evidence.inWal.every((entry, i) => entry.entryNumber === look.soundEnd + i)
  const end = look.soundEnd + evidence.inWal.length
  // From the sound end on all comes out of the WAL again: a torn block there is no damage.
  const torn = (evidence.walFirst ?? Number.POSITIVE_INFINITY) <= look.soundEnd
  const damaged = look.faults.length > 0 && !torn
  const told = evidence.lost.some(
    ({ entryNumber }) => entryNumber >= end && entryNumber < (facts.endEntry ?? Infinity),
  )
  const whole = dense && !told && !damaged && !look.salvaged && end >= (facts.endEntry ?? 0)
  if (whole) {
    const why = open ? (doubt ?? (mayBeShort(mark) ? mark : undefined)) : undefined
    // With all of it in the WAL the next start begins the file anew.
    const rebuild = look.headerPageFault && evidence.walFirst !== 0
    if (why === undefined && mark === undefined && !rebuild) return undefined
    const losses = why === undefined ? [] : [moreLost(facts, base, end, why)]
    if (!rebuild) {
      return { facts, base, entries: [], gaps: [], losses, rebuild: false }
    }
    const { entries } = await surveySegment(disk, base, facts.key, true)
    return { facts, base, entries, gaps: [], losses, rebuild }
  }
  const listed = await surveySegment(disk, base, facts.key, true)
  return judgeDamaged(facts, base, listed, evidence, damaged)
}

function mayBeShort(mark: string | undefined): boolean {
  return mark !== undefined && mayMissMore(mark)
}

function judgeDamaged(
  facts: SegmentFacts,
  base: string,
  survey: Survey,
  evidence: Evidence,
  damaged: boolean,
): Finding {
  const entries = leftEntries(facts, survey, evidence.inWal)
  const bounds: Bounds = {
    firstPartition: facts.firstPartition,
    firstOffsets: facts.firstOffsets,
    endOffsets: facts.endOffsets ?? witnessedEnds(facts, survey, [...entries, ...evidence.lost]),
    endEntry: facts.endEntry ?? witnessedEnd(survey, [...entries, ...evidence.lost]),
  }
  const gaps = gapsOf(entries, bounds)
  const losses = gaps.map((gap) => lossOf(facts, base, survey, evidence, entries, gap))
  const { mark } = evidence
  const doubt = evidence.untold ? evidence.lostInWal : undefined
  if (facts.endEntry === undefined) {
    const torn = damaged && survey.openEnded ? survey.faults.at(-1)?.what : undefined
    const why = doubt ?? (mayBeShort(mark) ? mark : torn)
    if (why !== undefined) losses.push(moreLost(facts, base, bounds.endEntry, why))
  }
  return { facts, base, entries, gaps, losses, rebuild: true }
}

/** All that is left below the end, each entry where its predecessors say. */
function leftEntries(
  facts: SegmentFacts,
  survey: Survey,
  inWal: readonly LeftEntry[],
): readonly LeftEntry[] {
  const all = new Map<number, LeftEntry>()
  for (const entry of [...survey.entries, ...inWal]) {
    if (!all.has(entry.entryNumber)) all.set(entry.entryNumber, entry)
  }
  const next = facts.firstOffsets.slice()
  return [...all.values()]
    .sort((a, b) => a.entryNumber - b.entryNumber)
    .filter((entry) => {
      const at = entry.partition - facts.firstPartition
      const from = next[at]
      if (entry.entryNumber >= (facts.endEntry ?? Number.POSITIVE_INFINITY)) return false
      if (from === undefined || entry.baseOffset < from) return false
      next[at] = entry.baseOffset + entry.recordCount
      return true
    })
}

function witnessedEnd(survey: Survey, placed: readonly Placed[]): number {
  return placed.reduce(
    (end, { entryNumber }) => Math.max(end, entryNumber + 1),
    survey.witnessedEnd,
  )
}

function witnessedEnds(
  facts: SegmentFacts,
  survey: Survey,
  entries: readonly Placed[],
): readonly number[] {
  const ends = facts.firstOffsets.map((first, at) =>
    Math.max(first, survey.witnessedOffsets.get(facts.firstPartition + at) ?? 0),
  )
  for (const { partition, baseOffset, recordCount } of entries) {
    const at = partition - facts.firstPartition
    ends[at] = Math.max(ends[at] ?? 0, baseOffset + recordCount)
  }
  return ends
}

function lossOf(
  facts: SegmentFacts,
  base: string,
  survey: Survey,
  evidence: Evidence,
  entries: readonly LeftEntry[],
  gap: Gap,
): Loss {
  const before = entries.findLast((e) => e.entryNumber < gap.first && e.from === 'log')
  const reached = before === undefined ? 0 : before.position + before.bytes
  const fault: Fault = survey.faults.find(({ position }) => (position ?? -1) >= reached) ??
    survey.faults[0] ?? {
      file: `${base}.log`,
      position: undefined,
      what: evidence.mark ?? evidence.lostInWal ?? whyMissing(survey),
    }
  let records = 0
  for (const { from, end } of gap.offsets) records += end - from
  const { file, position, what } = fault
  const span = { first: gap.first, end: gap.end }
  return { facts, file, position, what, entries: span, offsets: gap.offsets, records }
}

function whyMissing(survey: Survey): string {
  return survey.exists ? 'the entries are in no file' : 'the file is not there'
}

/** Entries from `end` on that nothing tells of. */
function moreLost(facts: SegmentFacts, base: string, end: number, why: string): Loss {
  const what = `entries from ${end} on may be lost without a trace: ${why}`
  return {
    facts,
    file: `${base}.log`,
    position: undefined,
    what,
    entries: undefined,
    offsets: [],
    records: 0,
  }
}
