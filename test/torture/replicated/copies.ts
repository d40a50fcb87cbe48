// Compares what the brokers have on their disks, entry by entry: the replicas of a segment hold the same entries [I2], byte for
// byte, but for the high watermark that each envelope happens to carry. Of a sealed segment every replica has all of them, and their
// digest is the one that the metadata says. Of the open one a file may be behind: what it has must agree.
//
// A file is read again when it has changed, so that a comparison costs what is new, and can be made after every fault.

import { createHash } from 'node:crypto'
import { readdir, stat } from 'node:fs/promises'
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

/** What a file of entries holds. */
interface Content {
  /** A fingerprint for each entry. */
  readonly entries: readonly string[]
  readonly fault: string | undefined
  /** As the file itself says, once somebody has asked. */
  digest?: string
}

/** One replica of a segment on a disk. */
interface Copy {
  readonly node: string
  readonly path: string
  readonly content: Content
}

/** What was read, by path, with what tells whether the file has changed. */
export type Known = Map<string, { readonly stamp: string; readonly content: Content }>

export interface Compared {
  readonly segments: number
  readonly entries: number
  readonly violations: readonly string[]
}

/** `dirOf`: the data directory of a node, whose broker does not run. */
export async function compareCopies(
  topics: readonly TopicView[],
  dirOf: (node: string) => string | undefined,
  known: Known = new Map(),
): Promise<Compared> {
  const violations: string[] = []
  let [segments, entries] = [0, 0]
  for (const topic of topics) {
    for (const range of topic.ranges) {
      for (const segment of range.segments) {
        const what = `${topic.name} range ${range.range} segment ${segment.segment}`
        const key = { topicId: topic.topicId, range: range.range, segment: segment.segment }
        const dir = rangeDir(topic.name, key)
        const copies = await copiesOf(segment, dir, dirOf, known)
        violations.push(...judge(segment, copies).map((text) => `${what}: ${text}`))
        if (segment.state === 'sealed') {
          violations.push(
            ...(await judgeDigests(segment, copies)).map((text) => `${what}: ${text}`),
          )
        }
        segments++
        entries += Math.max(0, ...copies.map(({ content }) => content.entries.length))
      }
    }
  }
  return { segments, entries, violations }
}

async function copiesOf(
  segment: SegmentView,
  dir: string,
  dirOf: (node: string) => string | undefined,
  known: Known,
): Promise<readonly Copy[]> {
  const copies: Copy[] = []
  const nothing = (node: string, fault: string): void =>
    void copies.push({ node, path: '', content: { entries: [], fault } })
  for (const node of segment.replicas) {
    const dataDir = dirOf(node)
    if (dataDir === undefined) {
      nothing(node, 'nobody knows its data directory')
      continue
    }
    const path = await logFile(join(dataDir, dir), segment.segment)
    const content = path === undefined ? undefined : await contentOf(path, known)
    if (path === undefined || content === undefined) nothing(node, 'it has no file')
    else copies.push({ node, path, content })
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

/** Undefined: a broker that runs has taken it away. */
async function contentOf(path: string, known: Known): Promise<Content | undefined> {
  // Before it is read: what changes meanwhile is read again.
  const found = await stat(path, { bigint: true }).catch(() => undefined)
  if (found === undefined) return undefined
  const stamp = `${found.ino} ${found.size} ${found.mtimeNs} ${found.ctimeNs}`
  const before = known.get(path)
  if (before?.stamp === stamp) return before.content
  const content = await read(path)
  known.set(path, { stamp, content })
  return content
}

async function read(path: string): Promise<Content> {
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
  const longest = copies.reduce((a, b) =>
    b.content.entries.length > a.content.entries.length ? b : a,
  )
  for (const { node, content } of copies) {
    const { entries, fault } = content
    const at = entries.findIndex((one, i) => one !== longest.content.entries[i])
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
  for (const { node, path, content } of copies) {
    // What lacks entries has been told of.
    if (content.entries.length !== endEntry || path === '') continue
    content.digest ??= await digestOf(path)
    const own = content.digest
    if (own !== digest) found.push(`${node} has the digest ${own}, the metadata says ${digest}`)
  }
  return found
}

async function digestOf(path: string): Promise<string> {
  const inspected = await inspectFile(path, true)
  return inspected.kind === 'segment' ? `${inspected.segment.digest}` : inspected.kind
}
