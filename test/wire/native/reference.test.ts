// docs/reference/native-protocol.md is what people write clients from. Its example frames are decoded here and encoded
// again, and its tables are compared with the code, so that neither can change without the other.

import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { describe, it } from 'node:test'
import { ERRORS } from '../../../src/base/errors.ts'
import { batchesIn, readRecords, type StoredRecord } from '../../../src/model/batch/decode.ts'
import { batchFault } from '../../../src/model/batch/header.ts'
import type { TopicId } from '../../../src/model/ids.ts'
import {
  FRAME_BYTES_MAX,
  HELLO_BYTES_MAX,
  REQUESTS_IN_FLIGHT_MAX,
} from '../../../src/model/limits.ts'
import { POLICY_KEYS } from '../../../src/model/policy-keys.ts'
import { consumeDataHead, readConsumeData } from '../../../src/wire/native/consume-data.ts'
import { DESCRIBE_TOPICS_MAX } from '../../../src/wire/native/describe-topics.ts'
import type { FetchResponse } from '../../../src/wire/native/fetch.ts'
import { FrameReader } from '../../../src/wire/native/frame-reader.ts'
import {
  errorFrame,
  operationOf,
  readError,
  readRequest,
  readResponse,
  requestFrame,
  requestIdOf,
  responseFrame,
  versionOf,
} from '../../../src/wire/native/header.ts'
import { LIST_TOPICS_MAX } from '../../../src/wire/native/list-topics.ts'
import { OPERATION, type OperationName } from '../../../src/wire/native/operations.ts'
import {
  PRODUCE_SLOTS_AT,
  produceAcks,
  produceCount,
  producedFrame,
  produceFrame,
  produceTimeoutMs,
  readProduced,
  SLOT_HEAD_BYTES,
  slotGreatestKeyHash,
  slotLeastKeyHash,
  slotPartition,
} from '../../../src/wire/native/produce.ts'
import { MESSAGES } from './messages.ts'

type Direction = 'request' | 'response' | 'push' | 'error'

interface Example {
  readonly title: string
  readonly operation: OperationName
  readonly direction: Direction
  readonly frame: Buffer
}

const TEXT = readFileSync('docs/reference/native-protocol.md', 'utf8')

function examples(): Example[] {
  const found: Example[] = []
  for (const [, title = '', body = ''] of TEXT.matchAll(/^```hex (.+)\n([\s\S]*?)^```$/gm)) {
    const [operation, direction] = title.split(' ') as [OperationName, Direction]
    const hex = body.replaceAll(/;.*$/gm, '').replaceAll(/\s/g, '')
    assert.match(hex, /^([0-9a-f]{2})+$/, title)
    found.push({ title, operation, direction, frame: Buffer.from(hex, 'hex') })
  }
  return found
}

/** The example as the broker's own reader cuts it out of a stream. */
function payloadOf({ title, frame }: Example): Uint8Array {
  const payloads: Uint8Array[] = []
  const reader = new FrameReader(FRAME_BYTES_MAX)
  reader.push(frame, (payload) => {
    payloads.push(payload)
  })
  const [payload] = payloads
  assert.ok(payload !== undefined && payloads.length === 1 && !reader.midFrame, `${title}: length`)
  return payload
}

/** The record of the examples: key k1, value hello. */
function checkBatches(bytes: Uint8Array): void {
  const records: StoredRecord[] = []
  for (const batch of batchesIn(bytes)) {
    assert.equal(batchFault(batch, 1000), undefined)
    records.push(...readRecords(batch))
  }
  assert.deepEqual(
    records.map((r) => [
      Buffer.from(r.key ?? []).toString(),
      Buffer.from(r.value ?? []).toString(),
    ]),
    [['k1', 'hello']],
  )
}

/** Decodes a frame and encodes what came out. */
function again(example: Example): Uint8Array {
  const { operation, direction } = example
  const payload = payloadOf(example)
  const id = requestIdOf(payload)
  if (direction === 'error') return errorFrame(OPERATION[operation], id, readError(payload))
  if (operation === 'PRODUCE') {
    return direction === 'request'
      ? produceAgain(payload)
      : producedFrame(id, readProduced(payload))
  }
  if (operation === 'CONSUME_DATA') return pushAgain(payload)
  const message = MESSAGES.find(({ name }) => name === operation)?.message
  assert.ok(message !== undefined)
  if (direction === 'request') {
    return requestFrame(message, versionOf(payload), id, readRequest(message, payload))
  }
  const response = readResponse(message, payload)
  if (operation === 'FETCH') {
    for (const { batches } of (response as FetchResponse).partitions) {
      checkBatches(Buffer.concat(batches))
    }
  }
  return responseFrame(message, id, response)
}

