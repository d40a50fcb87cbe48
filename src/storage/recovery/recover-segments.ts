// From a WAL and segment files, as a crash left them, to segments whose every entry is in a synced file (PROTOCOLS §3):
//
//   pass 1 over the WAL    each segment's least entry number there, and its seal
//   open                   every segment that has a file, or entries in the WAL
//   pass 2 over the WAL    each entry goes to its segment, which skips what its file has already
//   settle, cut            written and synced; what lies at or above a seal is dropped
//
// Only then may the caller begin a new WAL, which frees the old one. Nothing here changes the old WAL, so a crash at any
// point leaves all of this to be done again, with the same result: what is in the files by then is skipped.
//
// When part of the WAL is lost, and nothing tells what it held (wal-contents.ts), it may have been of any segment that can
// still have had entries in the WAL. A segment that is sealed and whole in its file is not touched by it; every other one
// is marked, not served.
//
// A sealed segment that others have too (`elsewhere`) is not damaged by what is missing: it is incomplete, and what there is of
// it is the beginning of a copy. Where it ends nobody asks: that is known.

import { EastGuardError } from '../../base/errors.ts'
import { placeBatch } from '../../model/batch/header.ts'
import { holeBatch } from '../../model/batch/hole.ts'
import type { Entry } from '../../model/entry.ts'
import { keyText, placeOfKey, type SegmentKey } from '../../model/segment-key.ts'
import type { Disk } from '../../ports/disk.ts'
import type { Log } from '../../ports/log.ts'
import { segmentBase } from '../segment/paths.ts'
import { addSalvage } from '../segment/salvage.ts'
import type { SegmentEngine, StoredSegment } from '../segment/types.ts'
import { TopicGone } from '../segment/writer.ts'
import type { Catalog, CatalogSegment, LogStoreListener } from '../types.ts'
import { KIND_ENTRY, type LogRecovery, type LostSpan } from '../wal/types.ts'
import { listSegments, type SegmentOnDisk } from './on-disk.ts'
import { entryOf, type WalSegment, walContents } from './wal-contents.ts'

/** Recovered bytes in memory before they are written out. */
const SETTLE_EVERY_BYTES = 32 * 1024 * 1024

const TOUCHED = 'entries of it may be among the lost records of the write-ahead log'

/** Whether a segment that was marked for this reason may miss more than shows. */
export function mayMissMore(reason: string): boolean {
  return reason.includes(TOUCHED)
}

export interface RecoveryEnv {
  readonly disk: Disk
  readonly log: Log
  readonly catalog: Catalog
  readonly engine: SegmentEngine
  readonly recovering?: LogStoreListener['recovering']
}

export async function recoverSegments(
  env: RecoveryEnv,
  wal: LogRecovery,
): Promise<Map<string, StoredSegment>> {
  const { segments: inWal, untold } = await walContents(env.catalog, wal)
  const catalog = catalogByText(env.catalog)
  const segments = await openAll(env, catalog, await listSegments(env.disk), inWal)
  await secondPass(env, segments, inWal, wal)
  await settleAll(segments, segments.values(), env.recovering)
  for (const [text, { sealedAt, fencedAt }] of inWal) {
    const segment = segments.get(text)
    if (segment === undefined) continue
    if (fencedAt !== undefined) segment.recoverFence(fencedAt)
    if (sealedAt === undefined) continue
    if (segment.end < sealedAt && catalog.get(text)?.elsewhere !== true) {
      segment.markDamaged(`it was sealed at ${sealedAt} entries, ${segment.end} are left`)
    } else await cut(segment, sealedAt)
  }
  await recoverHighWatermarks(catalog, segments)
  logLost(env.log, wal.lost)
  if (untold) markTouched(env, segments, wal.lost)
  markShort(env, segments)
  return segments
}

