// The variable-length integers of record batches: seven bits a byte, least first, the high bit says that more follow.
// Signed values are zigzagged (0, -1, 1, -2 -> 0, 1, 2, 3), so that small ones of either sign are short.
//
// Lengths and deltas of offsets are 32-bit. Deltas of timestamps are 64-bit; of those we take what a number holds
// exactly. Past 31 bits the sign is kept apart (it is the first byte's lowest bit) and the magnitude is taken apart by
// division, since shifts end at 32 bits and 2n + 1 would not be exact near 2^53. No BigInt.

import { EastGuardError } from '../../base/errors.ts'

const INT32_MAX = 0x7fff_ffff

/** Bytes of a value in [0, 2^31), which is what lengths and counts are. */
export function lengthBytes(value: number): number {
  // Zigzag doubles a value, so each step is one bit short of seven.
  if (value < 0x40) return 1
  if (value < 0x2000) return 2
  if (value < 0x10_0000) return 3
  return value < 0x800_0000 ? 4 : 5
}

/** Bytes of any safe integer. */
export function varlongBytes(value: number): number {
  let magnitude = value < 0 ? -(value + 1) : value
  if (magnitude <= INT32_MAX) return lengthBytes(magnitude)
  let bytes = 1
  magnitude = Math.floor(magnitude / 0x40)
  while (magnitude > 0) {
    bytes++
    magnitude = Math.floor(magnitude / 0x80)
  }
  return bytes
}

/** Writes a value in [-1, 2^31); returns where it ends. */
export function putVarint(b: Uint8Array, at: number, value: number): number {
  let rest = ((value << 1) ^ (value >> 31)) >>> 0
  while (rest > 0x7f) {
    b[at++] = (rest & 0x7f) | 0x80
    rest >>>= 7
  }
  b[at++] = rest
  return at
}

/** Writes any safe integer; returns where it ends. */
export function putVarlong(b: Uint8Array, at: number, value: number): number {
  if (value >= -1 && value <= INT32_MAX) return putVarint(b, at, value)
  const sign = value < 0 ? 1 : 0
  const magnitude = sign === 1 ? -(value + 1) : value
  let low = ((magnitude % 0x40) << 1) | sign
  let rest = Math.floor(magnitude / 0x40)
  while (rest > 0) {
    b[at++] = low | 0x80
    low = rest % 0x80
    rest = Math.floor(rest / 0x80)
  }
  b[at++] = low
  return at
}

/** Reads variable-length integers of a run of bytes, in order, never past its end. */
export class VarintReader {
  readonly bytes: Uint8Array
  at: number
  readonly end: number

  constructor(bytes: Uint8Array, at: number, end: number) {
    this.bytes = bytes
    this.at = at
    this.end = end
  }

  /** Throws DECODE_FAILED past the end, and for more than 32 bits. */
  varint(): number {
    const first = this.at < this.end ? (this.bytes[this.at] as number) : 0x80
    if (first < 0x80) {
      this.at++
      return (first >>> 1) ^ -(first & 1)
    }
    return this.longVarint()
  }

  private longVarint(): number {
    let value = 0
    for (let shift = 0; shift < 35; shift += 7) {
      if (this.at >= this.end) throw decodeFailed('a number is cut off')
      const byte = this.bytes[this.at++] as number
      if (shift === 28 && byte > 0x0f) break
      value |= (byte & 0x7f) << shift
      if (byte < 0x80) return (value >>> 1) ^ -(value & 1)
    }
    throw decodeFailed('a number has more than 32 bits')
  }

  /** Throws DECODE_FAILED past the end, and for a value beyond what a number holds exactly. */
  varlong(): number {
    if (this.at >= this.end) throw decodeFailed('a number is cut off')
    let byte = this.bytes[this.at++] as number
    const negative = (byte & 1) === 1
    let magnitude = (byte & 0x7f) >>> 1
    let scale = 0x40
    while (byte >= 0x80) {
      if (this.at >= this.end) throw decodeFailed('a number is cut off')
      byte = this.bytes[this.at++] as number
      magnitude += (byte & 0x7f) * scale
      scale *= 0x80
      if (magnitude > Number.MAX_SAFE_INTEGER) throw decodeFailed('a number is beyond 2^53')
      if (scale > 2 ** 62 && byte >= 0x80) throw decodeFailed('a number has more than 64 bits')
    }
    return negative ? -magnitude - 1 : magnitude
  }
}

export function decodeFailed(why: string, cause?: unknown): EastGuardError {
  return new EastGuardError('DECODE_FAILED', `a record batch could not be decoded: ${why}`, {
    cause,
  })
}
