import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import fc from 'fast-check'
import { EastGuardError, ERRORS, type ErrorCode } from '../../../src/base/errors.ts'
import { allocateProducerId } from '../../../src/wire/native/allocate-producer-id.ts'
import {
  errorFrame,
  LENGTH_BYTES,
  operationOf,
  readError,
  readResponse,
  requestIdOf,
  statusOf,
} from '../../../src/wire/native/header.ts'
import {
  agreeVersion,
  OPERATION,
  operationName,
  requestFault,
  VERSION_MAX,
  VERSION_MIN,
} from '../../../src/wire/native/operations.ts'

const code = fc.constantFrom(...(Object.keys(ERRORS) as ErrorCode[]))
const text = fc.string({ unit: 'binary', maxLength: 30 })
const detail = fc.dictionary(
  fc.stringMatching(/^[a-z]{1,8}$/),
  fc.oneof(fc.integer(), text, fc.boolean(), fc.array(text, { maxLength: 3 })),
)

function payloadOf(frame: Uint8Array): Buffer {
  return Buffer.from(frame.subarray(LENGTH_BYTES))
}

describe('an error frame', () => {
  it('carries code, message, hint, flag and detail', () => {
    fc.assert(
      fc.property(code, text, text, detail, (c, message, hint, facts) => {
        const frame = errorFrame(3, 77, new EastGuardError(c, message, { hint, detail: facts }))
        const payload = payloadOf(frame)
        assert.equal(operationOf(payload), 3)
        assert.equal(requestIdOf(payload), 77)
        assert.equal(statusOf(payload), ERRORS[c].number)
        const error = readError(payload)
        assert.equal(error.code, c)
        assert.equal(error.message, message)
        assert.equal(error.hint, hint)
        assert.equal(error.retriable, ERRORS[c].retriable)
        assert.equal(JSON.stringify(error.detail), JSON.stringify(facts))
      }),
    )
  })

  it('is thrown by whoever reads the response, whatever the message', () => {
    const payload = payloadOf(errorFrame(14, 1, new EastGuardError('NOT_READY', 'still starting')))
    assert.throws(() => readResponse(allocateProducerId, payload), {
      code: 'NOT_READY',
      message: 'still starting',
      retriable: true,
    })
  })

  it('fits however long its texts are', () => {
    const long = '€'.repeat(100_000)
    const error = new EastGuardError('INTERNAL', long, { hint: long, detail: { long } })
    const read = readError(payloadOf(errorFrame(1, 1, error)))
    assert.ok(long.startsWith(read.message) && read.message.length > 1000)
    assert.deepEqual(read.detail, {})
  })

  it('of a newer broker keeps its flag, text and facts when its number has no code here', () => {
    const known = errorFrame(8, 1, new EastGuardError('TIMEOUT', 'new kind', { detail: { a: 1 } }))
    const payload = payloadOf(known)
    payload.writeUInt16BE(65_000, 6)
    const error = readError(payload)
    assert.equal(error.code, 'INTERNAL')
    assert.equal(error.message, 'new kind')
    assert.equal(error.retriable, true)
    assert.deepEqual(error.detail, { a: 1 })
  })

  it('that is cut off is DECODE_FAILED', () => {
    const payload = payloadOf(errorFrame(8, 1, new EastGuardError('TIMEOUT', 'late')))
    for (let length = 8; length < payload.length; length++) {
      assert.throws(() => readError(payload.subarray(0, length)), { code: 'DECODE_FAILED' })
    }
  })
})

describe('versions and operations', () => {
  it('agree on the greatest version that both sides speak', () => {
    fc.assert(
      fc.property(fc.nat(6), fc.nat(6), (a, b) => {
        const [least, most] = a < b ? [a, b] : [b, a]
        const agreed = agreeVersion(least, most)
        const common = [0, 1, 2, 3, 4, 5, 6].filter(
          (v) => v >= least && v <= most && v >= VERSION_MIN && v <= VERSION_MAX,
        )
        assert.equal(agreed, common.at(-1))
      }),
    )
  })

  it('let every request of the table through but a second hello, and nothing else', () => {
    const refused = new Set<number>([OPERATION.HELLO, OPERATION.CONSUME_DATA])
    const known = new Set<number>(Object.values(OPERATION))
    for (let number = 0; number < 256; number++) {
      const fault = requestFault(number, VERSION_MAX, VERSION_MAX)
      if (known.has(number) && !refused.has(number)) assert.equal(fault, undefined)
      else if (number === OPERATION.HELLO) assert.equal(fault?.code, 'MALFORMED_REQUEST')
      else assert.equal(fault?.code, 'UNKNOWN_OPERATION', `operation ${number}`)
    }
  })

  it('refuse a request of another version than was agreed', () => {
    assert.equal(requestFault(OPERATION.FETCH, 9, 1)?.code, 'UNSUPPORTED_VERSION')
  })

  it('name every operation', () => {
    assert.equal(operationName(OPERATION.PRODUCE), 'PRODUCE')
    assert.equal(operationName(200), 'operation 200')
  })
})
