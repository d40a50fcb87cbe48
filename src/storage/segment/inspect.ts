// A segment file told to people: whose it is, its blocks, whether every byte of it checks, and the digest of its entries that
// replicas compare (digest.ts).

import { toHex } from '../../base/bytes.ts'
import { ENVELOPE_BYTES, type Entry, type SegmentPlace } from '../../model/entry.ts'
import type { Disk } from '../../ports/disk.ts'
import { isBad, readBlock } from './check.ts'
import { EntryDigest } from './digest.ts'
import { LogFile, OpenFiles } from './file.ts'
import {
  type BlockHeader,
  blockEnd,
  decodeHeaderPage,
  HEADER_PAGE_BYTES,
  placeSeed,
} from './format.ts'

interface InspectedBlock {
  readonly position: number
  readonly bytes: number
  readonly firstEntry: number
  readonly entries: number
  readonly partitions: number
  readonly pieces: number
}

export interface InspectedSegment {
  readonly topicId: string
  readonly range: number
  readonly segment: number
  readonly fileBytes: number
  readonly entries: number
  readonly records: number
  readonly entryBytes: number
  readonly blocks: readonly InspectedBlock[]
  /** What is wrong, and at which byte; undefined: all of it is valid. */
  readonly fault: string | undefined
  /** Over the valid entries; when it was asked for. */
  readonly digest: string | undefined
}

export async function inspectSegment(
  disk: Disk,
  path: string,
  options: { readonly digest: boolean },
): Promise<InspectedSegment | { readonly fault: string }> {
  const file = new LogFile(new OpenFiles(disk), path, 'read')
  try {
    const place = decodeHeaderPage(await file.read(0, HEADER_PAGE_BYTES))
    if (typeof place === 'string') return { fault: place }
    return await inspectBlocks(file, place, options.digest)
  } finally {
    await file.close()
  }
}

async function inspectBlocks(
  file: LogFile,
  place: SegmentPlace,
  digest: boolean,
): Promise<InspectedSegment> {
  const size = await file.size()
  const hash = digest ? new EntryDigest(place) : undefined
  const blocks: InspectedBlock[] = []
  let position = HEADER_PAGE_BYTES
  let entryEnd = 0
  let records = 0
  let entryBytes = 0
  let fault: string | undefined
  while (position < size) {
    const read = await readWholeBlock(file, place, position, entryEnd)
    if (typeof read === 'string') {
      fault = `byte ${position}: ${read}`
      break
    }
    for (const entry of read.entries) {
      records += entry.recordCount
      entryBytes += ENVELOPE_BYTES + entry.batch.length
      hash?.add(entry)
    }
    blocks.push(describe(read.block))
    position = blockEnd(read.block)
    entryEnd += read.entries.length
  }
  return {
    topicId: toHex(place.topicIdBytes),
    range: place.range,
    segment: place.segment,
    fileBytes: size,
    entries: entryEnd,
    records,
    entryBytes,
    blocks,
    fault,
    digest: hash?.hex(),
  }
}

async function readWholeBlock(
  file: LogFile,
  place: SegmentPlace,
  position: number,
  entryEnd: number,
): Promise<{ block: BlockHeader; entries: readonly Entry[] } | string> {
  const block = await file.readBlockHeader(position, placeSeed(place))
  if (block === undefined) return 'no valid block header'
  if (block.firstEntry !== entryEnd) {
    return `the block begins with entry ${block.firstEntry} instead of ${entryEnd}`
  }
  const bytes = await file.read(position, block.headerBytes + block.bodyBytes)
  const read = readBlock(place, block, bytes)
  if (isBad(read)) return `${read.reason} (${read.at} bytes into the block)`
  return { block, entries: read }
}

function describe(block: BlockHeader): InspectedBlock {
  return {
    position: block.position,
    bytes: block.headerBytes + block.bodyBytes,
    firstEntry: block.firstEntry,
    entries: block.entryCount,
    partitions: new Set(block.pieces.map((piece) => piece.partition)).size,
    pieces: block.pieces.length,
  }
}
