// How large may compressed bytes grow? Told from their own headers and before any memory is taken, so that a
// decompression bomb is refused and not survived. Sources: the LZ4 frame format description 1.6.x, RFC 8878 (zstd),
// the Snappy format description and the block framing of snappy-java.

/** Thrown on bytes that are not of the codec. */
export class NotOfCodec extends Error {
  override readonly name: string = 'NotOfCodec'
}

const LZ4_MAGIC = 0x184d2204
/** By the three bits of the block size field; those below 4 are not used. */
const LZ4_BLOCK_BYTES: ReadonlyMap<number, number> = new Map([
  [4, 64 * 1024],
  [5, 256 * 1024],
  [6, 1024 * 1024],
  [7, 4 * 1024 * 1024],
])

/** An upper bound: every block but the last is taken to be full. */
export function lz4Bound(bytes: Buffer): number {
  if (bytes.length < 7 || bytes.readUInt32LE(0) !== LZ4_MAGIC) throw new NotOfCodec('no lz4 frame')
  const flags = bytes[4] as number
  const block = LZ4_BLOCK_BYTES.get(((bytes[5] as number) >> 4) & 7)
  if (block === undefined) throw new NotOfCodec('an lz4 block size that does not exist')
  let at = 6 + ((flags & 0x08) !== 0 ? 8 : 0) + ((flags & 0x01) !== 0 ? 4 : 0) + 1
  const trailer = (flags & 0x10) !== 0 ? 4 : 0
  let bound = 0
  for (;;) {
    if (at + 4 > bytes.length) throw new NotOfCodec('an lz4 frame that is cut off')
    const word = bytes.readUInt32LE(at)
    if (word === 0) return bound
    const length = word & 0x7fffffff
    bound += word >>> 31 === 1 ? length : Math.min(block, length * 255 + 64)
    at += 4 + length + trailer
  }
}

const ZSTD_MAGIC = 0xfd2fb528
const ZSTD_BLOCK_BYTES = 128 * 1024
const CONTENT_SIZE_BYTES = [0, 2, 4, 8] as const
const DICTIONARY_BYTES = [0, 1, 2, 4] as const

export function zstdBound(bytes: Buffer): number {
  if (bytes.length < 6 || bytes.readUInt32LE(0) !== ZSTD_MAGIC)
    throw new NotOfCodec('no zstd frame')
  const descriptor = bytes[4] as number
  const single = (descriptor & 0x20) !== 0
  const sizeFlag = descriptor >> 6
  const sizeBytes = sizeFlag === 0 && single ? 1 : (CONTENT_SIZE_BYTES[sizeFlag] as number)
  let at = 5 + (single ? 0 : 1) + (DICTIONARY_BYTES[descriptor & 3] as number) + sizeBytes
  let bound = 0
  for (;;) {
    if (at + 3 > bytes.length) throw new NotOfCodec('a zstd frame that is cut off')
    const header = bytes.readUIntLE(at, 3)
    const kind = (header >> 1) & 3
    const size = header >> 3
    if (kind === 3) throw new NotOfCodec('a zstd block of a reserved kind')
    bound += kind === 2 ? ZSTD_BLOCK_BYTES : size
    at += 3 + (kind === 1 ? 1 : size)
    if ((header & 1) === 1) return bound
  }
}

/** The uncompressed length that raw snappy begins with. */
export function snappyLength(bytes: Uint8Array): number {
  let length = 0
  for (let i = 0; i < 5; i++) {
    const byte = bytes[i]
    if (byte === undefined) break
    length += (byte & 0x7f) * 2 ** (7 * i)
    if (byte < 0x80) return length
  }
  throw new NotOfCodec('no snappy length')
}

const XERIAL_MAGIC = Buffer.from([0x82, 0x53, 0x4e, 0x41, 0x50, 0x50, 0x59, 0x00])
export const XERIAL_HEADER: Buffer = Buffer.concat([
  XERIAL_MAGIC,
  Buffer.from([0, 0, 0, 1, 0, 0, 0, 1]),
])

/** The raw snappy blocks of snappy-java's framing; one block when the bytes are raw snappy. */
export function snappyBlocks(bytes: Buffer): Buffer[] {
  if (!bytes.subarray(0, XERIAL_MAGIC.length).equals(XERIAL_MAGIC)) return [bytes]
  const blocks: Buffer[] = []
  let at = XERIAL_HEADER.length
  while (at < bytes.length) {
    if (at + 4 > bytes.length) throw new NotOfCodec('a snappy block that is cut off')
    const length = bytes.readUInt32BE(at)
    if (length > bytes.length - at - 4) throw new NotOfCodec('a snappy block that is cut off')
    blocks.push(bytes.subarray(at + 4, at + 4 + length))
    at += 4 + length
  }
  return blocks
}
