import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import fc from 'fast-check'
import { EastGuardError } from '../../../src/base/errors.ts'
import {
  LENGTH_BYTES,
  operationOf,
  readRequest,
  readResponse,
  requestFrame,
  requestIdOf,
  responseFrame,
  statusOf,
  versionOf,
} from '../../../src/wire/native/header.ts'
import { OPERATION } from '../../../src/wire/native/operations.ts'
import { MESSAGES, plain } from './messages.ts'

const REQUEST_ID = 0x8123_4567
const RUNS = { numRuns: 60 }

/** The frame without its length field, after a check of that field, amid bytes that no reader may look at. */
function payloadOf(frame: Uint8Array): Uint8Array {
  const length = new DataView(frame.buffer, frame.byteOffset).getUint32(0)
  assert.equal(length, frame.length - LENGTH_BYTES)
  const amid = new Uint8Array(frame.length + 64).fill(0xff)
  amid.set(frame.subarray(LENGTH_BYTES), 32)
  return amid.subarray(32, 32 + length)
}

/** Whatever the bytes are, a reader gives a value or a typed error, and never anything else. */
function readsOrRefuses(read: () => unknown): void {
  try {
    read()
  } catch (error) {
    assert.ok(error instanceof EastGuardError, String(error))
  }
}

for (const { name, message, request, response } of MESSAGES) {
  const operation = OPERATION[name]
  const frames: [string, fc.Arbitrary<Uint8Array>, (payload: Uint8Array) => unknown, string][] = [
    [
      'request',
      request.map((value) => requestFrame(message, 1, REQUEST_ID, value)),
      (payload) => readRequest(message, payload),
      'MALFORMED_REQUEST',
    ],
  ]
  if (response !== undefined) {
    frames.push([
      'response',
      response.map((value) => responseFrame(message, REQUEST_ID, value)),
      (payload) => readResponse(message, payload),
      'DECODE_FAILED',
    ])
  }

  describe(name, () => {
    it('reads the request that was written, whatever it says', () => {
      fc.assert(
        fc.property(request, (value) => {
          const payload = payloadOf(requestFrame(message, 1, REQUEST_ID, value))
          assert.equal(operationOf(payload), operation)
          assert.equal(versionOf(payload), 1)
          assert.equal(requestIdOf(payload), REQUEST_ID)
          assert.deepEqual(plain(readRequest(message, payload)), plain(value))
        }),
        RUNS,
      )
    })

    if (response === undefined) {
      it('has no response', () => {
        assert.throws(() => {
          message.writeResponse(undefined as never, undefined)
        }, TypeError)
      })
    } else {
      it('reads the response that was written, whatever it says', () => {
        fc.assert(
          fc.property(response, (value) => {
            const payload = payloadOf(responseFrame(message, REQUEST_ID, value))
            assert.equal(operationOf(payload), operation)
            assert.equal(requestIdOf(payload), REQUEST_ID)
            assert.equal(statusOf(payload), 0)
            assert.deepEqual(plain(readResponse(message, payload)), plain(value))
          }),
          RUNS,
        )
      })
    }

    for (const [what, frame, read, code] of frames) {
      it(`refuses a ${what} that is cut off anywhere, or goes on`, () => {
        fc.assert(
          fc.property(frame, (whole) => {
            const payload = payloadOf(whole)
            for (let length = 0; length < payload.length; length++) {
              assert.throws(() => read(payload.subarray(0, length)), { code })
            }
            if (name === 'HELLO') return
            assert.throws(() => read(new Uint8Array([...payload, 0])), { code })
          }),
          { numRuns: 15 },
        )
      })

      it(`reads or refuses a ${what} with damaged bytes`, () => {
        fc.assert(
          fc.property(
            frame,
            fc.array(fc.tuple(fc.nat(), fc.nat(0xff)), { minLength: 1, maxLength: 4 }),
            (whole, damage) => {
              const payload = payloadOf(whole)
              for (const [at, byte] of damage) payload[at % payload.length] = byte
              readsOrRefuses(() => read(payload))
            },
          ),
          { numRuns: 150 },
        )
      })

      it(`reads or refuses a ${what} of garbage`, () => {
        fc.assert(
          fc.property(fc.uint8Array({ maxLength: 120 }), (garbage) => {
            readsOrRefuses(() => read(garbage))
          }),
          { numRuns: 150 },
        )
      })
    }
  })
}

it('every operation with a pair of codecs is tested here', () => {
  const elsewhere = ['PRODUCE', 'CONSUME_DATA']
  const tested = MESSAGES.map(({ name }) => name)
  assert.deepEqual(new Set([...tested, ...elsewhere]), new Set(Object.keys(OPERATION)))
})

it('a hello may grow: what follows the fields that are known is passed over', () => {
  const hello = MESSAGES.find(({ name }) => name === 'HELLO')
  assert.ok(hello !== undefined)
  fc.assert(
    fc.property(hello.request, fc.uint8Array({ maxLength: 20 }), (value, more) => {
      const payload = payloadOf(requestFrame(hello.message, 1, 1, value))
      const longer = new Uint8Array([...payload, ...more])
      assert.deepEqual(plain(readRequest(hello.message, longer)), plain(value))
    }),
    RUNS,
  )
})
