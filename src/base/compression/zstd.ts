// Zstandard frames (RFC 8878), as far as it takes to know how large they can become, and to decompress a frame in
// pieces when only a one-shot decoder is at hand.
//
//   magic │ descriptor │ [window] │ [dictionary] │ [content size] │ blocks ... │ [checksum 4]
//   block   3 bytes: last (1 bit) kind (2 bits) size (21 bits) │ bytes        kind: 0 raw, 1 one byte repeated, 2 compressed
//
// A compressed block holds at most 128 KiB and does not say how much; so a sum over the blocks is an upper bound, and
// a bad one when an encoder flushes or splits often. A frame of only the first blocks shows their real length, and so
// how many more surely fit.

import { concatBytes } from '../bytes.ts'
import { CompressionRefused, refuseGrowth } from './refusal.ts'

const MAGIC = 0xfd2fb528
const SKIPPABLE = 0x184d2a50
const BLOCK_BYTES_MAX = 128 * 1024
/** The window that every decoder should support; larger ones only for content that is allowed to be as large. */
const WINDOW_BYTES_MIN = 8 * 1024 * 1024

interface ZstdBlock {
  readonly at: number
  readonly end: number
  readonly contentMax: number
}

interface ZstdFrame {
  readonly at: number
  readonly end: number
  readonly windowBytes: number
  readonly blocks: readonly ZstdBlock[]
  readonly contentMax: number
}

/** All frames in the bytes; refuses what is not zstd, is cut off, or admits to being larger than `maxBytes`. */
function zstdFrames(bytes: Uint8Array, maxBytes: number): readonly ZstdFrame[] {
  const frames: ZstdFrame[] = []
  let at = 0
  while (at < bytes.length) {
    const magic = u32le(bytes, at)
    if ((magic & 0xfffffff0) >>> 0 === SKIPPABLE) at += 8 + u32le(bytes, at + 4)
    else {
      if (magic !== MAGIC) throw new CompressionRefused('they are not zstd')
      const frame = oneFrame(bytes, at, maxBytes)
      frames.push(frame)
      at = frame.end
    }
  }
  if (at !== bytes.length) throw cutOff()
  if (frames.length === 0) throw new CompressionRefused('they are not zstd')
  return frames
}

const CONTENT_SIZE_BYTES = [0, 2, 4, 8] as const

function oneFrame(bytes: Uint8Array, at: number, maxBytes: number): ZstdFrame {
  const descriptor = byte(bytes, at + 4)
  const singleSegment = (descriptor & 0x20) !== 0
  const sizeFlag = descriptor >> 6
  if ((descriptor & 3) !== 0) throw new CompressionRefused('the zstd frame needs a dictionary')
  const sizeAt = at + 5 + (singleSegment ? 0 : 1)
  const sizeBytes = sizeFlag === 0 && singleSegment ? 1 : (CONTENT_SIZE_BYTES[sizeFlag] as number)
  const declared = contentSize(bytes, sizeAt, sizeBytes)
  if (declared > maxBytes) throw refuseGrowth(declared, maxBytes)
  const windowBytes = singleSegment ? declared : windowSize(byte(bytes, at + 5))
  if (windowBytes > Math.max(WINDOW_BYTES_MIN, 2 * maxBytes))
    throw new CompressionRefused(`the zstd frame asks for a window of ${windowBytes} bytes`)
  const blocks = frameBlocks(bytes, sizeAt + sizeBytes)
  const end = (blocks.at(-1) as ZstdBlock).end + ((descriptor & 4) !== 0 ? 4 : 0)
  if (end > bytes.length) throw cutOff()
  let contentMax = 0
  for (const block of blocks) contentMax += block.contentMax
  return { at, end, windowBytes, blocks, contentMax }
}

