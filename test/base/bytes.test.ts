import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import fc from 'fast-check'
import {
  concatBytes,
  equalBytes,
  fromHex,
  getI16,
  getI32,
  getI64,
  getU16,
  getU32,
  putI64,
  putU16,
  putU32,
  toHex,
} from '../../src/base/bytes.ts'

describe('numbers in bytes', () => {
  it('are big-endian, as DataView has them', () => {
    fc.assert(
      fc.property(fc.maxSafeInteger(), fc.nat(0xffff_ffff), fc.nat(0xffff), (i64, u32, u16) => {
        const view = new DataView(new ArrayBuffer(14))
        view.setBigInt64(0, BigInt(i64))
        view.setUint32(8, u32)
        view.setUint16(12, u16)
        const b = new Uint8Array(14)
        putI64(b, 0, i64)
        putU32(b, 8, u32)
        putU16(b, 12, u16)
        assert.deepEqual(b, new Uint8Array(view.buffer))
        assert.equal(getI64(b, 0), i64)
        assert.equal(getU32(b, 8), u32)
        assert.equal(getI32(b, 8), view.getInt32(8))
        assert.equal(getU16(b, 12), u16)
        assert.equal(getI16(b, 12), view.getInt16(12))
      }),
    )
  })
})

describe('hexadecimal text', () => {
  it('is what Buffer makes of the bytes, and gives them back', () => {
    fc.assert(
      fc.property(fc.uint8Array(), (bytes) => {
        const text = Buffer.from(bytes).toString('hex')
        assert.equal(toHex(bytes), text)
        assert.deepEqual(fromHex(text), bytes)
        assert.deepEqual(fromHex(text.toUpperCase()), bytes)
      }),
    )
  })

  it('of an odd length, or with any other character, is refused', () => {
    for (const text of ['0', '0g', ' 0', '0x', '0ä', 'é0', '-1', '00 0']) {
      assert.throws(() => fromHex(text), RangeError, text)
    }
  })
})

it('runs of bytes are compared and joined by content', () => {
  fc.assert(
    fc.property(fc.uint8Array(), fc.uint8Array(), (a, b) => {
      assert.equal(equalBytes(a, b), Buffer.compare(a, b) === 0)
      assert.ok(equalBytes(concatBytes([a, b]), Buffer.concat([a, b])))
    }),
  )
})
