import assert from 'node:assert/strict'
import { test } from 'node:test'
import { gzipSync } from 'node:zlib'
import { Encoder } from '@toondepauw/node-zstd'
import { compressFrameSync } from 'lz4-napi'
import snappy from 'snappy'
import { prng } from '../../src/base/prng.ts'
import { nodeCompute } from '../../src/io/compute/node-compute.ts'
import type { Compute } from '../../src/ports/compute.ts'
import { simCompute } from '../../src/sim/ports/compute.ts'
import { computeSuite, refused } from './compute.suite.ts'

const SIDES: readonly (readonly [string, Compute])[] = [
  ['native', nodeCompute],
  ['simulated', simCompute],
]

for (const [name, compute] of SIDES) {
  computeSuite(name, compute)

  test(`${name} compute: snappy is framed for Java's readers, and read with and without`, async () => {
    const content = prng(1).bytes(100_000)
    const framed = Buffer.from(await compute.compress('snappy', content))
    assert.equal(framed.subarray(1, 7).toString(), 'SNAPPY')
    // Blocks of 32 KiB, each with its length in front.
    assert.equal(framed.subarray(20, 20 + framed.readUInt32BE(16)).length, framed.readUInt32BE(16))
    const raw = snappy.compressSync(Buffer.from(content))
    assert.ok(Buffer.from(await compute.decompress('snappy', raw, 100_000)).equals(content))
  })

  test(`${name} compute: a zstd frame of many small blocks is opened within its true size`, async () => {
    // One record per frame makes as many blocks as a client that flushes after each.
    const record = Buffer.from('a record of some length, like the others before it. '.repeat(20))
    const frames = Array.from({ length: 100 }, () => new Encoder(3).encodeSync(record))
    const whole = Buffer.concat(frames)
    const bound = 100 * record.length
    const back = await compute.decompress('zstd', whole, bound)
    assert.equal(back.length, bound)
    await refused(compute.decompress('zstd', whole, bound - 1))
  })

  test(`${name} compute: one zstd frame joined of many small blocks is opened in pieces`, async () => {
    const { frame, length } = zstdFrameOfSmallBlocks(12)
    assert.ok(length < 12 * 128 * 1024)
    const back = await compute.decompress('zstd', frame, length)
    assert.equal(back.length, length)
    await refused(compute.decompress('zstd', frame, length - 1))
  })

  test(`${name} compute: what follows an lz4 frame or a gzip member is not ignored`, async () => {
    const lz4 = compressFrameSync(Buffer.from('text'))
    await refused(compute.decompress('lz4', Buffer.concat([lz4, lz4]), 1000))
    const gzip = gzipSync('text')
    await refused(compute.decompress('gzip', Buffer.concat([gzip, Buffer.from('zz')]), 1000))
  })
}

/** Compressed blocks that hold far less than a block may, as encoders make them that split or flush often. */
function zstdFrameOfSmallBlocks(count: number): { frame: Buffer; length: number } {
  const parts: Buffer[] = [Buffer.from([0x28, 0xb5, 0x2f, 0xfd, 0, 0x38])]
  let length = 0
  for (let i = 0; i < count; i++) {
    const content = Buffer.from(`block ${i} `.repeat(5000))
    const encoded = new Encoder(3).encodeSync(content)
    // magic 4, descriptor 1, window 1; one block; checksum if the descriptor says so.
    assert.equal((encoded[4] as number) & 0xe3, 0)
    const check = ((encoded[4] as number) & 4) !== 0 ? 4 : 0
    const block = Buffer.from(encoded.subarray(6, encoded.length - check))
    assert.equal(block.readUIntLE(0, 3) & 7, 5, 'one compressed block')
    if (i < count - 1) block[0] = (block[0] as number) & 0xfe
    parts.push(block)
    length += content.length
  }
  return { frame: Buffer.concat(parts), length }
}