/** A topic may be deleted meanwhile: of what has no file of it yet nothing is kept. */
async function settleAll(
  segments: Map<string, StoredSegment>,
  some: Iterable<StoredSegment>,
  recovering?: RecoveryEnv['recovering'],
): Promise<void> {
  const all = Array.from(some)
  for (const [done, segment] of all.entries()) {
    recovering?.('segments are written out', done, all.length)
    try {
      await segment.settle()
    } catch (error) {
      if (!(error instanceof TopicGone)) throw error
      segments.delete(keyText(segment.key))
      await segment.retire()
    }
  }
}

function catalogByText(catalog: Catalog): ReadonlyMap<string, CatalogSegment> {
  const all = new Map<string, CatalogSegment>()
  for (const segment of catalog.segments()) all.set(keyText(segment.key), segment)
  return all
}

function isRepairable(segment: CatalogSegment | undefined): boolean {
  return segment?.endEntry !== undefined && segment.elsewhere === true
}

/** Of open segments: of the others the end is known, and with no other replica all is below it. */
async function recoverHighWatermarks(
  catalog: ReadonlyMap<string, CatalogSegment>,
  segments: ReadonlyMap<string, StoredSegment>,
): Promise<void> {
  for (const [text, segment] of segments) {
    const known = catalog.get(text)
    if (known?.elsewhere !== true || known.endEntry !== undefined) continue
    await marked(segment, segment.recoverHighWatermark())
  }
}

async function cut(segment: StoredSegment, end: number): Promise<void> {
  // What is not served may keep what it should not have: its reader, `repair`, knows the end too.
  if (segment.damage !== undefined) return
  await marked(segment, segment.cut(end))
}

/** Damage that shows in one segment keeps nothing else from being recovered. */
async function marked(segment: StoredSegment, work: Promise<void>): Promise<void> {
  try {
    await work
  } catch (error) {
    if (!(error instanceof EastGuardError) || error.code !== 'DAMAGED') throw error
    segment.markDamaged(error.message)
  }
}

/** Sealed segments that are not all here any more: a file was cut off between two blocks, or taken away. */
function markShort({ catalog, engine }: RecoveryEnv, segments: Map<string, StoredSegment>): void {
  for (const { key, endEntry, elsewhere } of catalog.segments()) {
    const end = segments.get(keyText(key))?.end ?? 0
    if (endEntry === undefined || end >= endEntry || elsewhere === true) continue
    markDamaged(engine, segments, key, `it was sealed at ${endEntry} entries, ${end} are left`)
  }
}

async function openAll(
  { engine, recovering }: RecoveryEnv,
  catalog: ReadonlyMap<string, CatalogSegment>,
  onDisk: ReadonlyMap<string, SegmentOnDisk>,
  inWal: ReadonlyMap<string, WalSegment>,
): Promise<Map<string, StoredSegment>> {
  const segments = new Map<string, StoredSegment>()
  const count = new Set([...onDisk.keys(), ...inWal.keys()]).size
  const told = (): void => recovering?.('segments are opened', segments.size, count)
  for (const [text, { key, topicName, salvaged }] of onDisk) {
    told()
    const first = inWal.get(text)?.first
    const walFirst = first === undefined || !Number.isFinite(first) ? undefined : first
    const repairable = isRepairable(catalog.get(text))
    const segment = await engine.open(key, { topicName, walFirst, repairable })
    // Sealed where it is whole, it lacks nothing: what stands behind a gap lies above its end.
    const whole = segment.end >= (catalog.get(text)?.endEntry ?? Infinity)
    if (salvaged && !whole) segment.markDamaged('entries before those in its .salvage are lost')
    segments.set(text, segment)
  }
  for (const [text, { key, topicName, first }] of inWal) {
    if (segments.has(text) || !Number.isFinite(first)) continue
    // The WAL may still hold entries of a segment that was dropped with its file.
    const known = catalog.get(text)
    if (known === undefined) continue
    const repairable = isRepairable(known)
    told()
    segments.set(text, await engine.open(key, { topicName, walFirst: first, repairable }))
  }
  return segments
}

