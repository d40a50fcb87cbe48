// Zstandard by node:zlib where it has it (Node 22.15 and later), else by a native package.

import { promisify } from 'node:util'
import zlib from 'node:zlib'
import { Decoder, Encoder } from '@toondepauw/node-zstd'
import { openZstd } from '../../base/compression/zstd.ts'

/** What the type declarations of Node 20 lack. */
interface ZstdZlib {
  readonly zstdCompress: (input: Buffer, callback: Callback) => void
  readonly zstdCompressSync: (input: Buffer) => Buffer
  readonly zstdDecompress: (input: Buffer, options: Bound, callback: Callback) => void
  readonly zstdDecompressSync: (input: Buffer, options: Bound) => Buffer
}
type Callback = (error: Error | null, result: Buffer) => void
interface Bound {
  readonly maxOutputLength: number
}

/** zstd's own default: the knee of speed against size. */
const LEVEL = 3

const builtIn = 'zstdCompress' in zlib ? (zlib as unknown as ZstdZlib) : undefined
const builtInCompress = builtIn && promisify(builtIn.zstdCompress)
const builtInDecompress = builtIn && promisify(builtIn.zstdDecompress)

export function compressZstd(input: Buffer, sync: boolean): Buffer | Promise<Buffer> {
  if (builtIn !== undefined && builtInCompress !== undefined) {
    return sync ? builtIn.zstdCompressSync(input) : builtInCompress(input)
  }
  const encoder = new Encoder(LEVEL)
  return sync ? encoder.encodeSync(input) : encoder.encode(input)
}

export async function decompressZstd(
  input: Buffer,
  maxBytes: number,
  sync: boolean,
): Promise<Uint8Array> {
  // Its walk over the frame also refuses what is cut off, which the built-in decoder takes for a stream's middle.
  const pieces = openZstd(input, maxBytes)
  let step = pieces.next()
  while (step.done !== true) {
    const piece = step.value as Buffer
    step = pieces.next(await decode(piece, maxBytes, sync))
  }
  return step.value
}

function decode(piece: Buffer, maxBytes: number, sync: boolean): Buffer | Promise<Buffer> {
  if (builtIn !== undefined && builtInDecompress !== undefined) {
    const options = { maxOutputLength: Math.max(1, maxBytes) }
    return sync ? builtIn.zstdDecompressSync(piece, options) : builtInDecompress(piece, options)
  }
  const decoder = new Decoder()
  const buffer = Buffer.from(piece.buffer, piece.byteOffset, piece.length)
  return sync ? decoder.decodeSync(buffer) : decoder.decode(buffer)
}
