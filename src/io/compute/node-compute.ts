// The compute port: each codec by its library. Small inputs are done at once, because crossing to the thread pool
// costs more than the work; larger ones leave the event loop.
//
// No codec may take more memory than `maxBytes` when it decompresses. zlib counts as it goes; for the others
// base/compression reads the sizes out of the compressed bytes first. Where that leaves doubt (zstd without
// node:zlib's own), the frame is decompressed in growing pieces.

import { promisify } from 'node:util'
import zlib from 'node:zlib'
import { compressFrame, compressFrameSync, decompressFrame, decompressFrameSync } from 'lz4-napi'
import snappy from 'snappy'
import type { Codec } from '../../base/codec.ts'
import { checkLz4 } from '../../base/compression/lz4.ts'
import { refuseGrowth } from '../../base/compression/refusal.ts'
import { snappyBlocks, XERIAL_BLOCK_BYTES, xerialFrame } from '../../base/compression/snappy.ts'
import { EastGuardError, messageOf } from '../../base/errors.ts'
import type { Compute } from '../../ports/compute.ts'
import { compressZstd, decompressZstd } from './zstd.ts'

const SYNC_BELOW_BYTES = 16 * 1024
/** A small input that grows beyond this is started again on the pool. */
const SYNC_CONTENT_BYTES_MAX = 64 * 1024

export const nodeCompute: Compute = {
  async compress(codec: Codec, bytes: Uint8Array): Promise<Uint8Array> {
    const input = asBuffer(bytes)
    const small = input.length < SYNC_BELOW_BYTES
    switch (codec) {
      case 'none':
        return bytes
      case 'gzip':
        return small ? zlib.gzipSync(input) : gzip(input)
      case 'snappy':
        return compressSnappy(input, small)
      case 'lz4':
        return small ? compressFrameSync(input) : compressFrame(input)
      case 'zstd':
        return compressZstd(input, small)
    }
  },

  async decompress(codec: Codec, bytes: Uint8Array, maxBytes: number): Promise<Uint8Array> {
    try {
      const content = await open(codec, asBuffer(bytes), maxBytes)
      if (content.length > maxBytes) throw refuseGrowth(content.length, maxBytes)
      return content
    } catch (cause) {
      const why = messageOf(cause)
      throw new EastGuardError(
        'DECODE_FAILED',
        `cannot decompress ${bytes.length} bytes with ${codec}: ${why}`,
        { cause },
      )
    }
  },
}

const AS_BUFFER = { asBuffer: true }
const gzip = promisify<zlib.InputType, Buffer>(zlib.gzip)
const gunzip = promisify<zlib.InputType, zlib.ZlibOptions, Buffer>(zlib.gunzip)

function open(codec: Codec, input: Buffer, maxBytes: number): Uint8Array | Promise<Uint8Array> {
  const small = input.length < SYNC_BELOW_BYTES
  switch (codec) {
    case 'none':
      return input
    case 'gzip':
      return openGzip(input, maxBytes, small)
    case 'snappy':
      return openSnappy(input, maxBytes, small)
    case 'lz4':
      checkLz4(input, maxBytes)
      return small ? decompressFrameSync(input) : decompressFrame(input)
    case 'zstd':
      return decompressZstd(input, maxBytes, small)
  }
}

function openGzip(input: Buffer, maxBytes: number, small: boolean): Buffer | Promise<Buffer> {
  const bound = Math.max(1, maxBytes)
  if (!small) return gunzip(input, { maxOutputLength: bound })
  try {
    return zlib.gunzipSync(input, { maxOutputLength: Math.min(bound, SYNC_CONTENT_BYTES_MAX) })
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ERR_BUFFER_TOO_LARGE') throw error
    return gunzip(input, { maxOutputLength: bound })
  }
}

async function compressSnappy(input: Buffer, small: boolean): Promise<Uint8Array> {
  const blocks: Buffer[] = []
  for (let at = 0; at < input.length; at += XERIAL_BLOCK_BYTES) {
    blocks.push(input.subarray(at, at + XERIAL_BLOCK_BYTES))
  }
  if (small) return xerialFrame(blocks.map((block) => snappy.compressSync(block)))
  return xerialFrame(await Promise.all(blocks.map((block) => snappy.compress(block))))
}

async function openSnappy(input: Buffer, maxBytes: number, small: boolean): Promise<Uint8Array> {
  const blocks = snappyBlocks(input, maxBytes)
  const contents = small
    ? blocks.map((block) => snappy.uncompressSync(block, AS_BUFFER) as Buffer)
    : ((await Promise.all(blocks.map((block) => snappy.uncompress(block, AS_BUFFER)))) as Buffer[])
  const [first] = contents
  return first !== undefined && contents.length === 1 ? first : Buffer.concat(contents)
}

function asBuffer(bytes: Uint8Array): Buffer {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length)
}
