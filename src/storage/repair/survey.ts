// The whole data directory looked at: for each segment that the metadata knows, what is left of it in files and WAL, what is
// lost, and what would be done about it. Nothing is changed.
//
//   segment files ──first look──> sound up to entry n ─┐
//   WAL ──> entries from n on, lost spans ─────────────┼──> whole?  else all that is left ──> gaps ──> losses, rebuilds
//   `damaged` ──> marked by an earlier start ──────────┘
//
// A loss is exact where the neighbours of a gap, block headers, the index or the metadata tell what was there. Where nothing
// tells, at the end of an open segment, it says from where on more may be lost.

import { EastGuardError } from '../../base/errors.ts'
import { keyText } from '../../model/segment-key.ts'
import type { Disk } from '../../ports/disk.ts'
import { readChecked } from '../checked-file.ts'
import { readDamage } from '../recovery/damage-file.ts'
import { listOrNothing } from '../recovery/on-disk.ts'
import { placedEntries, walContents } from '../recovery/wal-contents.ts'
import { segmentBase } from '../segment/paths.ts'
import { statePath } from '../states.ts'
import { TRASH_DIR } from '../trash.ts'
import type { Catalog } from '../types.ts'
import { recoverLog } from '../wal/recover.ts'
import type { LogRecovery } from '../wal/types.ts'
import { type Finding, judgeSegment } from './judge-segment.ts'
import type { LeftEntry } from './survey-segment.ts'
import { surveySegment } from './survey-segment.ts'
import type { Loss, SegmentFacts } from './types.ts'

export interface DirSurvey {
  readonly losses: readonly Loss[]
  /** Wrong, and no loss: what is made anew by itself or rewritten. */
  readonly notices: readonly string[]
  readonly findings: readonly Finding[]
  /** Open segments whose range state is not what was stored. */
  readonly states: readonly SegmentFacts[]
}

export async function surveyDir(
  disk: Disk,
  walDir: string,
  catalog: Catalog,
  segments: readonly SegmentFacts[],
): Promise<DirSurvey> {
  const losses: Loss[] = []
  const notices: string[] = []
  const marks = await marksOf(disk, losses)
  const wal = await recoverLog(disk, walDir)
  const { segments: inWal, untold } = await walContents(catalog, wal)
  const reasons = wal.lost.map(({ reason }) => reason).join('; ')
  const lostInWal =
    reasons === '' ? undefined : `records of the write-ahead log are lost: ${reasons}`
  const looks = new Map<string, Awaited<ReturnType<typeof surveySegment>>>()
  for (const { key, topicName } of segments) {
    const look = await surveySegment(disk, segmentBase(topicName, key), key, false)
    looks.set(keyText(key), look)
  }
  const unfiled = await unfiledEntries(wal, (text) => looks.get(text)?.soundEnd)
  const findings: Finding[] = []
  const states: SegmentFacts[] = []
  for (const facts of segments) {
    const text = keyText(facts.key)
    const look = looks.get(text)
    if (look === undefined) continue
    const finding = await judgeSegment(disk, facts, look, {
      walFirst: inWal.get(text)?.first,
      inWal: unfiled.get(text) ?? [],
      lost: inWal.get(text)?.lost ?? [],
      mark: marks.get(text),
      lostInWal,
      untold,
    })
    if (look.indexFault) notices.push(`${segmentBase(facts.topicName, facts.key)}.index`)
    if (finding !== undefined) {
      findings.push(finding)
      losses.push(...finding.losses)
    }
    if (await stateIsGone(disk, facts, losses)) states.push(facts)
  }
  const trash = await listOrNothing(disk, TRASH_DIR)
  for (const { name } of trash) notices.push(`${TRASH_DIR}/${name}`)
  return { losses, notices, findings, states }
}

async function marksOf(disk: Disk, losses: Loss[]): Promise<ReadonlyMap<string, string>> {
  try {
    return await readDamage(disk)
  } catch (error) {
    if (!(error instanceof EastGuardError) || error.code !== 'DAMAGED') throw error
    losses.push({
      facts: undefined,
      file: 'damaged',
      position: undefined,
      what: 'the list of damaged segments cannot be read: open segments that lost entries at their ends are not known any more',
      entries: undefined,
      offsets: [],
      records: 0,
    })
    return new Map()
  }
}

/** By segment, in entry order: entries of the WAL at or behind the sound end of the segment's file. */
async function unfiledEntries(
  wal: LogRecovery,
  soundEnd: (text: string) => number | undefined,
): Promise<ReadonlyMap<string, LeftEntry[]>> {
  const found = new Map<string, LeftEntry[]>()
  for await (const { key, entry } of placedEntries(wal)) {
    const text = keyText(key)
    const end = soundEnd(text)
    if (end === undefined || entry.entryNumber < end) continue
    const list = found.get(text) ?? []
    found.set(text, list)
    const { entryNumber, partition, baseOffset, recordCount, logTimeMs } = entry
    const spot = { entryNumber, partition, baseOffset, recordCount, logTimeMs }
    list.push({ ...spot, from: 'wal', position: -1, bytes: 0 })
  }
  return found
}

async function stateIsGone(disk: Disk, facts: SegmentFacts, losses: Loss[]): Promise<boolean> {
  if (facts.endEntry !== undefined || facts.token === '') return false
  const path = statePath(facts.topicName, facts.key, facts.token)
  let fault = 'it is not there'
  try {
    if ((await readChecked(disk, path)) !== undefined) return false
  } catch (error) {
    if (!(error instanceof EastGuardError) || error.code !== 'DAMAGED') throw error
    fault = error.message
  }
  losses.push({
    facts,
    file: path,
    position: undefined,
    what: `what is known of producers is lost: ${fault}. A retry from before may be refused, or stored twice`,
    entries: undefined,
    offsets: [],
    records: 0,
  })
  return true
}
