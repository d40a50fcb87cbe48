import assert from 'node:assert/strict'
import { it } from 'node:test'
import fc from 'fast-check'
import { ERRORS, type ErrorCode } from '../../../src/base/errors.ts'
import { type FetchResponse, fetch, fetchedParts } from '../../../src/wire/native/fetch.ts'
import { responseFrame } from '../../../src/wire/native/header.ts'

const partition = fc.record({
  error: fc.option(fc.constantFrom(...(Object.keys(ERRORS) as ErrorCode[])), { nil: undefined }),
  highWatermark: fc.maxSafeInteger(),
  logStart: fc.maxSafeInteger(),
  batches: fc.array(fc.uint8Array({ minLength: 1, maxLength: 30 }), { maxLength: 3 }),
})
const response: fc.Arbitrary<FetchResponse> = fc.record({
  partitions: fc.array(partition, { maxLength: 4 }),
})

it('a FETCH response in parts is the response, with the batches by reference', () => {
  fc.assert(
    fc.property(response, fc.nat(0xffff_ffff), (value, id) => {
      const parts = fetchedParts(id, value)
      assert.ok(Buffer.concat(parts).equals(responseFrame(fetch, id, value)))
      for (const { batches } of value.partitions) {
        for (const batch of batches) assert.ok(parts.includes(batch))
      }
    }),
  )
})