function frameBlocks(bytes: Uint8Array, from: number): ZstdBlock[] {
  const blocks: ZstdBlock[] = []
  for (let at = from; ; ) {
    const header = byte(bytes, at) | (byte(bytes, at + 1) << 8) | (byte(bytes, at + 2) << 16)
    const kind = (header >> 1) & 3
    const size = header >> 3
    if (kind === 3 || size > BLOCK_BYTES_MAX)
      throw new CompressionRefused('a zstd block is malformed')
    const end = at + 3 + (kind === 1 ? 1 : size)
    if (end > bytes.length) throw cutOff()
    blocks.push({ at, end, contentMax: kind === 2 ? BLOCK_BYTES_MAX : size })
    at = end
    if ((header & 1) === 1) return blocks
  }
}

/** Each piece decompresses again all that is before it; a frame that needs more pieces is not worth the work. */
const PIECES_MAX = 16

/**
 * Decompresses within `maxBytes` (and a block) of memory, given a decoder that knows no bounds. Yields what to decode,
 * takes what came of it, returns the content; as a generator, so that the decoder may be synchronous or not.
 */
export function* openZstd(
  bytes: Uint8Array,
  maxBytes: number,
): Generator<Uint8Array, Uint8Array, Uint8Array> {
  const frames = zstdFrames(bytes, maxBytes)
  let bound = 0
  for (const frame of frames) bound += frame.contentMax
  if (bound <= maxBytes) return yield bytes
  const contents: Uint8Array[] = []
  let room = maxBytes
  for (const frame of frames) {
    const content = yield* openFrame(bytes, frame, room)
    if (content.length > room) throw refuseGrowth(maxBytes - room + content.length, maxBytes)
    room -= content.length
    contents.push(content)
  }
  return concatBytes(contents)
}

function* openFrame(
  bytes: Uint8Array,
  frame: ZstdFrame,
  room: number,
): Generator<Uint8Array, Uint8Array, Uint8Array> {
  const { blocks } = frame
  let known = 0
  let next = 0
  for (let piece = 0; piece < PIECES_MAX; piece++) {
    // At least one block each time, then as many as surely fit.
    let bound = known + (blocks[next++] as ZstdBlock).contentMax
    for (; next < blocks.length; next++) {
      bound += (blocks[next] as ZstdBlock).contentMax
      if (bound > room) break
    }
    if (next === blocks.length) return yield bytes.subarray(frame.at, frame.end)
    known = (yield prefix(bytes, frame, next)).length
    if (known > room) throw refuseGrowth(known, room)
  }
  throw new CompressionRefused('the zstd frame has too many small blocks for what is allowed')
}

/** A frame of the first `count` blocks of `frame`. */
function prefix(bytes: Uint8Array, frame: ZstdFrame, count: number): Uint8Array {
  const first = frame.blocks[0] as ZstdBlock
  const last = frame.blocks[count - 1] as ZstdBlock
  const made = new Uint8Array(6 + last.end - first.at)
  // No content size, no checksum: both belong to the whole frame.
  made.set([0x28, 0xb5, 0x2f, 0xfd, 0, windowByte(frame.windowBytes)])
  made.set(bytes.subarray(first.at, last.end), 6)
  const lastAt = 6 + last.at - first.at
  made[lastAt] = (made[lastAt] as number) | 1
  return made
}

function windowSize(descriptor: number): number {
  const base = 2 ** (10 + (descriptor >> 3))
  return base + (base / 8) * (descriptor & 7)
}

function windowByte(windowBytes: number): number {
  return Math.max(0, Math.ceil(Math.log2(Math.max(1, windowBytes))) - 10) << 3
}

function contentSize(bytes: Uint8Array, at: number, length: number): number {
  let size = length === 2 ? 256 : 0
  for (let i = 0; i < length; i++) size += byte(bytes, at + i) * 2 ** (8 * i)
  return size
}

function u32le(bytes: Uint8Array, at: number): number {
  return contentSize(bytes, at, 4)
}

function byte(bytes: Uint8Array, at: number): number {
  const value = bytes[at]
  if (value === undefined) throw cutOff()
  return value
}

function cutOff(): CompressionRefused {
  return new CompressionRefused('the zstd frame is cut off')
}
