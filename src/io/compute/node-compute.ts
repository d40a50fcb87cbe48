// The compute port: each codec by its library. Work below SYNC_BELOW_BYTES is done at once, because crossing to the
// thread pool costs more than the work; anything larger leaves the event loop.

import { promisify } from 'node:util'
import zlib from 'node:zlib'
import { Decoder, Encoder } from '@toondepauw/node-zstd'
import { compressFrame, compressFrameSync, decompressFrame, decompressFrameSync } from 'lz4-napi'
import snappy from 'snappy'
import type { Codec } from '../../base/codec.ts'
import type { Compute } from '../../ports/compute.ts'
import { lz4Bound, snappyBlocks, snappyLength, XERIAL_HEADER, zstdBound } from './bounds.ts'

const SYNC_BELOW_BYTES = 16 * 1024
/** snappy-java's default block, which its readers allocate. */
const XERIAL_BLOCK_BYTES = 32 * 1024
/** zstd's own default: the knee of speed against size. */
const ZSTD_LEVEL = 3

const gzip = promisify(zlib.gzip)
const gunzip = promisify<zlib.InputType, zlib.ZlibOptions, Buffer>(zlib.gunzip)

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
        return compressXerial(input)
      case 'lz4':
        return small ? compressFrameSync(input) : compressFrame(input)
      case 'zstd': {
        const encoder = new Encoder(ZSTD_LEVEL)
        return small ? encoder.encodeSync(input) : encoder.encode(input)
      }
    }
  },

  async decompress(codec: Codec, bytes: Uint8Array, maxBytes: number): Promise<Uint8Array> {
    const input = asBuffer(bytes)
    switch (codec) {
      case 'none':
        check(input.length, 0, maxBytes)
        return bytes
      case 'gzip':
        return input.length < SYNC_BELOW_BYTES && maxBytes < 4 * SYNC_BELOW_BYTES
          ? zlib.gunzipSync(input, { maxOutputLength: maxBytes })
          : gunzip(input, { maxOutputLength: maxBytes })
      case 'snappy':
        return decompressSnappy(input, maxBytes)
      case 'lz4': {
        // The last block of a frame may be less than full: the bound is high by at most one block.
        const bound = lz4Bound(input)
        check(bound, 4 << 20, maxBytes)
        const output =
          bound < SYNC_BELOW_BYTES ? decompressFrameSync(input) : await decompressFrame(input)
        check(output.length, 0, maxBytes)
        return output
      }
      case 'zstd': {
        const bound = zstdBound(input)
        check(bound, 128 * 1024, maxBytes)
        const decoder = new Decoder()
        const output =
          input.length < SYNC_BELOW_BYTES ? decoder.decodeSync(input) : await decoder.decode(input)
        check(output.length, 0, maxBytes)
        return output
      }
    }
  },
}

function check(length: number, tolerance: number, maxBytes: number): void {
  if (length > maxBytes + tolerance) {
    throw new RangeError(
      `the bytes grow to ${length} when decompressed, at most ${maxBytes} are taken`,
    )
  }
}

function asBuffer(bytes: Uint8Array): Buffer {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length)
}

async function compressXerial(input: Buffer): Promise<Buffer> {
  const parts: Buffer[] = [XERIAL_HEADER]
  for (let at = 0; at === 0 || at < input.length; at += XERIAL_BLOCK_BYTES) {
    const block = snappy.compressSync(input.subarray(at, at + XERIAL_BLOCK_BYTES))
    const length = Buffer.allocUnsafe(4)
    length.writeUInt32BE(block.length)
    parts.push(length, block)
  }
  return Buffer.concat(parts)
}

function decompressSnappy(input: Buffer, maxBytes: number): Buffer {
  const blocks = snappyBlocks(input)
  let total = 0
  for (const block of blocks) total += snappyLength(block)
  check(total, 0, maxBytes)
  return Buffer.concat(
    blocks.map((block) => snappy.uncompressSync(block, { asBuffer: true }) as Buffer),
  )
}
