// Numbers in bytes, big-endian, as in all our formats and Kafka's. Plain shifts on a Uint8Array: no
// DataView per buffer and no BigInt. A "u53" is eight bytes whose value must fit a safe integer.

const TWO_32 = 0x1_0000_0000

export const EMPTY: Uint8Array = new Uint8Array(0)

export function getU16(b: Uint8Array, at: number): number {
  return ((b[at] as number) << 8) | (b[at + 1] as number)
}

export function getU32(b: Uint8Array, at: number): number {
  return (
    (((b[at] as number) << 24) |
      ((b[at + 1] as number) << 16) |
      ((b[at + 2] as number) << 8) |
      (b[at + 3] as number)) >>>
    0
  )
}

export function getI32(b: Uint8Array, at: number): number {
  return getU32(b, at) | 0
}

export function getI16(b: Uint8Array, at: number): number {
  return (getU16(b, at) << 16) >> 16
}

/** Eight bytes, signed. Exact within +-2^53; the caller checks the range where it matters. */
export function getI64(b: Uint8Array, at: number): number {
  return getI32(b, at) * TWO_32 + getU32(b, at + 4)
}

export function putU16(b: Uint8Array, at: number, value: number): void {
  b[at] = value >>> 8
  b[at + 1] = value
}

export function putU32(b: Uint8Array, at: number, value: number): void {
  b[at] = value >>> 24
  b[at + 1] = value >>> 16
  b[at + 2] = value >>> 8
  b[at + 3] = value
}

export function putI64(b: Uint8Array, at: number, value: number): void {
  // A difference and not a remainder: floating-point `%` is a slow call.
  const high = Math.floor(value / TWO_32)
  putU32(b, at, high)
  putU32(b, at + 4, value - high * TWO_32)
}

const encoder = new TextEncoder()
const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })

export function utf8(text: string): Uint8Array<ArrayBuffer> {
  return encoder.encode(text)
}

/** Throws a TypeError when the bytes are not UTF-8. */
export function fromUtf8(bytes: Uint8Array): string {
  return decoder.decode(bytes)
}

export function equalBytes(a: Uint8Array, b: Uint8Array): boolean {
  if (a.length !== b.length) return false
  for (let i = 0; i < a.length; i++) if (a[i] !== b[i]) return false
  return true
}

export function concatBytes(parts: readonly Uint8Array[]): Uint8Array {
  let length = 0
  for (const part of parts) length += part.length
  const all = new Uint8Array(length)
  let at = 0
  for (const part of parts) {
    all.set(part, at)
    at += part.length
  }
  return all
}

/** The two digits of every byte, and the digit's value of every character code below 128 (NO_DIGIT for others). */
const HEX: readonly string[] = Array.from({ length: 256 }, (_, byte) =>
  byte.toString(16).padStart(2, '0'),
)
const NO_DIGIT = 0xff
const DIGITS: Uint8Array = new Uint8Array(128).fill(NO_DIGIT)
for (let digit = 0; digit < 16; digit++) {
  const text = digit.toString(16)
  DIGITS[text.charCodeAt(0)] = digit
  DIGITS[text.toUpperCase().charCodeAt(0)] = digit
}

export function toHex(bytes: Uint8Array): string {
  let text = ''
  for (const byte of bytes) text += HEX[byte] as string
  return text
}

/** The bytes of an even-length hexadecimal string; throws a RangeError on anything else. */
export function fromHex(text: string): Uint8Array {
  if (text.length % 2 !== 0) throw new RangeError('not hexadecimal')
  const bytes = new Uint8Array(text.length / 2)
  for (let i = 0; i < bytes.length; i++) {
    const high = DIGITS[text.charCodeAt(2 * i)] ?? NO_DIGIT
    const low = DIGITS[text.charCodeAt(2 * i + 1)] ?? NO_DIGIT
    if (high === NO_DIGIT || low === NO_DIGIT) throw new RangeError('not hexadecimal')
    bytes[i] = (high << 4) | low
  }
  return bytes
}
