// What a data directory has lost, and the way on without it. One look (storage/repair/) says what is missing; accepting it
// is a start of the broker without doors, so that all that is whole is in files, and then each damaged segment made anew:
//
//   lock ─> look ─> report ──accepted──> open as a start does (WAL into files, a new WAL) ─> close the store
//     ─> look again ─> segments made anew, one by one ─> the list of damage goes
//
// Segments that other brokers hold too are passed over: their marks stay, so that nobody believes what is here of an open one,
// and the broker copies what is damaged anew.
//
// Every step can be broken off and done again: what was done is whole to the next look, what was not is still marked.

import { journaledState } from '../broker/shards/journaled.ts'
import { catalogOf } from '../broker/topics/catalog.ts'
import { freshState, segmentFacts } from '../broker/topics/facts.ts'
import type { Clock } from '../ports/clock.ts'
import type { Disk } from '../ports/disk.ts'
import type { Log } from '../ports/log.ts'
import type { Random } from '../ports/random.ts'
import { type DataDir, lockDataDir } from '../storage/datadir/data-dir.ts'
import { readNodeFile } from '../storage/datadir/node-file.ts'
import { JOURNAL_DIR, openJournal, readJournal } from '../storage/journal/journal.ts'
import { openLogStore, WAL_DIR } from '../storage/log-store.ts'
import { forgetDamage, renewDamage, unreadableDamage } from '../storage/recovery/damage-file.ts'
import { rebuildSegment } from '../storage/repair/rebuild.ts'
import { type DirSurvey, surveyDir } from '../storage/repair/survey.ts'
import type { Catalog, LogStoreOptions } from '../storage/types.ts'

export interface RepairOptions {
  readonly ports: {
    readonly disk: Disk
    readonly clock: Clock
    readonly random: Random
    readonly log: Log
  }
  readonly settings: LogStoreOptions & {
    readonly displayName: string
    readonly journalFileBytes: number
  }
  /** Told what is wrong before anything is changed; resolves with whether to go on. */
  accept(found: DirSurvey): Promise<boolean>
}

/** Resolves with whether something was changed. Rejects as a start does, with DAMAGED when the metadata is. */
export async function repairDataDir(options: RepairOptions): Promise<boolean> {
  const { disk, random } = options.ports
  const locked = await lockDataDir({
    disk,
    random,
    displayName: options.settings.displayName,
    journalDir: JOURNAL_DIR,
    walDir: WAL_DIR,
  })
  let dataDir: DataDir | undefined
  try {
    if (!(await options.accept(await look(disk)))) return false
    dataDir = await locked.open()
    await repair(options, dataDir)
    return true
  } finally {
    await (dataDir ?? locked).close()
  }
}

/** Of a directory that no broker has begun. */
const NOTHING: Catalog = { topicName: () => undefined, segments: () => [] }

async function look(disk: Disk): Promise<DirSurvey> {
  const state = journaledState(await readJournal(disk))
  const node = await readNodeFile(disk)
  if (node === undefined) return surveyDir(disk, WAL_DIR, NOTHING, [])
  const { nodeId } = node
  return surveyDir(disk, WAL_DIR, catalogOf(state, nodeId), segmentFacts(state, nodeId))
}

async function repair(options: RepairOptions, dataDir: DataDir): Promise<void> {
  const { ports, settings } = options
  const { disk } = ports
  let failure: Error | undefined
  const failed = (error: Error): void => {
    failure ??= error
  }
  const { identity } = dataDir
  const fileBytes = settings.journalFileBytes
  const journal = await openJournal({ ...ports, fileBytes, identity, onFailed: failed })
  try {
    const state = journaledState(journal.recovered)
    const catalog = catalogOf(state, dataDir.nodeId)
    if (await unreadableDamage(disk)) await renewDamage(disk, catalog)
    const facts = segmentFacts(state, dataDir.nodeId)
    const { states } = await surveyDir(disk, WAL_DIR, catalog, facts)
    const listener = { roomAgain: () => undefined, failed }
    const store = await openLogStore({
      ...ports,
      identity,
      catalog,
      listener,
      options: settings,
      unreadableIsDamage: true,
    })
    try {
      for (const lost of states) await store.stageState(lost.key, lost.token, freshState(lost))
    } finally {
      await store.close()
    }
    if (failure !== undefined) throw failure
    await dataDir.confirm('journal')
    await dataDir.confirm('wal')
    const { findings } = await surveyDir(disk, WAL_DIR, catalog, facts)
    for (const { facts: about, base, entries, gaps, rebuild } of findings) {
      if (!rebuild) continue
      const { key, firstPartition, firstOffsets } = about
      const firstOffset = firstOffsets[0] ?? 0
      await rebuildSegment(disk, { key, base, firstPartition, firstOffset, entries, gaps })
    }
    await forgetDamage(disk, catalog)
  } finally {
    await journal.close()
  }
}
