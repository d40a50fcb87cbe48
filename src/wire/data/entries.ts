// Entries in a frame: as they lie on a disk, envelope (model/entry.ts) and batch, one behind another. They have checksums of
// their own, that of the envelope and that of the batch, which together cover every byte; so no other covers them again.
//
// A sender has entries in pieces. Small batches are copied behind their envelopes, because a piece costs more than a copy of
// few bytes; large ones go as they are. One encoding serves all followers of a segment.

import { getU32 } from '../../base/bytes.ts'
import { Truncated } from '../../base/cursor.ts'
import { BATCH_HEADER_BYTES, batchCrcMatches, batchSize } from '../../model/batch/header.ts'
import {
  ENVELOPE_BYTES,
  type Entry,
  getEnvelope,
  putEnvelope,
  type SegmentPlace,
  samePlace,
} from '../../model/entry.ts'
import type { Entries } from './types.ts'

/** A batch of fewer bytes is copied. */
const COPIED_BELOW_BYTES = 4096
const BATCH_LENGTH_AT = 80

export interface EncodedEntries {
  readonly count: number
  readonly bytes: number
  readonly pieces: readonly Uint8Array[]
}

export const NO_ENTRIES: EncodedEntries = { count: 0, bytes: 0, pieces: [] }

/** In a frame. */
export function entryBytes({ batch }: Entry): number {
  return ENVELOPE_BYTES + batch.length
}

export function entriesBytes(entries: readonly Entry[]): number {
  let bytes = 0
  for (const entry of entries) bytes += entryBytes(entry)
  return bytes
}

/** The batches must not change from now on. */
export function encodeEntries(place: SegmentPlace, entries: readonly Entry[]): EncodedEntries {
  let own = 0
  let bytes = 0
  for (const { batch } of entries) {
    bytes += ENVELOPE_BYTES + batch.length
    own += ENVELOPE_BYTES + (batch.length < COPIED_BELOW_BYTES ? batch.length : 0)
  }
  const copy = new Uint8Array(own)
  const pieces: Uint8Array[] = []
  let from = 0
  let at = 0
  for (const entry of entries) {
    const { batch } = entry
    putEnvelope(copy, at, place, entry)
    at += ENVELOPE_BYTES
    if (batch.length < COPIED_BELOW_BYTES) {
      copy.set(batch, at)
      at += batch.length
      continue
    }
    pieces.push(copy.subarray(from, at), batch)
    from = at
  }
  if (at > from) pieces.push(copy.subarray(from, at))
  return { count: entries.length, bytes, pieces }
}

/** All that lies between `from` and the end of the frame. Views of it. Throws Truncated. */
export function decodeEntries(frame: Uint8Array, from: number, count: number): Entries {
  // No count is trusted beyond what the bytes can hold.
  if (count * ENVELOPE_BYTES > frame.length - from) {
    throw new Truncated(`${count} entries announced, ${frame.length - from} bytes left`)
  }
  const entries: Entry[] = []
  let place: SegmentPlace | undefined
  let at = from
  for (let i = 0; i < count; i++) {
    const decoded = getEnvelope(frame, at)
    if (decoded === undefined) throw new Truncated(`entry ${i} of ${count} is cut short or damaged`)
    const { entry } = decoded
    checkBatch(entry, frame, at)
    if (place === undefined) place = decoded.place
    else if (!samePlace(place, decoded.place)) {
      throw new Truncated(`entry ${entry.entryNumber} is of another segment than those before it`)
    }
    entries.push(entry)
    at += ENVELOPE_BYTES + entry.batch.length
  }
  if (at !== frame.length) throw new Truncated(`${frame.length - at} bytes behind the last entry`)
  return { place, entries }
}

function checkBatch({ batch, entryNumber }: Entry, frame: Uint8Array, at: number): void {
  if (
    batch.length < BATCH_HEADER_BYTES ||
    batchSize(batch) !== getU32(frame, at + BATCH_LENGTH_AT)
  ) {
    throw new Truncated(`the batch of entry ${entryNumber} is not as long as it says`)
  }
  if (!batchCrcMatches(batch)) {
    throw new Truncated(`the checksum of the batch of entry ${entryNumber} does not match`)
  }
}
