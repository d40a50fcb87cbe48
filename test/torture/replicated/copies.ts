// Compares what the brokers have on their disks, entry by entry: the replicas of a segment hold the same entries [I2], byte for
// byte, but for the high watermark that each envelope happens to carry. Of a sealed segment every replica has all of them, and their
// digest is the one that the metadata says. Of the open one a file may be behind: what it has must agree.

import { createHash } from 'node:crypto'
import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { inspectFile } from '../../../src/app/inspect.ts'
import { fileDisk } from '../../../src/io/disk/file-disk.ts'
import {
  ENVELOPE_BYTES,
  type Entry,
  putEnvelope,
  type SegmentPlace,
} from '../../../src/model/entry.ts'
import type { SegmentView, TopicView } from '../../../src/model/metadata.ts'
import { isBad, readBlock } from '../../../src/storage/segment/check.ts'
import { LogFile, OpenFiles } from '../../../src/storage/segment/file.ts'
import {
  blockEnd,
  decodeHeaderPage,
  HEADER_PAGE_BYTES,
  placeSeed,
} from '../../../src/storage/segment/format.ts'
import { parseSegmentFile, rangeDir } from '../../../src/storage/segment/paths.ts'

/** One replica of a segment on a disk. */
interface Copy {
  readonly node: string
  readonly path: string
  /** A fingerprint for each entry. */
  readonly entries: readonly string[]
  readonly fault: string | undefined
}

export interface Compared {
  readonly segments: number
  readonly entries: number
  readonly violations: readonly string[]
}

/** `dirOf`: the data directory of a node, whose broker does not run. */
export async function compareCopies(
  topics: readonly TopicView[],
  dirOf: (node: string) => string | undefined,
): Promise<Compared> {
  const violations: string[] = []
  let [segments, entries] = [0, 0]
  for (const topic of topics) {
    for (const range of topic.ranges) {
      for (const segment of range.segments) {
        const what = `${topic.name} range ${range.range} segment ${segment.segment}`
        const key = { topicId: topic.topicId, range: range.range, segment: segment.segment }
        const dir = rangeDir(topic.name, key)
        const copies = await copiesOf(segment, dir, dirOf)
        violations.push(...judge(segment, copies).map((text) => `${what}: ${text}`))
        if (segment.state === 'sealed') {
          violations.push(
            ...(await judgeDigests(segment, copies)).map((text) => `${what}: ${text}`),
          )
        }
        segments++
        entries += Math.max(0, ...copies.map((copy) => copy.entries.length))
      }
    }
  }
  return { segments, entries, violations }
}

async function copiesOf(
  segment: SegmentView,
  dir: string,
  dirOf: (node: string) => string | undefined,
): Promise<readonly Copy[]> {
  const copies: Copy[] = []
  for (const node of segment.replicas) {
    const dataDir = dirOf(node)
    if (dataDir === undefined) {
      copies.push({ node, path: '', entries: [], fault: 'nobody knows its data directory' })
      continue
    }
    const path = await logFile(join(dataDir, dir), segment.segment)
    if (path === undefined) copies.push({ node, path: '', entries: [], fault: 'it has no file' })
    else copies.push({ node, path, ...(await read(path)) })
  }
  return copies
}

/** The path of a segment's entries below a range's directory. */
export async function logFile(dir: string, segment: number): Promise<string | undefined> {
  const files = await readdir(dir).catch(() => [])
  const file = files.find((name) => {
    const parsed = parseSegmentFile(name)
    return parsed?.segment === segment && parsed.extension === 'log'
  })
  return file === undefined ? undefined : join(dir, file)
}

async function read(path: string): Promise<Pick<Copy, 'entries' | 'fault'>> {
  const at = path.lastIndexOf('/')
  const file = new LogFile(new OpenFiles(fileDisk(path.slice(0, at))), path.slice(at + 1), 'read')
  const entries: string[] = []
  try {
    const place = decodeHeaderPage(await file.read(0, HEADER_PAGE_BYTES))
    if (typeof place === 'string') return { entries, fault: place }
    const size = await file.size()
    for (let position = HEADER_PAGE_BYTES; position < size; ) {
      const block = await file.readBlockHeader(position, placeSeed(place))
      if (block === undefined) return { entries, fault: `no block at byte ${position}` }
      const bytes = await file.read(position, block.headerBytes + block.bodyBytes)
      const found = readBlock(place, block, bytes)
      if (isBad(found)) return { entries, fault: `byte ${position + found.at}: ${found.reason}` }
      for (const entry of found) entries.push(fingerprint(place, entry))
      position = blockEnd(block)
    }
    return { entries, fault: undefined }
  } finally {
    await file.close()
  }
}

function fingerprint(place: SegmentPlace, entry: Entry): string {
  const envelope = new Uint8Array(ENVELOPE_BYTES)
  putEnvelope(envelope, 0, place, { ...entry, highWatermark: 0 })
  return createHash('sha256').update(envelope).update(entry.batch).digest('base64')
}

function judge(segment: SegmentView, copies: readonly Copy[]): readonly string[] {
  const { state, endEntry } = segment
  const found: string[] = []
  const longest = copies.reduce((a, b) => (b.entries.length > a.entries.length ? b : a))
  for (const { node, entries, fault } of copies) {
    const at = entries.findIndex((one, i) => one !== longest.entries[i])
    if (at >= 0) found.push(`entry ${at} of ${node} is another than that of ${longest.node}`)
    if (state === 'open') continue
    if (fault !== undefined && (endEntry ?? 0) > 0) found.push(`${node}: ${fault}`)
    if (entries.length !== endEntry) {
      found.push(`${node} has ${entries.length} entries of ${endEntry}`)
    }
  }
  return found
}

async function judgeDigests(
  { digest, endEntry }: SegmentView,
  copies: readonly Copy[],
): Promise<readonly string[]> {
  const found: string[] = []
  for (const { node, path, entries } of copies) {
    // What lacks entries has been told of.
    if (entries.length !== endEntry || path === '') continue
    const inspected = await inspectFile(path, true)
    const own = inspected.kind === 'segment' ? inspected.segment.digest : inspected.kind
    if (own !== digest) found.push(`${node} has the digest ${own}, the metadata says ${digest}`)
  }
  return found
}
