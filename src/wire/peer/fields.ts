// The parts that messages between brokers are made of. Reading throws Truncated for anything that was not written by the
// functions beside it: never another error, and never more memory than the bytes can account for.
//
//   number     a whole number below 2^53 in groups of 7 bits, the most significant first; all bytes but the last have their
//              high bit set; no leading zeros. So a heartbeat of a young shard takes a dozen bytes
//   optional   bool, then what it announces
//   choice     u8, the place in a list of words
//   leader     16B node │ number term
//   part       number total │ number offset │ blob: a piece of something larger, which may not reach past its end

import { assert } from '../../base/assert.ts'
import { type ByteReader, type ByteWriter, Truncated } from '../../base/cursor.ts'
import { readNodeId, writeId } from '../../model/id-bytes.ts'
import type { ShardLeader } from './types.ts'

const GROUP = 128

export function writeNumber(w: ByteWriter, value: number): void {
  if (!Number.isSafeInteger(value) || value < 0) assert(false, `${value} is a whole number`)
  let unit = 1
  while (value / unit >= GROUP) unit *= GROUP
  for (; unit > 1; unit /= GROUP) w.u8(GROUP | (Math.floor(value / unit) % GROUP))
  w.u8(value % GROUP)
}
export function readNumber(r: ByteReader): number {
  let value = 0
  for (;;) {
    const byte = r.u8()
    if (value === 0 && byte === GROUP) throw new Truncated('a number begins with a zero')
    value = value * GROUP + (byte % GROUP)
    if (value > Number.MAX_SAFE_INTEGER) throw new Truncated('a number is beyond 2^53')
    if (byte < GROUP) return value
  }
}

export function writeOptional<T>(
  w: ByteWriter,
  value: T | undefined,
  write: (w: ByteWriter, value: T) => void,
): void {
  w.bool(value !== undefined)
  if (value !== undefined) write(w, value)
}
export function readOptional<T>(r: ByteReader, read: (r: ByteReader) => T): T | undefined {
  return r.bool() ? read(r) : undefined
}

export function writeChoice<T>(w: ByteWriter, words: readonly T[], word: T): void {
  const place = words.indexOf(word)
  if (place < 0) assert(false, `${String(word)} is one of the words`)
  w.u8(place)
}
export function readChoice<T>(r: ByteReader, words: readonly T[]): T {
  const place = r.u8()
  const word = words[place]
  if (word === undefined) throw new Truncated(`choice ${place} of ${words.length}`)
  return word
}

export function writeLeader(w: ByteWriter, leader: ShardLeader | undefined): void {
  writeOptional(w, leader, (_, { node, term }) => {
    writeId(w, node)
    writeNumber(w, term)
  })
}
export function readLeader(r: ByteReader): ShardLeader | undefined {
  return readOptional(r, () => ({ node: readNodeId(r), term: readNumber(r) }))
}

/** A blob that a log will keep for long: a copy, because a view would keep the whole frame that it came in. */
export function readKept(r: ByteReader): Uint8Array {
  return new Uint8Array(r.blob())
}

export interface Part {
  readonly totalBytes: number
  readonly offset: number
  readonly bytes: Uint8Array
}

export function writePart(w: ByteWriter, part: Part): void {
  writeNumber(w, part.totalBytes)
  writeNumber(w, part.offset)
  w.blob(part.bytes)
}
export function readPart(r: ByteReader): Part {
  const totalBytes = readNumber(r)
  const offset = readNumber(r)
  const bytes = r.blob()
  if (offset + bytes.length > totalBytes) {
    throw new Truncated(`a part ends at ${offset + bytes.length} of ${totalBytes} bytes`)
  }
  return { totalBytes, offset, bytes }
}
