// Opening a segment file that was there before: how far is it whole?
//
// Blocks below the WAL's first entry of the segment were synced (else the WAL would still have them): their headers must
// be there, and an invalid one is damage. A block that reaches entries of the WAL may be torn; it is read entry by
// entry, and from the first bad one on the file is cut, for all that follows comes again out of the WAL. What is good of
// it is written again where it is: after a sync that failed, the operating system takes such pages for clean, and the next
// sync would succeed without writing them.
//
//   | page | block | block | block | block |    |
//   |<------- synced, headers ---->|<- verified ->|
//                                  ^ walFirst
//
// A cut that a crash interrupted (cut.ts) is finished first.

import { type SegmentPlace, samePlace } from '../../model/entry.ts'
import { DiskError } from '../../ports/disk.ts'
import type { IndexSlot } from '../index/index-file.ts'
import { type SegmentIndex } from '../index/segment-index.ts'
import { isBad, readBlock } from './check.ts'
import type { LogFile } from './file.ts'
import {
  blockEnd,
  decodeHeaderPage,
  encodeHeaderPage,
  HEADER_PAGE_BYTES,
  headerPageChecks,
  placeSeed,
} from './format.ts'
import type { OpenSegment } from './types.ts'

export interface OpenedFile {
  /** The file is valid up to here; 0: it has no valid header page and begins anew. */
  readonly fileBytes: number
  readonly entryEnd: number
  /** Bytes of its entries, envelopes included. */
  readonly entryBytes: number
  /** Beyond `fileBytes` lies something that the WAL does not have. */
  readonly damage: string | undefined
  /** There is no file, or an empty one. */
  readonly absent: boolean
}

export async function openSegmentFile(
  place: SegmentPlace,
  file: LogFile,
  slot: IndexSlot,
  { walFirst, repairable }: Pick<OpenSegment, 'walFirst' | 'repairable'>,
): Promise<OpenedFile> {
  const size = await sizeOf(file)
  if (size === undefined || size === 0) {
    // No file at all is what a segment has before its first flush, whose entries are then in the WAL from the first.
    const damage = repairable === true ? undefined : gapOf(file.path, 0, walFirst)
    return { fileBytes: 0, entryEnd: 0, entryBytes: 0, damage, absent: true }
  }
  const what = await pageFault(place, file)
  if (what !== undefined && walFirst === 0) {
    await file.truncate(0)
    return { fileBytes: 0, entryEnd: 0, entryBytes: 0, damage: undefined, absent: true }
  }
  if (what !== undefined && !(await doWithout(place, file))) {
    const damage = `${file.path} is damaged: ${what}`
    return { fileBytes: 0, entryEnd: 0, entryBytes: 0, damage, absent: false }
  }
  if (walFirst === 0) await file.write([encodeHeaderPage(place)], 0)
  let found = await walk(place, file, slot, walFirst, size, true)
  // The index file was not synced: it may tell of blocks that a crash took back and others replaced.
  if (found.index.fileEnd < size) found = await walk(place, file, slot, walFirst, size, false)
  const { fileEnd, entryEnd } = found.index
  let damage = repairable === true ? undefined : gapOf(file.path, entryEnd, walFirst)
  if (fileEnd < size) {
    if (walFirst !== undefined && walFirst <= entryEnd) await file.truncate(fileEnd)
    else damage ??= `${file.path} is damaged at byte ${fileEnd}: ${found.reason}`
  }
  return { fileBytes: fileEnd, entryEnd, entryBytes: found.entryBytes, damage, absent: false }
}

async function pageFault(place: SegmentPlace, file: LogFile): Promise<string | undefined> {
  const page = decodeHeaderPage(await file.read(0, HEADER_PAGE_BYTES))
  if (typeof page === 'string') return page
  return samePlace(page, place) ? undefined : 'it belongs to another segment'
}

/**
 * True when the header page has lost bits and nothing else is wrong: it says nothing that the first block's header, whose
 * checksum is seeded with the segment's identity, does not say as well.
 */
async function doWithout(place: SegmentPlace, file: LogFile): Promise<boolean> {
  if (headerPageChecks(await file.read(0, HEADER_PAGE_BYTES))) return false
  return (await file.readBlockHeader(HEADER_PAGE_BYTES, placeSeed(place))) !== undefined
}

interface Walked {
  readonly index: SegmentIndex
  readonly entryBytes: number
  readonly reason: string
}

async function walk(
  place: SegmentPlace,
  file: LogFile,
  slot: IndexSlot,
  walFirst: number | undefined,
  size: number,
  believeIndex: boolean,
): Promise<Walked> {
  const seed = placeSeed(place)
  const syncedEnd = walFirst ?? Number.POSITIVE_INFINITY
  let entryBytes = 0
  // What was synced may be taken from the index file, one read instead of one per block.
  const index = await slot.readFile((block) => {
    if (!believeIndex || blockEnd(block) > size) return false
    if (block.firstEntry + block.entryCount > syncedEnd) return false
    entryBytes += block.bodyBytes
    return true
  })
  for (;;) {
    if (index.fileEnd === size) return { index, entryBytes, reason: '' }
    const block = await file.readBlockHeader(index.fileEnd, seed)
    if (block === undefined || !index.follows(block)) {
      return { index, entryBytes, reason: 'no valid block header' }
    }
    if (blockEnd(block) > size) return { index, entryBytes, reason: 'the block is cut off' }
    if (block.firstEntry + block.entryCount > syncedEnd) {
      const bytes = await file.read(block.position, block.headerBytes + block.bodyBytes)
      const read = readBlock(place, block, bytes)
      if (isBad(read)) return { index, entryBytes, reason: read.reason }
      await file.write([bytes], block.position)
    }
    index.add(block)
    entryBytes += block.bodyBytes
  }
}

function gapOf(path: string, entryEnd: number, walFirst: number | undefined): string | undefined {
  if (walFirst === undefined || walFirst <= entryEnd) return undefined
  return `${path} ends before entry ${entryEnd}, the WAL begins at ${walFirst}: those between are lost`
}

async function sizeOf(file: LogFile): Promise<number | undefined> {
  try {
    return await file.size()
  } catch (error) {
    if (error instanceof DiskError && error.fault === 'not-found') return undefined
    throw error
  }
}
