// A reader and a writer over bytes for codecs off the hot path. The reader never trusts a length: every
// read is checked against what is left, and counts are bounded before anything is allocated.

import { EMPTY, fromUtf8, getI64, getU16, getU32, putI64, putU16, putU32, utf8 } from './bytes.ts'

/** Thrown by ByteReader; the caller turns it into the error its protocol has for bad bytes. */
export class Truncated extends Error {
  override readonly name: string = 'Truncated'
}

export class ByteReader {
  readonly bytes: Uint8Array
  at: number
  readonly end: number

  constructor(bytes: Uint8Array, at: number = 0, end: number = bytes.length) {
    this.bytes = bytes
    this.at = at
    this.end = end
  }

  get left(): number {
    return this.end - this.at
  }

  private take(length: number): number {
    if (length > this.end - this.at) {
      throw new Truncated(`${length} bytes wanted at ${this.at}, ${this.end - this.at} left`)
    }
    const at = this.at
    this.at += length
    return at
  }

  u8(): number {
    return this.bytes[this.take(1)] as number
  }
  bool(): boolean {
    const value = this.u8()
    if (value > 1) throw new Truncated(`a boolean is ${value}`)
    return value === 1
  }
  u16(): number {
    return getU16(this.bytes, this.take(2))
  }
  u32(): number {
    return getU32(this.bytes, this.take(4))
  }
  i32(): number {
    return this.u32() | 0
  }
  i64(): number {
    const value = getI64(this.bytes, this.take(8))
    if (!Number.isSafeInteger(value)) throw new Truncated('a number is beyond 2^53')
    return value
  }
  /** Eight bytes that hold a whole number from 0 to 2^53 - 1. */
  u53(): number {
    const value = this.i64()
    if (value < 0) throw new Truncated(`${value} is negative`)
    return value
  }
  /** A view of the next `length` bytes, not a copy. */
  raw(length: number): Uint8Array {
    const at = this.take(length)
    return this.bytes.subarray(at, at + length)
  }
  /** u32 length, then bytes; a view. */
  blob(): Uint8Array {
    return this.raw(this.u32())
  }
  /** u16 length, then UTF-8. */
  text(): string {
    const bytes = this.raw(this.u16())
    try {
      return fromUtf8(bytes)
    } catch (cause) {
      throw new Truncated('a text is not UTF-8', { cause })
    }
  }
  /** An array count that `left` bytes can hold, each element taking at least `leastBytes`. */
  count(leastBytes: number): number {
    const count = this.u32()
    if (count * leastBytes > this.left) {
      throw new Truncated(`${count} elements announced, ${this.left} bytes left`)
    }
    return count
  }
  /** Every byte must have been read. */
  done(): void {
    if (this.left !== 0) throw new Truncated(`${this.left} bytes too many`)
  }
}

export class ByteWriter {
  private bytes: Uint8Array
  private length = 0

  constructor(capacity: number = 256) {
    this.bytes = new Uint8Array(capacity)
  }

  get size(): number {
    return this.length
  }

  private grow(by: number): number {
    const at = this.length
    const need = at + by
    if (need > this.bytes.length) {
      const larger = new Uint8Array(Math.max(need, 2 * this.bytes.length))
      larger.set(this.bytes.subarray(0, at))
      this.bytes = larger
    }
    this.length = need
    return at
  }

  u8(value: number): this {
    const at = this.grow(1)
    this.bytes[at] = value
    return this
  }
  bool(value: boolean): this {
    return this.u8(value ? 1 : 0)
  }
  u16(value: number): this {
    const at = this.grow(2)
    putU16(this.bytes, at, value)
    return this
  }
  u32(value: number): this {
    const at = this.grow(4)
    putU32(this.bytes, at, value)
    return this
  }
  i32(value: number): this {
    return this.u32(value >>> 0)
  }
  i64(value: number): this {
    const at = this.grow(8)
    putI64(this.bytes, at, value)
    return this
  }
  raw(value: Uint8Array): this {
    const at = this.grow(value.length)
    this.bytes.set(value, at)
    return this
  }
  blob(value: Uint8Array): this {
    return this.u32(value.length).raw(value)
  }
  text(value: string): this {
    const bytes = value.length === 0 ? EMPTY : utf8(value)
    if (bytes.length > 0xffff) throw new RangeError('a text is longer than 65,535 bytes')
    return this.u16(bytes.length).raw(bytes)
  }
  /** Overwrites four bytes written earlier, for lengths known at the end. */
  setU32(at: number, value: number): void {
    putU32(this.bytes, at, value)
  }
  /** Takes back what was written from `size` on. */
  truncate(size: number): void {
    if (size > this.length) throw new RangeError(`${size} bytes of ${this.length} cannot stay`)
    this.length = size
  }
  /** What was written: a view that later writes may outgrow, so take it last. */
  finish(): Uint8Array {
    return this.bytes.subarray(0, this.length)
  }
}

/** u32 count, then the items. */
export function writeList<T>(
  w: ByteWriter,
  items: readonly T[],
  write: (w: ByteWriter, item: T) => void,
): void {
  w.u32(items.length)
  for (const item of items) write(w, item)
}

/** `leastBytes` is the size of the smallest element: it bounds the count before anything is allocated. */
export function readList<T>(
  r: ByteReader,
  leastBytes: number,
  read: (r: ByteReader) => T,
): readonly T[] {
  return Array.from({ length: r.count(leastBytes) }, () => read(r))
}
