import assert from 'node:assert/strict'
import { it } from 'node:test'
import fc from 'fast-check'
import { EastGuardError, ERRORS, type ErrorCode } from '../../../src/base/errors.ts'
import { redirects } from '../../../src/model/redirect.ts'
import {
  CONSUME_DATA_HEAD_BYTES,
  consumeDataHead,
  consumeEndFrame,
  readConsumeData,
} from '../../../src/wire/native/consume-data.ts'
import { LENGTH_BYTES, operationOf } from '../../../src/wire/native/header.ts'
import { OPERATION } from '../../../src/wire/native/operations.ts'
import { plain, redirecting } from './messages.ts'

const push = fc.record({
  requestId: fc.nat(0xffff_ffff),
  error: fc.option(
    fc.constantFrom(...(Object.keys(ERRORS) as ErrorCode[]).filter((code) => !redirects(code))),
    { nil: undefined },
  ),
  index: fc.nat(0xffff_ffff),
  highWatermark: fc.maxSafeInteger(),
  logStart: fc.maxSafeInteger(),
  nextOffset: fc.maxSafeInteger(),
  batches: fc.uint8Array({ maxLength: 50 }),
})

function frameOf(p: typeof push extends fc.Arbitrary<infer T> ? T : never): Buffer {
  const head = consumeDataHead(
    p.requestId,
    p.error,
    p.index,
    p.highWatermark,
    p.logStart,
    p.nextOffset,
    p.batches.length,
  )
  assert.equal(head.length, CONSUME_DATA_HEAD_BYTES)
  return Buffer.concat([head, p.batches])
}

it('a push is read as it was written', () => {
  fc.assert(
    fc.property(push, (p) => {
      const frame = frameOf(p)
      assert.equal(frame.readUInt32BE(0), frame.length - LENGTH_BYTES)
      const payload = frame.subarray(LENGTH_BYTES)
      assert.equal(operationOf(payload), OPERATION.CONSUME_DATA)
      const read = readConsumeData(payload)
      assert.deepEqual(plain(read), plain(p))
    }),
  )
})

it('a push that ends within its head is refused', () => {
  fc.assert(
    fc.property(push, (p) => {
      const payload = frameOf(p).subarray(LENGTH_BYTES)
      for (let length = 0; length < CONSUME_DATA_HEAD_BYTES - LENGTH_BYTES; length++) {
        assert.throws(
          () => readConsumeData(payload.subarray(0, length)),
          (error) => error instanceof EastGuardError && error.code === 'DECODE_FAILED',
        )
      }
    }),
    { numRuns: 20 },
  )
})

it('the push that ends a stream says where to go instead, and is refused when that is cut off', () => {
  const end = redirecting(
    fc.record({ error: fc.constantFrom(...(Object.keys(ERRORS) as ErrorCode[])) }),
  )
  fc.assert(
    fc.property(end, fc.nat(), fc.maxSafeInteger(), (item, index, nextOffset) => {
      const payload = consumeEndFrame(7, index, nextOffset, item).subarray(LENGTH_BYTES)
      const read = readConsumeData(payload)
      const expected = { requestId: 7, index, highWatermark: -1, logStart: -1, nextOffset }
      assert.deepEqual(plain(read), plain({ ...expected, ...item, batches: new Uint8Array() }))
      if (!redirects(item.error)) return
      for (let length = 0; length < payload.length; length++) {
        assert.throws(() => readConsumeData(payload.subarray(0, length)), { code: 'DECODE_FAILED' })
      }
    }),
  )
})
