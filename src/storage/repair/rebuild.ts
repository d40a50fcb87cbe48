// A segment file made anew from what is left of it: whole entries where they are, holes (model/batch/hole.ts) where nothing
// is. It is written beside the old one and takes its place by a rename; a crash before that leaves the old one to be
// looked at again, a crash after it leaves what a second run takes for whole.
//
//   <segment>.rebuilt, synced ──> .index and .cut go ──> renamed to .log ──> .salvage goes
//
// An index of the old layout must not meet the new file, nor a cut of it; what was salvaged goes last, being in the file.

import { assert } from '../../base/assert.ts'
import { placeBatch } from '../../model/batch/header.ts'
import { holeBatch } from '../../model/batch/hole.ts'
import { ENVELOPE_BYTES, type Entry, getEnvelope } from '../../model/entry.ts'
import { placeOfKey, type SegmentKey } from '../../model/segment-key.ts'
import type { Disk, DiskFile } from '../../ports/disk.ts'
import { directoryOf } from '../checked-file.ts'
import { buildBlock } from '../segment/block.ts'
import { blockEnd, encodeHeaderPage, HEADER_PAGE_BYTES } from '../segment/format.ts'
import { readSalvage } from '../segment/salvage.ts'
import { fillsOf, type Gap, type Placed } from './losses.ts'
import type { LeftEntry } from './survey-segment.ts'

const BLOCK_BYTES = 1024 * 1024
const BLOCK_ENTRIES = 4096

export interface Rebuild {
  readonly key: SegmentKey
  /** Path of the segment's files without extension. */
  readonly base: string
  readonly firstPartition: number
  readonly firstOffset: number
  /** In entry order; none may be of the WAL, which recovery has put into files before. */
  readonly entries: readonly LeftEntry[]
  readonly gaps: readonly Gap[]
}

export async function rebuildSegment(disk: Disk, what: Rebuild): Promise<void> {
  const { base } = what
  const dir = directoryOf(base)
  const rebuilt = `${base}.rebuilt`
  await disk.remove(rebuilt)
  const whole = what.entries.length > 0 || what.gaps.length > 0
  if (whole) await writeRebuilt(disk, rebuilt, what)
  for (const extension of ['index', 'cut']) await disk.remove(`${base}.${extension}`)
  await disk.syncDir(dir)
  if (whole) await disk.rename(rebuilt, `${base}.log`)
  else await disk.remove(`${base}.log`)
  await disk.syncDir(dir)
  await disk.remove(`${base}.salvage`)
  await disk.syncDir(dir)
}

async function writeRebuilt(disk: Disk, path: string, what: Rebuild): Promise<void> {
  let dir = directoryOf(path)
  await disk.makeDir(dir)
  const into = await disk.open(path, { mode: 'create-new' })
  try {
    const place = placeOfKey(what.key)
    await into.write([encodeHeaderPage(place)], 0)
    let position = HEADER_PAGE_BYTES
    for await (const entries of blocksOf(disk, what)) {
      const block = await buildBlock(place, entries, position, () => Promise.resolve())
      await into.write(block.buffers, position)
      position = blockEnd(block.header)
    }
    await into.sync()
  } finally {
    await into.close()
  }
  for (; dir !== '.'; dir = directoryOf(dir)) await disk.syncDir(directoryOf(dir))
}

async function* blocksOf(disk: Disk, what: Rebuild): AsyncGenerator<readonly Entry[]> {
  const salvaged = new Map<number, Entry>()
  for (const entry of await readSalvage(disk, what.base, placeOfKey(what.key)).catch(() => [])) {
    salvaged.set(entry.entryNumber, entry)
  }
  const log = await disk.open(`${what.base}.log`, { mode: 'read' }).catch(() => undefined)
  try {
    let block: Entry[] = []
    let bytes = 0
    for (const placed of inOrder(what)) {
      const entry =
        'from' in placed ? await entryOf(placed, log, salvaged) : holeOf(placed, what.key, block)
      if (
        block.length === BLOCK_ENTRIES ||
        (bytes > 0 && bytes + entry.batch.length > BLOCK_BYTES)
      ) {
        yield block
        block = []
        bytes = 0
      }
      block.push(entry)
      bytes += ENVELOPE_BYTES + entry.batch.length
    }
    if (block.length > 0) yield block
  } finally {
    await log?.close()
  }
}

/** What is left and what fills the gaps, by entry number. */
function* inOrder(what: Rebuild): Generator<LeftEntry | Placed> {
  const { entries, gaps, firstPartition } = what
  let nextOffset = what.firstOffset
  let next = 0
  let gap = 0
  const passed = <T extends Placed>(placed: T): T => {
    assert(placed.entryNumber === next, 'a rebuilt segment has every entry')
    next++
    if (placed.partition === firstPartition) nextOffset = placed.baseOffset + placed.recordCount
    return placed
  }
  const fills = function* (): Generator<Placed> {
    for (let at = gaps[gap]; at !== undefined && at.first === next; at = gaps[gap]) {
      gap++
      for (const fill of fillsOf(at, firstPartition, nextOffset)) yield passed(fill)
    }
  }
  for (const entry of entries) {
    yield* fills()
    yield passed(entry)
  }
  yield* fills()
}

async function entryOf(
  left: LeftEntry,
  log: DiskFile | undefined,
  salvaged: ReadonlyMap<number, Entry>,
): Promise<Entry> {
  if (left.from === 'salvage') {
    const entry = salvaged.get(left.entryNumber)
    assert(entry !== undefined, 'what was salvaged is still there')
    return entry
  }
  assert(left.from === 'log' && log !== undefined, 'what is left is in the segment file')
  const bytes = new Uint8Array(left.bytes)
  await log.read(bytes, left.position)
  const decoded = getEnvelope(bytes, 0)
  assert(decoded !== undefined, 'an entry that was whole is still whole')
  return decoded.entry
}

function holeOf(placed: Placed, key: SegmentKey, before: readonly Entry[]): Entry {
  const batch = holeBatch(placed.recordCount)
  placeBatch(batch, placed.baseOffset, key.segment)
  return {
    ...placed,
    logTimeMs: before.at(-1)?.logTimeMs ?? 0,
    highWatermark: 0,
    leastKeyHash: 0,
    greatestKeyHash: 0xffffffff,
    batch,
  }
}