async function secondPass(
  env: RecoveryEnv,
  segments: Map<string, StoredSegment>,
  inWal: ReadonlyMap<string, WalSegment>,
  wal: LogRecovery,
): Promise<void> {
  const stranded = new Map<string, Entry[]>()
  let bytes = 0
  const touched = new Set<StoredSegment>()
  for await (const chunk of wal.replay()) {
    for (const record of chunk) {
      if (record.kind !== KIND_ENTRY) continue
      const { key, entry } = entryOf(record)
      const text = keyText(key)
      // Of a deleted topic there may be files still, but nothing is kept for it.
      const segment = inWal.has(text) ? segments.get(text) : undefined
      if (segment === undefined) continue
      if (!segment.recover(entry)) {
        // What is behind a gap is copied with what fills the gap, where others have it.
        const lost = entry.entryNumber >= segment.end && segment.damage !== undefined
        if (lost) strand(stranded, text, entry)
        continue
      }
      bytes += record.payload.length
      touched.add(segment)
    }
    if (bytes < SETTLE_EVERY_BYTES) continue
    await settleAll(segments, touched)
    touched.clear()
    bytes = 0
  }
  strandLost(env, segments, inWal, stranded)
  for (const [text, entries] of stranded) {
    const { key, topicName } = inWal.get(text) as WalSegment
    await addSalvage(env.disk, segmentBase(topicName, key), placeOfKey(key), entries)
  }
}

/** Lost entries that no file has: their segments are marked, and it is kept which they were. */
function strandLost(
  { catalog, engine }: RecoveryEnv,
  segments: Map<string, StoredSegment>,
  inWal: ReadonlyMap<string, WalSegment>,
  stranded: Map<string, Entry[]>,
): void {
  for (const known of catalog.segments()) {
    if (isRepairable(known)) continue
    const { key, endEntry } = known
    const text = keyText(key)
    const inSegment = inWal.get(text)
    if (inSegment === undefined) continue
    const end = Math.min(endEntry ?? Infinity, inSegment.sealedAt ?? Infinity)
    for (const entry of inSegment.lost) {
      const { entryNumber } = entry
      if (entryNumber < (segments.get(text)?.end ?? 0) || entryNumber >= end) continue
      markDamaged(engine, segments, key, `entry ${entryNumber} of segment ${key.segment} is lost`)
      strand(stranded, text, holeAt(entry, key))
    }
  }
}

function holeAt(entry: Entry, key: SegmentKey): Entry {
  const batch = holeBatch(entry.recordCount)
  placeBatch(batch, entry.baseOffset, key.segment)
  return { ...entry, batch }
}

/** Behind a gap: its segment cannot take it, and after this recovery the WAL will not have it any more. */
function strand(stranded: Map<string, Entry[]>, text: string, entry: Entry): void {
  const entries = stranded.get(text) ?? []
  entries.push({ ...entry, batch: entry.batch.slice() })
  stranded.set(text, entries)
}

function logLost(log: Log, lost: readonly LostSpan[]): void {
  for (const span of lost) {
    log.error('part of the write-ahead log is lost although it was synced', {
      fromLsn: span.fromLsn,
      endLsn: span.endLsn,
      reason: span.reason,
    })
  }
}

function markTouched(
  { catalog, engine }: RecoveryEnv,
  segments: Map<string, StoredSegment>,
  lost: readonly LostSpan[],
): void {
  const reasons = lost.map((span) => span.reason).join('; ')
  const what = `${TOUCHED}: ${reasons}`
  for (const { key, endEntry, elsewhere } of catalog.segments()) {
    const segment = segments.get(keyText(key))
    if (endEntry !== undefined && ((segment?.end ?? 0) >= endEntry || elsewhere === true)) continue
    markDamaged(engine, segments, key, what)
  }
}

/** Marks a segment, also one of which nothing is on this disk. */
export function markDamaged(
  engine: SegmentEngine,
  segments: Map<string, StoredSegment>,
  key: SegmentKey,
  what: string,
): void {
  const text = keyText(key)
  const segment = segments.get(text) ?? engine.create(key, { durable: () => {} })
  segment.markDamaged(what)
  segments.set(text, segment)
}
