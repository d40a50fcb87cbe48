// The same codecs as the real port by the same libraries, but synchronously: the thread pool finishes in an order that
// no seed decides.

import { gunzipSync, gzipSync } from 'node:zlib'
import { Decoder, Encoder } from '@toondepauw/node-zstd'
import { compressFrameSync, decompressFrameSync } from 'lz4-napi'
import snappy from 'snappy'
import { concatBytes } from '../../base/bytes.ts'
import type { Codec } from '../../base/codec.ts'
import { checkLz4 } from '../../base/compression/lz4.ts'
import { refuseGrowth } from '../../base/compression/refusal.ts'
import { snappyBlocks, XERIAL_BLOCK_BYTES, xerialFrame } from '../../base/compression/snappy.ts'
import { openZstd } from '../../base/compression/zstd.ts'
import { EastGuardError } from '../../base/errors.ts'
import type { Compute } from '../../ports/compute.ts'

const ZSTD_LEVEL = 3

export const simCompute: Compute = {
  async compress(codec: Codec, bytes: Uint8Array): Promise<Uint8Array> {
    const input = asBuffer(bytes)
    switch (codec) {
      case 'none':
        return bytes
      case 'gzip':
        return gzipSync(input)
      case 'snappy': {
        const blocks: Buffer[] = []
        for (let at = 0; at < input.length; at += XERIAL_BLOCK_BYTES) {
          blocks.push(snappy.compressSync(input.subarray(at, at + XERIAL_BLOCK_BYTES)))
        }
        return xerialFrame(blocks)
      }
      case 'lz4':
        return compressFrameSync(input)
      case 'zstd':
        return new Encoder(ZSTD_LEVEL).encodeSync(input)
    }
  },

  async decompress(codec: Codec, bytes: Uint8Array, maxBytes: number): Promise<Uint8Array> {
    try {
      const content = open(codec, asBuffer(bytes), maxBytes)
      if (content.length > maxBytes) throw refuseGrowth(content.length, maxBytes)
      return content
    } catch (cause) {
      throw new EastGuardError('DECODE_FAILED', `cannot decompress with ${codec}`, { cause })
    }
  },
}

function open(codec: Codec, input: Buffer, maxBytes: number): Uint8Array {
  switch (codec) {
    case 'none':
      return input
    case 'gzip':
      return gunzipSync(input, { maxOutputLength: Math.max(1, maxBytes) })
    case 'snappy':
      return concatBytes(
        snappyBlocks(input, maxBytes).map(
          (block) => snappy.uncompressSync(block, { asBuffer: true }) as Buffer,
        ),
      )
    case 'lz4':
      checkLz4(input, maxBytes)
      return decompressFrameSync(input)
    case 'zstd': {
      const pieces = openZstd(input, maxBytes)
      let step = pieces.next()
      while (step.done !== true) step = pieces.next(new Decoder().decodeSync(asBuffer(step.value)))
      return step.value
    }
  }
}

function asBuffer(bytes: Uint8Array): Buffer {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length)
}
