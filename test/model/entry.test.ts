import assert from 'node:assert/strict'
import { it } from 'node:test'
import fc from 'fast-check'
import { BatchBuilder } from '../../src/model/batch/encode.ts'
import {
  BATCH_UNCOVERED_BYTES,
  ENVELOPE_BYTES,
  getEnvelope,
  putEnvelope,
} from '../../src/model/entry.ts'

const u32 = fc.nat(0xffff_ffff)
const number = fc.maxSafeNat()

function batchOf(value: Uint8Array): Uint8Array {
  const builder = new BatchBuilder()
  builder.append(null, value, [], 1)
  return builder.finish()
}

const entry = fc.record({
  entryNumber: number,
  partition: u32,
  baseOffset: number,
  recordCount: u32,
  logTimeMs: number,
  highWatermark: number,
  leastKeyHash: u32,
  greatestKeyHash: u32,
  batch: fc.uint8Array({ maxLength: 20 }).map(batchOf),
})
const place = fc.record({
  topicIdBytes: fc.uint8Array({ minLength: 16, maxLength: 16 }),
  range: u32,
  segment: number,
})

type Of<A> = A extends fc.Arbitrary<infer T> ? T : never

function stored(p: Of<typeof place>, e: Of<typeof entry>): Uint8Array {
  const bytes = new Uint8Array(ENVELOPE_BYTES + e.batch.length)
  putEnvelope(bytes, 0, p, e)
  bytes.set(e.batch, ENVELOPE_BYTES)
  return bytes
}

it('an entry is read as it was written, wherever it lies', () => {
  fc.assert(
    fc.property(place, entry, fc.nat(50), (p, e, at) => {
      const bytes = new Uint8Array(at + ENVELOPE_BYTES + e.batch.length + 9)
      putEnvelope(bytes, at, p, e)
      bytes.set(e.batch, at + ENVELOPE_BYTES)
      const read = getEnvelope(bytes, at)
      assert.ok(read !== undefined)
      assert.deepEqual({ ...read.place }, { ...p })
      assert.deepEqual({ ...read.entry }, { ...e })
    }),
  )
})

it('no byte of envelope or batch start can change unseen', () => {
  fc.assert(
    fc.property(place, entry, fc.nat(), fc.integer({ min: 1, max: 255 }), (p, e, at, change) => {
      const bytes = stored(p, e)
      const covered = at % (ENVELOPE_BYTES + BATCH_UNCOVERED_BYTES)
      bytes[covered] = (bytes[covered] as number) ^ change
      assert.equal(getEnvelope(bytes, 0), undefined)
    }),
  )
})

it('an entry that is cut off is none', () => {
  fc.assert(
    fc.property(place, entry, (p, e) => {
      const bytes = stored(p, e)
      for (let length = 0; length < bytes.length; length++) {
        assert.equal(getEnvelope(bytes.subarray(0, length), 0), undefined)
      }
    }),
    { numRuns: 20 },
  )
})
