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
// When part of the WAL is lost, the lost records may have been of any segment that can still have had entries in the
// WAL. A segment that is sealed and whole in its file is not touched by it; every other one is marked, not served.

import { toHex } from '../../base/bytes.ts'
import { EastGuardError } from '../../base/errors.ts'
import { type Entry, getEnvelope } from '../../model/entry.ts'
import { topicId } from '../../model/ids.ts'
import type { Disk } from '../../ports/disk.ts'
import type { Log } from '../../ports/log.ts'
import { segmentBase } from '../segment/paths.ts'
import { addSalvage } from '../segment/salvage.ts'
import type { SegmentEngine, StoredSegment } from '../segment/types.ts'
import { keyText, placeOfKey } from '../segment-keys.ts'
import type { Catalog, SegmentKey } from '../types.ts'
import { decodeSegmentEnd } from '../wal/control.ts'
import {
  KIND_ENTRY,
  KIND_SEAL,
  type LogRecord,
  type LogRecovery,
  type LostSpan,
} from '../wal/types.ts'
import { listSegments, type SegmentOnDisk } from './on-disk.ts'

/** Recovered bytes in memory before they are written out. */
const SETTLE_EVERY_BYTES = 32 * 1024 * 1024

interface WalSegment {
  readonly key: SegmentKey
  readonly topicName: string
  /** Of its entries there: the least number, what follows the greatest, how many. */
  first: number
  end: number
  count: number
  sealedAt: number | undefined
}

export interface RecoveryEnv {
  readonly disk: Disk
  readonly log: Log
  readonly catalog: Catalog
  readonly engine: SegmentEngine
}

export async function recoverSegments(
  env: RecoveryEnv,
  wal: LogRecovery,
): Promise<Map<string, StoredSegment>> {
  const inWal = await firstPass(env.catalog, wal)
  const segments = await openAll(env, await listSegments(env.disk), inWal)
  await secondPass(env, segments, inWal, wal)
  for (const segment of segments.values()) await segment.settle()
  for (const [text, { sealedAt }] of inWal) {
    const segment = segments.get(text)
    if (sealedAt === undefined || segment === undefined) continue
    if (segment.end < sealedAt) {
      segment.markDamaged(`it was sealed at ${sealedAt} entries, ${segment.end} are left`)
    } else await cut(segment, sealedAt)
  }
  if (wal.lost.length > 0) markTouched(env, segments, inWal, wal.lost)
  markShort(env, segments)
  return segments
}

async function cut(segment: StoredSegment, end: number): Promise<void> {
  // What is not served may keep what it should not have: its reader, `repair`, knows the end too.
  if (segment.damage !== undefined) return
  try {
    await segment.cut(end)
  } catch (error) {
    if (!(error instanceof EastGuardError) || error.code !== 'DAMAGED') throw error
    segment.markDamaged(error.message)
  }
}

/** Sealed segments that are not all here any more: a file was cut off between two blocks, or taken away. */
function markShort({ catalog, engine }: RecoveryEnv, segments: Map<string, StoredSegment>): void {
  for (const { key, endEntry } of catalog.segments()) {
    const end = segments.get(keyText(key))?.end ?? 0
    if (endEntry === undefined || end >= endEntry) continue
    markDamaged(engine, segments, key, `it was sealed at ${endEntry} entries, ${end} are left`)
  }
}

/** What of each live topic's segments the WAL holds. Entries of deleted topics are dropped here. */
async function firstPass(catalog: Catalog, wal: LogRecovery): Promise<Map<string, WalSegment>> {
  const found = new Map<string, WalSegment>()
  const note = (key: SegmentKey): WalSegment | undefined => {
    const text = keyText(key)
    const known = found.get(text)
    if (known !== undefined) return known
    const topicName = catalog.topicName(key.topicId)
    if (topicName === undefined) return undefined
    const fresh = {
      key,
      topicName,
      first: Number.POSITIVE_INFINITY,
      end: 0,
      count: 0,
      sealedAt: undefined,
    }
    found.set(text, fresh)
    return fresh
  }
  for await (const chunk of wal.replay()) {
    for (const record of chunk) {
      if (record.kind === KIND_ENTRY) {
        const { key, entryNumber } = placeOf(record)
        const segment = note(key)
        if (segment === undefined) continue
        segment.first = Math.min(segment.first, entryNumber)
        segment.end = Math.max(segment.end, entryNumber + 1)
        segment.count++
      } else if (record.kind === KIND_SEAL) {
        const { key, end } = decodeSegmentEnd(record.payload)
        const segment = note(key)
        if (segment !== undefined) segment.sealedAt = end
      }
    }
  }
  return found
}

