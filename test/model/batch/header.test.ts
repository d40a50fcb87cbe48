import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { BatchBuilder } from '../../../src/model/batch/encode.ts'
import { batchFault, setBatchCrc } from '../../../src/model/batch/header.ts'

const LIMIT = 1000

function batch(): Uint8Array {
  const builder = new BatchBuilder()
  builder.append(null, Buffer.from('value'), [], 1)
  builder.append(null, Buffer.from('value'), [], 2)
  return builder.finish()
}

/** A good batch with bytes changed at a place, and a checksum that is right again. */
function changed(at: number, ...bytes: number[]): Uint8Array {
  const b = batch()
  b.set(bytes, at)
  setBatchCrc(b)
  return b
}

/** Says 100 records everywhere, but holds two. */
function boastful(): Uint8Array {
  const b = changed(26, 99)
  b.set([0, 0, 0, 100], 57)
  setBatchCrc(b)
  return b
}

describe('what a broker refuses of a batch', () => {
  it('nothing, when it is good', () => {
    assert.equal(batchFault(batch(), LIMIT), undefined)
    assert.equal(batchFault(batch(), batch().length), undefined)
  })

  const cases: readonly (readonly [string, Uint8Array, number, string])[] = [
    ['larger than the topic allows', batch(), batch().length - 1, 'BATCH_TOO_LARGE'],
    ['shorter than its header', batch().subarray(0, 60), LIMIT, 'CORRUPT_BATCH'],
    ['of another magic', changed(16, 1), LIMIT, 'UNSUPPORTED_BATCH'],
    ['with bytes behind it', Buffer.concat([batch(), Buffer.alloc(1)]), LIMIT, 'CORRUPT_BATCH'],
    ['cut off', batch().subarray(0, batch().length - 1), LIMIT, 'CORRUPT_BATCH'],
    ['of a codec that does not exist', changed(22, 5), LIMIT, 'UNSUPPORTED_BATCH'],
    ['of a transaction', changed(22, 0x10), LIMIT, 'UNSUPPORTED_BATCH'],
    ['that is a control batch', changed(22, 0x20), LIMIT, 'UNSUPPORTED_BATCH'],
    ['with attributes from the future', changed(21, 0x80), LIMIT, 'UNSUPPORTED_BATCH'],
    ['without records', changed(57, 0, 0, 0, 0), LIMIT, 'CORRUPT_BATCH'],
    ['of fewer than no records', changed(57, 0xff, 0xff, 0xff, 0xff), LIMIT, 'CORRUPT_BATCH'],
    ['whose count and last offset differ', changed(57, 0, 0, 0, 3), LIMIT, 'CORRUPT_BATCH'],
    ['with no room for its count', boastful(), LIMIT, 'CORRUPT_BATCH'],
    ['of a negative length', changed(8, 0xff, 0xff, 0xff, 0xff), LIMIT, 'CORRUPT_BATCH'],
  ]
  for (const [what, bytes, most, code] of cases) {
    it(`one ${what}: ${code}`, () => {
      assert.equal(batchFault(bytes, most)?.code, code)
    })
  }
})
