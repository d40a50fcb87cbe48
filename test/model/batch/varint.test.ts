import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import fc from 'fast-check'
import {
  lengthBytes,
  putVarint,
  putVarlong,
  VarintReader,
  varlongBytes,
} from '../../../src/model/batch/varint.ts'

/** The definition, in whole numbers without limits. */
function byDefinition(value: number): number[] {
  const wide = BigInt(value)
  let rest = wide < 0n ? -2n * wide - 1n : 2n * wide
  const out: number[] = []
  while (rest > 0x7fn) {
    out.push(Number(rest & 0x7fn) | 0x80)
    rest >>= 7n
  }
  return [...out, Number(rest)]
}

/** Every value at which something changes: powers of two, their neighbours and negatives. */
const EDGES = Array.from({ length: 53 }, (_, bit) => 2 ** bit)
  .flatMap((power) => [power - 1, power, power + 1])
  .flatMap((value) => [value, -value])
  .filter((value) => Number.isSafeInteger(value))
  .map((value) => value + 0)
const long = fc.oneof(
  fc.maxSafeInteger(),
  fc.constantFrom(...EDGES),
  fc.integer({ min: -300, max: 300 }),
)
const int = fc.oneof(
  fc.integer({ min: -1, max: 0x7fff_ffff }),
  fc.constantFrom(...EDGES.filter((value) => value >= -1 && value <= 0x7fff_ffff)),
)

function reader(bytes: Uint8Array): VarintReader {
  return new VarintReader(bytes, 0, bytes.length)
}

describe('variable-length integers', () => {
  it('are written by the definition, are as long as foretold, and are read back', () => {
    fc.assert(
      fc.property(long, (value) => {
        const b = new Uint8Array(12)
        const end = putVarlong(b, 0, value)
        assert.deepEqual([...b.subarray(0, end)], byDefinition(value))
        assert.equal(varlongBytes(value), end)
        assert.equal(reader(b.subarray(0, end)).varlong(), value)
      }),
      { numRuns: 1000 },
    )
  })

  it('of 32 bits likewise', () => {
    fc.assert(
      fc.property(int, (value) => {
        const b = new Uint8Array(6)
        const end = putVarint(b, 0, value)
        assert.deepEqual([...b.subarray(0, end)], byDefinition(value))
        if (value >= 0) assert.equal(lengthBytes(value), end)
        assert.equal(reader(b.subarray(0, end)).varint(), value)
      }),
      { numRuns: 1000 },
    )
  })

  it('that are cut off are refused', () => {
    fc.assert(
      fc.property(long, (value) => {
        const whole = byDefinition(value)
        for (let length = 0; length < whole.length; length++) {
          const cut = Uint8Array.from(whole.slice(0, length))
          assert.throws(() => reader(cut).varlong(), { code: 'DECODE_FAILED' })
          assert.throws(() => reader(cut).varint(), { code: 'DECODE_FAILED' })
        }
      }),
    )
  })

  it('with more bits than their kind has are refused', () => {
    const refuse = (bytes: number[], read: (r: VarintReader) => number): void => {
      assert.throws(() => read(reader(Uint8Array.from(bytes))), { code: 'DECODE_FAILED' })
    }
    refuse([0xff, 0xff, 0xff, 0xff, 0x10], (r) => r.varint())
    refuse([0x80, 0x80, 0x80, 0x80, 0x80, 0x00], (r) => r.varint())
    refuse([0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01], (r) => r.varlong())
    refuse(
      Array.from({ length: 30 }, () => 0x80),
      (r) => r.varlong(),
    )
  })

  it('of 32 bits take the least and the greatest', () => {
    assert.equal(reader(Uint8Array.of(0xff, 0xff, 0xff, 0xff, 0x0f)).varint(), -0x8000_0000)
    assert.equal(reader(Uint8Array.of(0xfe, 0xff, 0xff, 0xff, 0x0f)).varint(), 0x7fff_ffff)
  })
})
