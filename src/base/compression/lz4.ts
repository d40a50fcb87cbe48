// How large an LZ4 frame is inside, without decompressing it (LZ4 frame format 1.6, block format).
//
//   magic │ flags │ block size │ [content size 8] [dictionary 4] │ header check │ blocks ... │ 0 │ [content check 4]
//   block     u32 length (top bit: stored as it is) │ bytes │ [block check 4]
//   bytes     sequences: token (4 bits literals, 4 bits match, 15 = more follows) │ literals │ u16 distance
//
// A first look takes every block for full. When that is too much (small blocks are legal) the sequences are
// walked, which gives the exact length.

import { CompressionRefused, refuseGrowth } from './refusal.ts'

const MAGIC = 0x184d2204
const VERSION = 0x40
const STORED = 0x8000_0000
const SHORTEST_MATCH = 4

/** Refuses bytes that are not one whole frame, or whose content is above `maxBytes`. */
export function checkLz4(bytes: Uint8Array, maxBytes: number): void {
  const frame = header(bytes)
  const content = measure(bytes, frame, maxBytes, false)
  if (content <= maxBytes) return
  const exact = measure(bytes, frame, maxBytes, true)
  if (exact > maxBytes) throw refuseGrowth(exact, maxBytes)
}

interface Frame {
  readonly blocksAt: number
  readonly blockBytesMax: number
  readonly blockCheckBytes: number
  readonly contentCheckBytes: number
}

function header(bytes: Uint8Array): Frame {
  const flags = bytes[4] ?? 0
  const size = ((bytes[5] ?? 0) >> 4) & 7
  if (bytes.length < 11 || u32le(bytes, 0) !== MAGIC || (flags & 0xc0) !== VERSION || size < 4)
    throw new CompressionRefused('they are not an lz4 frame')
  if ((flags & 0x01) !== 0) throw new CompressionRefused('the lz4 frame needs a dictionary')
  return {
    blocksAt: 7 + ((flags & 0x08) !== 0 ? 8 : 0),
    // 4, 5, 6, 7 stand for 64 KiB, 256 KiB, 1 MiB, 4 MiB.
    blockBytesMax: 1 << (8 + 2 * size),
    blockCheckBytes: (flags & 0x10) !== 0 ? 4 : 0,
    contentCheckBytes: (flags & 0x04) !== 0 ? 4 : 0,
  }
}

/** Stops early once above `maxBytes` when exact. */
function measure(bytes: Uint8Array, frame: Frame, maxBytes: number, exact: boolean): number {
  let at = frame.blocksAt
  let content = 0
  for (;;) {
    if (at + 4 > bytes.length) throw new CompressionRefused('the lz4 frame is cut off')
    const word = u32le(bytes, at)
    at += 4
    if (word === 0) break
    const length = word & ~STORED
    const end = at + length
    if (end + frame.blockCheckBytes > bytes.length)
      throw new CompressionRefused('the lz4 frame is cut off')
    if (word >= STORED) content += length
    else if (exact) content += blockContent(bytes, at, end)
    else content += frame.blockBytesMax
    if (exact && content > maxBytes) return content
    at = end + frame.blockCheckBytes
  }
  if (at + frame.contentCheckBytes !== bytes.length)
    throw new CompressionRefused('the lz4 frame does not end where its bytes do')
  return content
}

function blockContent(bytes: Uint8Array, from: number, end: number): number {
  let at = from
  let content = 0
  while (at < end) {
    const token = bytes[at++] as number
    let literals = token >> 4
    if (literals === 15) {
      let more = 255
      while (more === 255 && at < end) literals += more = bytes[at++] as number
    }
    content += literals
    at += literals
    // The last sequence has literals only.
    if (at >= end) break
    at += 2
    let match = (token & 15) + SHORTEST_MATCH
    if ((token & 15) === 15) {
      let more = 255
      while (more === 255 && at < end) match += more = bytes[at++] as number
    }
    content += match
  }
  return content
}

function u32le(b: Uint8Array, at: number): number {
  return (
    ((b[at] as number) |
      ((b[at + 1] as number) << 8) |
      ((b[at + 2] as number) << 16) |
      ((b[at + 3] as number) << 24)) >>>
    0
  )
}
