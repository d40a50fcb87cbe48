// Reading one partition out of a segment file. The index names pieces; neighbours that lie close together are read as
// one span, as long as at most half of the span is not asked for. Every entry is checked.
//
// Who reads on where the last read ended gets read-ahead: the next part is fetched while this one is being used, and
// what was fetched beyond `maxBytes` is kept for the next call. Slots are few and bounded; losing one costs a read.

import { EastGuardError } from '../../base/errors.ts'
import type { Entry, SegmentPlace } from '../../model/entry.ts'
import { DiskError } from '../../ports/disk.ts'
import type { PiecePlace, SegmentIndex } from '../index/segment-index.ts'
import { readPiece } from './check.ts'
import type { LogFile } from './file.ts'

/** Fetched beyond what was asked for, for a sequential reader. */
const AHEAD_BYTES: number = 1024 * 1024
const AHEAD_SLOTS_MAX = 32
const PIECES_PER_READ_MAX = 256
const READ_BYTES_MAX: number = 4 * 1024 * 1024
const SPANS_AT_ONCE = 4

/** An entry in the file was bad; the index may be at fault, or the file. */
export class BadFile extends Error {
  override readonly name: string = 'BadFile'
}

interface Span {
  readonly position: number
  bytes: number
  useful: number
  readonly pieces: PiecePlace[]
}

/** The partition's entries from the one that holds `offset` on, about `bytes` of them; none when the file has none. */
export async function readEntries(
  place: SegmentPlace,
  file: LogFile,
  index: SegmentIndex,
  partition: number,
  offset: number,
  bytes: number,
): Promise<readonly Entry[]> {
  const pieces = index.find(partition, offset, Math.min(bytes, READ_BYTES_MAX), PIECES_PER_READ_MAX)
  if (pieces.length === 0) return []
  const entries = await readPieces(place, file, partition, pieces)
  const from = entries.findIndex((entry) => entry.baseOffset + entry.recordCount > offset)
  if (from < 0) throw new BadFile(`${file.path} does not have offset ${offset} where it should be`)
  return from === 0 ? entries : entries.slice(from)
}

export async function readPieces(
  place: SegmentPlace,
  file: LogFile,
  partition: number,
  pieces: readonly PiecePlace[],
): Promise<readonly Entry[]> {
  const spans = planSpans(pieces)
  const entries: Entry[] = []
  for (let i = 0; i < spans.length; i += SPANS_AT_ONCE) {
    const some = spans.slice(i, i + SPANS_AT_ONCE)
    const read = await Promise.all(some.map((span) => file.read(span.position, span.bytes)))
    for (const [k, bytes] of read.entries()) {
      checkSpan(place, file, partition, some[k] as Span, bytes, entries)
    }
  }
  return entries
}

function planSpans(pieces: readonly PiecePlace[]): readonly Span[] {
  const spans: Span[] = []
  let span: Span | undefined
  for (const piece of pieces) {
    const bytes = span === undefined ? 0 : piece.position + piece.bytes - span.position
    if (span !== undefined && bytes <= 2 * (span.useful + piece.bytes) && bytes <= READ_BYTES_MAX) {
      span.bytes = bytes
      span.useful += piece.bytes
      span.pieces.push(piece)
    } else {
      span = {
        position: piece.position,
        bytes: piece.bytes,
        useful: piece.bytes,
        pieces: [piece],
      }
      spans.push(span)
    }
  }
  return spans
}

function checkSpan(
  place: SegmentPlace,
  file: LogFile,
  partition: number,
  span: Span,
  bytes: Uint8Array,
  into: Entry[],
): void {
  if (bytes.length < span.bytes) {
    throw new BadFile(`${file.path} ends at byte ${span.position + bytes.length}`)
  }
  for (const piece of span.pieces) {
    const from = piece.position - span.position
    const expected = { partition, firstOffset: piece.firstOffset }
    const bad = readPiece(place, expected, bytes, from, from + piece.bytes, into)
    if (bad !== undefined) {
      throw new BadFile(`${file.path} is damaged at byte ${span.position + bad.at}: ${bad.reason}`)
    }
  }
}

/** What a sequential reader has coming. */
export interface AheadSlot {
  /** Where the reader is expected to go on. */
  offset: number
  /** Entries from `offset` on that were fetched already. */
  entries: readonly Entry[]
  pending: Promise<void> | undefined
  readonly forget: () => void
}

/** All read-ahead of a broker: the slots in use, least recently used first. */
export class ReadAhead {
  private readonly slots: Set<AheadSlot> = new Set()

  used(slot: AheadSlot): void {
    this.slots.delete(slot)
    this.slots.add(slot)
    if (this.slots.size <= AHEAD_SLOTS_MAX) return
    for (const oldest of this.slots) {
      this.slots.delete(oldest)
      oldest.forget()
      return
    }
  }

  forget(slot: AheadSlot): void {
    this.slots.delete(slot)
  }
}

/** The read-ahead of one segment: a slot per partition that is being read. */
export class SegmentAhead {
  private readonly all: ReadAhead
  private readonly slots: Map<number, AheadSlot> = new Map()
  /** Reads about so many bytes from the file; none: the file has no more. */
  private readonly fetch: (
    partition: number,
    offset: number,
    bytes: number,
  ) => Promise<readonly Entry[]>

  constructor(
    all: ReadAhead,
    fetch: (partition: number, offset: number, bytes: number) => Promise<readonly Entry[]>,
  ) {
    this.all = all
    this.fetch = fetch
  }

  /** Entries from `offset` on, at least one unless the file has none; perhaps more than `bytes`. */
  async read(partition: number, offset: number, bytes: number): Promise<readonly Entry[]> {
    const slot = this.slots.get(partition)
    if (slot?.offset !== offset) return this.fetch(partition, offset, bytes)
    this.all.used(slot)
    if (slot.pending !== undefined) await slot.pending
    if (slot.offset === offset && slot.entries.length > 0) return slot.entries
    return this.fetch(partition, offset, Math.max(bytes, AHEAD_BYTES))
  }

  /** A reader took [from, offset); `rest` was fetched and not taken. */
  took(partition: number, from: number, offset: number, rest: readonly Entry[]): void {
    let slot = this.slots.get(partition)
    const sequential = slot?.offset === from && rest.length === 0
    if (slot === undefined) {
      const made: AheadSlot = {
        offset,
        entries: rest,
        pending: undefined,
        forget: () => {
          if (this.slots.get(partition) === made) this.slots.delete(partition)
        },
      }
      slot = made
      this.slots.set(partition, slot)
      this.all.used(slot)
    }
    slot.offset = offset
    slot.entries = rest
    if (sequential && slot.pending === undefined) this.fill(partition, slot)
  }

  private fill(partition: number, slot: AheadSlot): void {
    const { offset } = slot
    slot.pending = this.fetch(partition, offset, AHEAD_BYTES).then(
      (entries) => {
        slot.pending = undefined
        if (slot.offset === offset) slot.entries = entries
      },
      () => {
        // Whoever reads there meets the same fault and reports it.
        slot.pending = undefined
      },
    )
  }

  clear(): void {
    for (const slot of this.slots.values()) this.all.forget(slot)
    this.slots.clear()
  }
}

/** What the reader of a file is told when the disk itself fails. */
export function readFailed(error: unknown): EastGuardError {
  if (error instanceof EastGuardError) return error
  if (error instanceof BadFile) return new EastGuardError('DAMAGED', error.message)
  if (error instanceof DiskError) {
    return new EastGuardError('DAMAGED', error.message, { cause: error })
  }
  throw error
}
