import assert from 'node:assert/strict'
import { test } from 'node:test'
import { crc32c as native } from '@node-rs/crc32'
import fc from 'fast-check'
import { utf8 } from '../../src/base/bytes.ts'
import { crc32c, crc32cOf } from '../../src/base/checksum.ts'

test('CRC32C is that of RFC 3720', () => {
  assert.equal(crc32c(utf8('123456789')), 0xe3069283)
  assert.equal(crc32c(new Uint8Array(32)), 0x8a9136aa)
  assert.equal(crc32c(new Uint8Array(32).fill(0xff)), 0x62a8ab43)
  assert.equal(crc32c(new Uint8Array(0)), 0)
})

test('by table and natively, whole and continued, any run has one checksum', () => {
  fc.assert(
    fc.property(
      fc.uint8Array({ maxLength: 600 }),
      fc.nat(600),
      fc.nat(600),
      fc.integer({ min: 0, max: 0xffff_ffff }),
      (bytes, a, b, seed) => {
        const from = Math.min(a, b, bytes.length)
        const to = Math.min(Math.max(a, b), bytes.length)
        const expected = native(bytes.subarray(from, to), seed)
        assert.equal(crc32cOf(bytes, from, to, seed), expected)
        const middle = (from + to) >>> 1
        const half = crc32cOf(bytes, from, middle, seed)
        assert.equal(crc32cOf(bytes, middle, to, half), expected)
      },
    ),
  )
})
