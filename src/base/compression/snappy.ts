// Snappy as Kafka's Java client writes it: snappy-java's blocks ("xerial"), each raw snappy. Other clients write one
// raw block without a frame; both are read.
//
//   frame   82 'S' 'N' 'A' 'P' 'P' 'Y' 00 │ u32 version 1 │ u32 compatible 1 │ u32 length, raw block │ ...
//   raw     uncompressed length as a varint │ literals and copies
//
// The lengths at the fronts of the blocks say how much memory all of it takes, before any is taken.

import { getU32, putU32 } from '../bytes.ts'
import { CompressionRefused, refuseGrowth } from './refusal.ts'

/** snappy-java's default block: its readers expect no more. */
export const XERIAL_BLOCK_BYTES: number = 32 * 1024

const HEADER = Uint8Array.of(0x82, 0x53, 0x4e, 0x41, 0x50, 0x50, 0x59, 0, 0, 0, 0, 1, 0, 0, 0, 1)
const MAGIC_BYTES = 8

/** The frame around blocks that are raw snappy already. */
export function xerialFrame(blocks: readonly Uint8Array[]): Uint8Array {
  let length = HEADER.length
  for (const block of blocks) length += 4 + block.length
  const frame = new Uint8Array(length)
  frame.set(HEADER)
  let at = HEADER.length
  for (const block of blocks) {
    putU32(frame, at, block.length)
    frame.set(block, at + 4)
    at += 4 + block.length
  }
  return frame
}

/** The raw blocks of a frame, or the one that the bytes are; refuses when they hold more than `maxBytes`. */
export function snappyBlocks(bytes: Uint8Array, maxBytes: number): readonly Uint8Array[] {
  const blocks = isFrame(bytes) ? frameBlocks(bytes) : [bytes]
  let total = 0
  for (const block of blocks) total += rawLength(block)
  if (total > maxBytes) throw refuseGrowth(total, maxBytes)
  return blocks
}

function isFrame(bytes: Uint8Array): boolean {
  if (bytes.length < HEADER.length) return false
  for (let i = 0; i < MAGIC_BYTES; i++) if (bytes[i] !== HEADER[i]) return false
  return true
}

function frameBlocks(bytes: Uint8Array): Uint8Array[] {
  const blocks: Uint8Array[] = []
  let at = HEADER.length
  while (at < bytes.length) {
    const left = bytes.length - at - 4
    const length = left < 0 ? 0 : getU32(bytes, at)
    if (left < 0 || length > left) throw new CompressionRefused('the snappy frame is cut off')
    blocks.push(bytes.subarray(at + 4, at + 4 + length))
    at += 4 + length
  }
  return blocks
}

/** Compressed bytes can grow 21 times at most (a three-byte copy of 64), so a greater length is a lie. */
const GROWTH_MAX = 22

function rawLength(block: Uint8Array): number {
  let length = 0
  for (let i = 0; i < 5; i++) {
    const byte = block[i]
    if (byte === undefined) break
    length += (byte & 0x7f) * 2 ** (7 * i)
    if (byte >= 0x80) continue
    if (length > block.length * GROWTH_MAX) break
    return length
  }
  throw new CompressionRefused('they are not snappy')
}
