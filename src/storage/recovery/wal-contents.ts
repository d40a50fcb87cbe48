// What a recovered WAL holds, by segment, and what its lost records held, as far as anything still tells:
//
//   - a lost record whose envelope checks (it has a checksum of its own) names its entry, though not the entry's bytes;
//   - entry numbers are dense, so a gap between two entries of a segment was that many records.
//
// When the two account for every lost record, no segment beyond those can have been touched.

import { toHex } from '../../base/bytes.ts'
import { EastGuardError } from '../../base/errors.ts'
import { ENVELOPE_BYTES, type Entry, getEnvelope, type SegmentPlace } from '../../model/entry.ts'
import { topicId } from '../../model/ids.ts'
import { keyText, type SegmentKey } from '../../model/segment-key.ts'
import type { Catalog } from '../types.ts'
import { decodeSegmentEnd } from '../wal/control.ts'
import {
  KIND_ENTRY,
  KIND_FENCE,
  KIND_SEAL,
  type LogRecord,
  type LogRecovery,
} from '../wal/types.ts'

const NOTHING: Uint8Array = new Uint8Array(0)

export interface WalSegment {
  readonly key: SegmentKey
  readonly topicName: string
  /** Of its entries there: the least number, what follows the greatest, how many. */
  first: number
  end: number
  count: number
  sealedAt: number | undefined
  /** By its first fence. */
  fencedAt: number | undefined
  /** What lost records held of it, without their batches: those are not to be believed. */
  readonly lost: Entry[]
}

export interface WalContents {
  /** Of live topics; entries of deleted ones are dropped here. */
  readonly segments: ReadonlyMap<string, WalSegment>
  /** Records are lost of which nothing tells what they held: any segment with entries in the WAL may be touched. */
  readonly untold: boolean
}

export async function walContents(catalog: Catalog, wal: LogRecovery): Promise<WalContents> {
  const segments = new Map<string, WalSegment>()
  const note = (key: SegmentKey): WalSegment | undefined => {
    const text = keyText(key)
    const known = segments.get(text)
    if (known !== undefined) return known
    const topicName = catalog.topicName(key.topicId)
    if (topicName === undefined) return undefined
    const fresh = { key, topicName, first: Number.POSITIVE_INFINITY, end: 0, count: 0 }
    const segment: WalSegment = {
      ...fresh,
      sealedAt: undefined,
      fencedAt: undefined,
      lost: [],
    }
    segments.set(text, segment)
    return segment
  }
  for await (const chunk of wal.replay()) {
    for (const record of chunk) {
      if (record.kind === KIND_ENTRY) {
        const { key, entry } = entryOf(record)
        const segment = note(key)
        if (segment === undefined) continue
        segment.first = Math.min(segment.first, entry.entryNumber)
        segment.end = Math.max(segment.end, entry.entryNumber + 1)
        segment.count++
      } else if (record.kind === KIND_SEAL) {
        const { key, end } = decodeSegmentEnd(record.payload)
        const segment = note(key)
        if (segment !== undefined) segment.sealedAt = end
      } else if (record.kind === KIND_FENCE) {
        const { key, end } = decodeSegmentEnd(record.payload)
        const segment = note(key)
        if (segment !== undefined) segment.fencedAt ??= end
      }
    }
  }
  let told = 0
  for await (const { payload } of wal.lostRecords()) {
    const decoded = getEnvelope(payload, 0)
    if (decoded?.entry.batch.length !== payload.length - ENVELOPE_BYTES) continue
    told++
    note(keyOf(decoded.place))?.lost.push({ ...decoded.entry, batch: NOTHING })
  }
  return { segments, untold: lostRecords(wal) > told + untoldGaps(segments) }
}

function lostRecords(wal: LogRecovery): number {
  let records = 0
  for (const { fromLsn, endLsn } of wal.lost) {
    records += endLsn === undefined ? Number.POSITIVE_INFINITY : endLsn - fromLsn
  }
  return records
}

/** Entries that are missing between two that are there, but for those whose own envelopes have told of them. */
function untoldGaps(segments: ReadonlyMap<string, WalSegment>): number {
  let missing = 0
  for (const { first, end, count, lost } of segments.values()) {
    if (count === 0) continue
    const inside = lost.filter(({ entryNumber }) => entryNumber > first && entryNumber < end)
    missing += end - first - count - inside.length
  }
  return missing
}

/** Every entry of the log with its place; a view, valid until the next one is asked for. */
export async function* placedEntries(
  wal: LogRecovery,
): AsyncGenerator<{ readonly key: SegmentKey; readonly entry: Entry }> {
  for await (const chunk of wal.replay()) {
    for (const record of chunk) if (record.kind === KIND_ENTRY) yield entryOf(record)
  }
}

export function entryOf(record: LogRecord): { readonly key: SegmentKey; readonly entry: Entry } {
  const envelope = getEnvelope(record.payload, 0)
  if (envelope === undefined) {
    // The record's own checksum held, so this was not made by the disk.
    throw new EastGuardError('DAMAGED', `the log record ${record.lsn} holds no entry`)
  }
  return { key: keyOf(envelope.place), entry: envelope.entry }
}

function keyOf({ topicIdBytes, range, segment }: SegmentPlace): SegmentKey {
  return { topicId: topicId(toHex(topicIdBytes)), range, segment }
}
