// The entries in the segment files of a broker's disk, read by hand from the bytes as docs and headers describe them: what the
// brokers make of the files is what is judged.
//
//   header page │ block │ block │ ...      block: 48 bytes, one line of 48 per piece, then entries one behind the other
//                                          entry: an envelope of 88 bytes and its batch

import type { SimDisk } from '../ports/disk.ts'

const HEADER_PAGE_BYTES = 4096
const BLOCK_MAGIC = 0x45475342
const ENVELOPE_BYTES = 88
/** Replicas hear of the high watermark at different times, and the envelope's checksum covers it. */
const UNEQUAL: readonly (readonly [from: number, to: number])[] = [
  [0, 4],
  [64, 72],
]

/** By `<topic id>/<range>/<segment>`, as far as anything of it is in a file. */
export type SegmentFiles = ReadonlyMap<string, ReadonlyMap<number, Uint8Array>>

export function segmentFiles(disk: SimDisk): SegmentFiles {
  const found = new Map<string, ReadonlyMap<number, Uint8Array>>()
  for (const path of disk.paths()) {
    const segment = segmentOf(path)
    if (segment !== undefined) found.set(segment, entriesOf(disk.bytesOf(path)))
  }
  return found
}

/** What would be left of them if the power failed now. */
function durableFiles(disk: SimDisk): SegmentFiles {
  const found = new Map<string, ReadonlyMap<number, Uint8Array>>()
  for (const [path, bytes] of disk.durable(['topics/'])) {
    const segment = segmentOf(path)
    if (segment !== undefined) found.set(segment, entriesOf(bytes))
  }
  return found
}

/** Batches of entries that are in a segment's file, and not there if the power failed now. */
export function* unsyncedEntries(disk: SimDisk): Generator<{
  readonly segment: string
  readonly entry: number
  readonly batch: Buffer
}> {
  const durable = durableFiles(disk)
  for (const [segment, entries] of segmentFiles(disk)) {
    const kept = durable.get(segment)
    for (const [entry, bytes] of entries) {
      const same = kept?.get(entry)
      if (same !== undefined && Buffer.compare(same, bytes) === 0) continue
      yield { segment, entry, batch: Buffer.from(bytes.subarray(ENVELOPE_BYTES)) }
    }
  }
}

/** The batch of the last entry of a segment of `end` entries, from the first disk that has it in a file. */
export function lastEntry(disks: readonly SimDisk[], key: string, end: number): Buffer | undefined {
  for (const disk of disks) {
    const path = disk.paths().find((one) => segmentOf(one) === key)
    const entry = path === undefined ? undefined : entriesOf(disk.bytesOf(path)).get(end - 1)
    if (entry !== undefined) return Buffer.from(entry.subarray(ENVELOPE_BYTES))
  }
  return undefined
}

export function segmentOf(path: string): string | undefined {
  const match = /^topics\/.*-([0-9a-f]{32})\/range-(\d+)\/(\d{20})\.log$/.exec(path)
  return match === null ? undefined : `${match[1]}/${match[2]}/${Number(match[3])}`
}

/** By entry number; what differs between replicas for good reason is zeros. */
function entriesOf(bytes: Uint8Array): ReadonlyMap<number, Uint8Array> {
  const found = new Map<number, Uint8Array>()
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length)
  for (let at = HEADER_PAGE_BYTES; at + 48 <= bytes.length; ) {
    const headerBytes = view.getUint32(at + 8)
    const end = at + headerBytes + view.getUint32(at + 12)
    if (view.getUint32(at) !== BLOCK_MAGIC || end > bytes.length) break
    for (let entry = at + headerBytes; entry + ENVELOPE_BYTES <= end; ) {
      const next = entry + ENVELOPE_BYTES + view.getUint32(entry + 80)
      const copy = bytes.slice(entry, next)
      for (const [from, to] of UNEQUAL) copy.fill(0, from, to)
      found.set(Number(view.getBigUint64(entry + 32)), copy)
      entry = next
    }
    at = end
  }
  return found
}