function produceAgain(payload: Uint8Array): Uint8Array {
  assert.equal(produceCount(payload), 1)
  const at = PRODUCE_SLOTS_AT
  const batch = payload.subarray(at + SLOT_HEAD_BYTES)
  checkBatches(batch)
  const slot = {
    topicId: Buffer.from(payload.subarray(at, at + 16)).toString('hex') as TopicId,
    partition: slotPartition(payload, at),
    leastKeyHash: slotLeastKeyHash(payload, at),
    greatestKeyHash: slotGreatestKeyHash(payload, at),
    batch,
  }
  const acks = produceAcks(payload)
  const timeoutMs = produceTimeoutMs(payload)
  const parts = produceFrame(versionOf(payload), requestIdOf(payload), acks, timeoutMs, [slot])
  return Buffer.concat(parts)
}

function pushAgain(payload: Uint8Array): Uint8Array {
  const push = readConsumeData(payload)
  const { requestId, error, index, highWatermark, logStart, nextOffset, batches } = push
  if (error === undefined) checkBatches(batches)
  const { length } = batches
  const head = consumeDataHead(requestId, error, index, highWatermark, logStart, nextOffset, length)
  return Buffer.concat([head, batches])
}

describe('the reference of the native protocol', () => {
  for (const example of examples()) {
    it(`has a ${example.title} that is decoded and encoded again`, () => {
      assert.equal(operationOf(payloadOf(example)), OPERATION[example.operation])
      assert.equal(Buffer.from(again(example)).toString('hex'), example.frame.toString('hex'))
    })
  }

  it('has an example of every message', () => {
    const shown = new Set(examples().map(({ operation, direction }) => `${operation} ${direction}`))
    const wanted = MESSAGES.flatMap(({ name, response }) => [
      `${name} request`,
      ...(response === undefined ? [] : [`${name} response`]),
    ])
    for (const title of [...wanted, 'PRODUCE request', 'PRODUCE response', 'CONSUME_DATA push']) {
      assert.ok(shown.has(title), title)
    }
  })

  it('lists every operation with its number, and no other', () => {
    const rows = [...TEXT.matchAll(/^\| (\d+) \| \[([A-Z_]+)\]\(#([a-z_]+)\) \|/gm)]
    const listed = rows.map(([, number, name]) => [name, Number(number)])
    assert.deepEqual(Object.fromEntries(listed), { ...OPERATION })
    for (const [, , name = '', anchor] of rows) {
      assert.equal(anchor, name.toLowerCase())
      assert.match(TEXT, new RegExp(`^### ${name}$`, 'm'))
    }
  })

  it('lists every error that travels, with its number and its flag', () => {
    const rows = TEXT.matchAll(/^\| (\d+) \| `([A-Z_]+)` \| (yes|no) \| (.+) \|$/gm)
    const listed = [...rows].map(([, number, code, retriable, meaning]) => [
      code,
      { number: Number(number), retriable: retriable === 'yes', meaning },
    ])
    const travel = Object.entries(ERRORS).filter(([, { number }]) => number < 100)
    const expected = travel.map(([code, { number, retriable, meaning }]) => [
      code,
      { number, retriable, meaning },
    ])
    assert.deepEqual(listed, expected)
  })

  it('names no error that does not exist', () => {
    const codes = new Set(Object.keys(ERRORS))
    const others = new Set(['CONSUME_DATA', ...Object.keys(OPERATION)])
    for (const [, word = ''] of TEXT.matchAll(/`([A-Z]+_[A-Z_]+)`/g)) {
      assert.ok(codes.has(word) || others.has(word), word)
    }
  })

  it('lists every policy key', () => {
    const [, table = ''] = TEXT.match(/^\| key \| value \|\n([\s\S]*?)\n\n/m) ?? []
    const rows = [...table.matchAll(/^\| `([a-z_]+)` \|/gm)].map(([, key]) => key)
    assert.deepEqual(rows, POLICY_KEYS)
  })

  it('states the limits that the code has', () => {
    const said = (limit: number): string => limit.toLocaleString('en-US')
    const limits = [FRAME_BYTES_MAX, HELLO_BYTES_MAX, REQUESTS_IN_FLIGHT_MAX]
    for (const limit of [...limits, DESCRIBE_TOPICS_MAX, LIST_TOPICS_MAX]) {
      assert.ok(TEXT.includes(said(limit)), said(limit))
    }
  })
})
