// Builds a block from entries, ready for one vectored write. First the lengths (which partition's entries lie where),
// then the bytes: envelopes and small batches go into one slab, so that a block of 10,000 tiny entries is one buffer
// and not 20,000; large batches go by reference. A few hundred entries a turn: building must not hold up the loop.

import { maxTimestamp } from '../../model/batch/header.ts'
import { ENVELOPE_BYTES, type Entry, putEnvelope, type SegmentPlace } from '../../model/entry.ts'
import {
  BLOCK_FIXED_BYTES,
  type BlockHeader,
  PIECE_BYTES_MAX,
  PIECE_LINE_BYTES,
  type Piece,
  placeSeed,
  putBlockHeader,
} from './format.ts'

/** Batches below it are copied: a buffer of its own in a vectored write costs more than so many bytes. */
const COPY_BELOW_BYTES = 4096
const TURN_ENTRIES = 256

export interface BuiltBlock {
  readonly header: BlockHeader
  /** The header's bytes alone, for the index file; they are the first of `buffers` too. */
  readonly headerBytes: Uint8Array
  readonly buffers: readonly Uint8Array[]
}

/** `entries` are in entry order and at least one; `turn` lets other work run. */
export async function buildBlock(
  place: SegmentPlace,
  entries: readonly Entry[],
  position: number,
  turn: () => Promise<void>,
): Promise<BuiltBlock> {
  const grouped = groupByPartition(entries)
  const header = layOut(grouped, entries[0] as Entry, position)
  let slabBytes = header.headerBytes
  for (const entry of grouped) slabBytes += ENVELOPE_BYTES + copiedBytes(entry)
  // Its own memory and not a slice of Node's pool, which a block would pin.
  const slab = Buffer.allocUnsafeSlow(slabBytes)
  putBlockHeader(slab, header, placeSeed(place))
  const buffers: Uint8Array[] = []
  let from = 0
  let at = header.headerBytes
  for (let i = 0; i < grouped.length; i++) {
    if (i % TURN_ENTRIES === TURN_ENTRIES - 1) await turn()
    const entry = grouped[i] as Entry
    putEnvelope(slab, at, place, entry)
    at += ENVELOPE_BYTES
    if (entry.batch.length < COPY_BELOW_BYTES) {
      slab.set(entry.batch, at)
      at += entry.batch.length
    } else {
      buffers.push(slab.subarray(from, at), entry.batch)
      from = at
    }
  }
  if (from < at) buffers.push(slab.subarray(from, at))
  return { header, headerBytes: slab.subarray(0, header.headerBytes), buffers }
}

function copiedBytes(entry: Entry): number {
  return entry.batch.length < COPY_BELOW_BYTES ? entry.batch.length : 0
}

/** By partition; the order inside a partition stays. In buckets: a sort would hold up the loop for milliseconds. */
function groupByPartition(entries: readonly Entry[]): readonly Entry[] {
  const buckets = new Map<number, Entry[]>()
  for (const entry of entries) {
    const bucket = buckets.get(entry.partition)
    if (bucket === undefined) buckets.set(entry.partition, [entry])
    else bucket.push(entry)
  }
  if (buckets.size === 1) return entries
  const partitions = [...buckets.keys()].toSorted((a, b) => a - b)
  return partitions.flatMap((partition) => buckets.get(partition) ?? [])
}

interface OpenPiece {
  partition: number
  entries: number
  firstOffset: number
  nextOffset: number
  at: number
  bytes: number
  maxTimestamp: number
  leastKeyHash: number
  greatestKeyHash: number
}

function layOut(grouped: readonly Entry[], first: Entry, position: number): BlockHeader {
  const pieces: OpenPiece[] = []
  let piece: OpenPiece | undefined
  let bodyBytes = 0
  for (const entry of grouped) {
    const bytes = ENVELOPE_BYTES + entry.batch.length
    if (
      piece === undefined ||
      piece.partition !== entry.partition ||
      piece.bytes + bytes > PIECE_BYTES_MAX
    ) {
      piece = openPiece(entry, bodyBytes)
      pieces.push(piece)
    }
    piece.entries++
    piece.bytes += bytes
    piece.nextOffset = entry.baseOffset + entry.recordCount
    piece.maxTimestamp = Math.max(piece.maxTimestamp, maxTimestamp(entry.batch))
    piece.leastKeyHash = Math.min(piece.leastKeyHash, entry.leastKeyHash)
    piece.greatestKeyHash = Math.max(piece.greatestKeyHash, entry.greatestKeyHash)
    bodyBytes += bytes
  }
  const headerBytes = BLOCK_FIXED_BYTES + pieces.length * PIECE_LINE_BYTES
  for (const each of pieces) each.at += headerBytes
  return {
    position,
    headerBytes,
    bodyBytes,
    firstEntry: first.entryNumber,
    entryCount: grouped.length,
    pieces: pieces satisfies Piece[],
  }
}

function openPiece(entry: Entry, at: number): OpenPiece {
  return {
    partition: entry.partition,
    entries: 0,
    firstOffset: entry.baseOffset,
    nextOffset: entry.baseOffset,
    at,
    bytes: 0,
    maxTimestamp: Number.NEGATIVE_INFINITY,
    leastKeyHash: entry.leastKeyHash,
    greatestKeyHash: entry.greatestKeyHash,
  }
}
