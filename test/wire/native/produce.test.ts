import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import fc from 'fast-check'
import { toHex } from '../../../src/base/bytes.ts'
import { EastGuardError, ERRORS, type ErrorCode } from '../../../src/base/errors.ts'
import type { TopicId } from '../../../src/model/ids.ts'
import {
  errorFrame,
  LENGTH_BYTES,
  operationOf,
  requestIdOf,
  versionOf,
} from '../../../src/wire/native/header.ts'
import { OPERATION } from '../../../src/wire/native/operations.ts'
import {
  PRODUCE_ONE_BYTES,
  PRODUCE_SLOTS_AT,
  type ProduceSlot,
  produceAcks,
  produceCount,
  producedFrame,
  produceFrame,
  produceTimeoutMs,
  putProducedOne,
  readProduced,
  SLOT_HEAD_BYTES,
  slotBatchLength,
  slotGreatestKeyHash,
  slotLeastKeyHash,
  slotPartition,
} from '../../../src/wire/native/produce.ts'
import { plain, redirecting } from './messages.ts'

const u32 = fc.nat(0xffff_ffff)
const slot = fc.record({
  topicId: fc.stringMatching(/^[0-9a-f]{32}$/) as fc.Arbitrary<TopicId>,
  partition: u32,
  leastKeyHash: u32,
  greatestKeyHash: u32,
  // On both sides of the size up to which batches are copied.
  batch: fc.oneof(
    fc.uint8Array({ maxLength: 30 }),
    fc.nat(2).map((more) => new Uint8Array(4095 + more).fill(more)),
  ),
})

/** What a broker does: count, then step over the slots. */
function walk(frame: Uint8Array): ProduceSlot[] {
  const slots: ProduceSlot[] = []
  let at = PRODUCE_SLOTS_AT
  for (let left = produceCount(frame); left > 0; left--) {
    const batchAt = at + SLOT_HEAD_BYTES
    const batchEnd = batchAt + slotBatchLength(frame, at)
    slots.push({
      topicId: toHex(frame.subarray(at, at + 16)) as TopicId,
      partition: slotPartition(frame, at),
      leastKeyHash: slotLeastKeyHash(frame, at),
      greatestKeyHash: slotGreatestKeyHash(frame, at),
      batch: new Uint8Array(frame.subarray(batchAt, batchEnd)),
    })
    at = batchEnd
  }
  assert.equal(at, frame.length)
  return slots
}

function payload(parts: readonly Uint8Array[]): Buffer {
  const frame = Buffer.concat(parts)
  assert.equal(frame.readUInt32BE(0), frame.length - LENGTH_BYTES)
  return frame.subarray(LENGTH_BYTES)
}

describe('PRODUCE', () => {
  it('is walked to the slots that were written', () => {
    fc.assert(
      fc.property(
        fc.array(slot, { minLength: 1, maxLength: 5 }),
        fc.constantFrom(0, 1, 255),
        u32,
        u32,
        (slots, acks, timeoutMs, id) => {
          const frame = payload(produceFrame(1, id, acks, timeoutMs, slots))
          assert.equal(operationOf(frame), OPERATION.PRODUCE)
          assert.equal(versionOf(frame), 1)
          assert.equal(requestIdOf(frame), id)
          assert.equal(produceAcks(frame), acks)
          assert.equal(produceTimeoutMs(frame), timeoutMs)
          assert.deepEqual(plain(walk(frame)), plain(slots))
        },
      ),
    )
  })

  it('passes large batches on by reference', () => {
    const batch = new Uint8Array(100_000)
    const topicId = 'ab'.repeat(16) as TopicId
    const small = { topicId, partition: 0, leastKeyHash: 0, greatestKeyHash: 0, batch }
    const parts = produceFrame(1, 1, 255, 0, [small, { ...small, batch: new Uint8Array(3) }])
    assert.ok(parts.includes(batch))
  })

  it('is refused as a whole when it is cut off anywhere, goes on, or has no batch', () => {
    fc.assert(
      fc.property(fc.array(slot, { minLength: 1, maxLength: 3 }), (slots) => {
        const frame = payload(produceFrame(1, 1, 1, 0, slots))
        const step = frame.length > 500 ? 97 : 1
        for (let length = 0; length < frame.length; length += step) {
          assert.throws(() => produceCount(frame.subarray(0, length)), {
            code: 'MALFORMED_REQUEST',
          })
        }
        assert.throws(() => produceCount(Buffer.concat([frame, Buffer.alloc(1)])), {
          code: 'MALFORMED_REQUEST',
        })
      }),
      { numRuns: 30 },
    )
    assert.throws(() => produceCount(payload(produceFrame(1, 1, 1, 0, []))), {
      code: 'MALFORMED_REQUEST',
    })
  })

  it('is never walked past its end, whatever its bytes are', () => {
    fc.assert(
      fc.property(
        fc.array(slot, { minLength: 1, maxLength: 2 }),
        fc.array(fc.tuple(fc.nat(), fc.nat(0xff)), { maxLength: 4 }),
        (slots, damage) => {
          const frame = payload(produceFrame(1, 1, 1, 0, slots))
          for (const [at, byte] of damage) frame[at % frame.length] = byte
          try {
            walk(frame)
          } catch (error) {
            assert.ok(error instanceof EastGuardError && error.code === 'MALFORMED_REQUEST')
          }
        },
      ),
    )
  })
})

describe('the answer to PRODUCE', () => {
  const result = fc.oneof(
    fc.record({
      error: fc.constant(undefined),
      message: fc.constant(''),
      baseOffset: fc.maxSafeNat(),
      logAppendTimeMs: fc.maxSafeInteger(),
    }),
    redirecting(
      fc.record({
        error: fc.constantFrom(...(Object.keys(ERRORS) as ErrorCode[])),
        message: fc.string({ maxLength: 30 }),
        baseOffset: fc.constant(-1),
        logAppendTimeMs: fc.constant(-1),
      }),
    ),
  )

  it('is read as it was written', () => {
    fc.assert(
      fc.property(fc.array(result, { maxLength: 5 }), u32, (results, id) => {
        const frame = payload([producedFrame(id, results)])
        assert.equal(operationOf(frame), OPERATION.PRODUCE)
        assert.equal(requestIdOf(frame), id)
        assert.deepEqual(plain(readProduced(frame)), plain(results))
        for (let length = 0; length < frame.length; length++) {
          assert.throws(() => readProduced(frame.subarray(0, length)), { code: 'DECODE_FAILED' })
        }
      }),
    )
  })

  it('is the same for one stored batch when it is written in place', () => {
    fc.assert(
      fc.property(fc.maxSafeNat(), fc.maxSafeInteger(), u32, (baseOffset, logAppendTimeMs, id) => {
        const into = new Uint8Array(PRODUCE_ONE_BYTES + 10)
        const end = putProducedOne(into, 5, id, baseOffset, logAppendTimeMs)
        const general = producedFrame(id, [
          { error: undefined, message: '', baseOffset, logAppendTimeMs },
        ])
        assert.equal(end, 5 + PRODUCE_ONE_BYTES)
        assert.deepEqual(into.subarray(5, end), general)
      }),
    )
  })

  it('throws the error that answers the request as a whole', () => {
    const refused = errorFrame(
      OPERATION.PRODUCE,
      1,
      new EastGuardError('INVALID_ACKS', 'acks is 7'),
    )
    assert.throws(() => readProduced(refused.subarray(LENGTH_BYTES)), {
      code: 'INVALID_ACKS',
      message: 'acks is 7',
    })
  })
})
