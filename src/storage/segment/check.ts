// Reading entries out of file bytes, believing nothing: envelope checksum, identity, the numbers that must follow one
// another, the batch's own length and checksum. What comes out of here is what was once appended.

import { BATCH_HEADER_BYTES, batchCrcMatches, batchSize } from '../../model/batch/header.ts'
import {
  ENVELOPE_BYTES,
  type Entry,
  getEnvelope,
  type SegmentPlace,
  samePlace,
} from '../../model/entry.ts'
import type { BlockHeader } from './format.ts'

/** What a run of bytes must hold. */
export interface Expected {
  readonly partition: number
  readonly firstOffset: number
}

/** Something is wrong with the bytes at `at` (counted in the bytes that were given). */
export interface BadEntry {
  readonly at: number
  readonly reason: string
}

/**
 * Appends the entries of one piece, bytes [from, end) of `bytes`, to `into`. Undefined when all is well.
 * The entries are views of `bytes`.
 */
export function readPiece(
  place: SegmentPlace,
  expected: Expected,
  bytes: Uint8Array,
  from: number,
  end: number,
  into: Entry[],
): BadEntry | undefined {
  let offset = expected.firstOffset
  let at = from
  while (at < end) {
    const decoded = getEnvelope(bytes, at)
    if (decoded === undefined) return { at, reason: 'the envelope does not match its checksum' }
    const { entry } = decoded
    const next = at + ENVELOPE_BYTES + entry.batch.length
    if (next > end) return { at, reason: 'the entry is longer than its piece' }
    if (!samePlace(decoded.place, place)) return { at, reason: 'an entry of another segment' }
    if (entry.partition !== expected.partition || entry.baseOffset !== offset) {
      return {
        at,
        reason: `partition ${entry.partition} offset ${entry.baseOffset} instead of ${expected.partition} and ${offset}`,
      }
    }
    if (entry.batch.length < BATCH_HEADER_BYTES || batchSize(entry.batch) !== entry.batch.length) {
      return { at, reason: 'the batch does not have the length it says' }
    }
    if (!batchCrcMatches(entry.batch)) {
      return { at, reason: 'the batch does not match its checksum' }
    }
    into.push(entry)
    offset = entry.baseOffset + entry.recordCount
    at = next
  }
  return undefined
}

export interface FoundEntry {
  readonly at: number
  readonly entry: Entry
}

/**
 * The entries that stand in `bytes` one behind another, up to the first that is not whole and of this segment. Whatever
 * order they are in is the caller's to judge.
 */
export function entriesIn(
  place: SegmentPlace,
  bytes: Uint8Array,
  from: number = 0,
  end: number = bytes.length,
): readonly FoundEntry[] {
  const found: FoundEntry[] = []
  for (let at = from; at < end; ) {
    const decoded = getEnvelope(bytes, at)
    if (decoded === undefined || !samePlace(decoded.place, place)) break
    const { entry } = decoded
    const next = at + ENVELOPE_BYTES + entry.batch.length
    if (next > end || batchBad(entry.batch)) break
    found.push({ at, entry })
    at = next
  }
  return found
}

function batchBad(batch: Uint8Array): boolean {
  if (batch.length < BATCH_HEADER_BYTES || batchSize(batch) !== batch.length) return true
  return !batchCrcMatches(batch)
}

/** All entries of a whole block in entry order, or what is wrong with it. `bytes` begins with the block's header. */
export function readBlock(
  place: SegmentPlace,
  block: BlockHeader,
  bytes: Uint8Array,
): readonly Entry[] | BadEntry {
  const entries: Entry[] = []
  for (const piece of block.pieces) {
    const bad = readPiece(place, piece, bytes, piece.at, piece.at + piece.bytes, entries)
    if (bad !== undefined) return bad
  }
  entries.sort((a, b) => a.entryNumber - b.entryNumber)
  const dense = entries.every((entry, i) => entry.entryNumber === block.firstEntry + i)
  if (!dense || entries.length !== block.entryCount) {
    return { at: 0, reason: 'the entries are not those that the block announces' }
  }
  return entries
}

export function isBad(read: readonly Entry[] | BadEntry): read is BadEntry {
  return !Array.isArray(read)
}