function placeOf(record: LogRecord): { key: SegmentKey; entryNumber: number } {
  const { place, entry } = decoded(record)
  const id = topicId(toHex(place.topicIdBytes))
  const key = { topicId: id, range: place.range, segment: place.segment }
  return { key, entryNumber: entry.entryNumber }
}

function decoded(record: LogRecord): NonNullable<ReturnType<typeof getEnvelope>> {
  const envelope = getEnvelope(record.payload, 0)
  if (envelope === undefined) {
    // The record's own checksum held, so this was not made by the disk.
    throw new EastGuardError('DAMAGED', `the log record ${record.lsn} holds no entry`)
  }
  return envelope
}

async function openAll(
  { engine, catalog }: RecoveryEnv,
  onDisk: ReadonlyMap<string, SegmentOnDisk>,
  inWal: ReadonlyMap<string, WalSegment>,
): Promise<Map<string, StoredSegment>> {
  const segments = new Map<string, StoredSegment>()
  for (const [text, { key, topicName }] of onDisk) {
    const first = inWal.get(text)?.first
    const walFirst = first === undefined || !Number.isFinite(first) ? undefined : first
    segments.set(text, await engine.open(key, { topicName, walFirst }))
  }
  const live = new Set<string>()
  for (const { key } of catalog.segments()) live.add(keyText(key))
  for (const [text, { key, topicName, first }] of inWal) {
    if (segments.has(text) || !Number.isFinite(first)) continue
    // The WAL may still hold entries of a segment that was dropped with its file.
    if (!live.has(text)) continue
    segments.set(text, await engine.open(key, { topicName, walFirst: first }))
  }
  return segments
}

async function secondPass(
  { disk }: RecoveryEnv,
  segments: ReadonlyMap<string, StoredSegment>,
  inWal: ReadonlyMap<string, WalSegment>,
  wal: LogRecovery,
): Promise<void> {
  const stranded = new Map<string, Entry[]>()
  let bytes = 0
  const touched = new Set<StoredSegment>()
  for await (const chunk of wal.replay()) {
    for (const record of chunk) {
      if (record.kind !== KIND_ENTRY) continue
      const { entry } = decoded(record)
      const text = keyText(placeOf(record).key)
      const segment = segments.get(text)
      if (segment === undefined) continue
      if (!segment.recover(entry)) {
        // Of a deleted topic there may be files still, but nothing is kept for it.
        if (inWal.has(text) && entry.entryNumber >= segment.end) strand(stranded, text, entry)
        continue
      }
      bytes += record.payload.length
      touched.add(segment)
    }
    if (bytes < SETTLE_EVERY_BYTES) continue
    for (const segment of touched) await segment.settle()
    touched.clear()
    bytes = 0
  }
  for (const [text, entries] of stranded) {
    const { key, topicName } = inWal.get(text) as WalSegment
    await addSalvage(disk, segmentBase(topicName, key), placeOfKey(key), entries)
  }
}

/** Behind a gap: its segment cannot take it, and after this recovery the WAL will not have it any more. */
function strand(stranded: Map<string, Entry[]>, text: string, entry: Entry): void {
  const entries = stranded.get(text) ?? []
  entries.push({ ...entry, batch: entry.batch.slice() })
  stranded.set(text, entries)
}

function markTouched(
  { catalog, log, engine }: RecoveryEnv,
  segments: Map<string, StoredSegment>,
  inWal: ReadonlyMap<string, WalSegment>,
  lost: readonly LostSpan[],
): void {
  for (const span of lost) {
    log.error('part of the write-ahead log is lost although it was synced', {
      fromLsn: span.fromLsn,
      endLsn: span.endLsn,
      reason: span.reason,
    })
  }
  if (explained(inWal, lost)) return
  const reasons = lost.map((span) => span.reason).join('; ')
  const what = `entries of it may be among the lost records of the write-ahead log: ${reasons}`
  for (const { key, endEntry } of catalog.segments()) {
    const segment = segments.get(keyText(key))
    if (endEntry !== undefined && (segment?.end ?? 0) >= endEntry) continue
    markDamaged(engine, segments, key, what)
  }
}

/**
 * True when the gaps in the segments' entry numbers are as many as the lost records: then each lost record is one of those,
 * no other segment is touched, and a segment whose file does not fill its gap has been marked already.
 */
function explained(inWal: ReadonlyMap<string, WalSegment>, lost: readonly LostSpan[]): boolean {
  let missing = 0
  for (const { first, end, count } of inWal.values()) if (count > 0) missing += end - first - count
  for (const { fromLsn, endLsn } of lost) {
    if (endLsn === undefined) return false
    missing -= endLsn - fromLsn
  }
  return missing === 0
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
