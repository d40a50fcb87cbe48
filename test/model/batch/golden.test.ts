import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { fromHex, toHex } from '../../../src/base/bytes.ts'
import { batchesIn, readRecords } from '../../../src/model/batch/decode.ts'
import { BatchBuilder } from '../../../src/model/batch/encode.ts'
import { batchFault, leaderEpoch } from '../../../src/model/batch/header.ts'

/** CRC32C bit by bit, from its polynomial: shares nothing with the library that the code uses. */
function crc32cByHand(bytes: Uint8Array): number {
  let crc = 0xffff_ffff
  for (const byte of bytes) {
    crc ^= byte
    for (let bit = 0; bit < 8; bit++) crc = (crc >>> 1) ^ (crc & 1 ? 0x82f6_3b78 : 0)
  }
  return (crc ^ 0xffff_ffff) >>> 0
}

// Field by field, each computed by hand.
const TWO_RECORDS = [
  ['0000000000000000', 'base offset'],
  ['00000048', 'batch length: 84 - 12'],
  ['00000000', 'partition leader epoch'],
  ['02', 'magic'],
  ['2213c9fb', 'CRC32C from here on'],
  ['0000', 'attributes: codec none'],
  ['00000001', 'last offset delta'],
  ['00000000000003e8', 'base timestamp 1000'],
  ['00000000000003f2', 'max timestamp 1010'],
  ['0000000000000007', 'producer id'],
  ['0001', 'producer epoch'],
  ['00000005', 'base sequence'],
  ['00000002', 'records'],
  ['10', 'length 8'],
  ['000000', 'attributes, timestamp delta 0, offset delta 0'],
  ['026b', 'key k'],
  ['0276', 'value v'],
  ['00', 'no headers'],
  ['1a', 'length 13'],
  ['001402', 'attributes, timestamp delta 10, offset delta 1'],
  ['0101', 'key and value null'],
  ['04', 'two headers'],
  ['026801', 'h: null'],
  ['02690278', 'i: x'],
] as const

// What an Apache Kafka broker stores for one record of value 123, without a key, from its Java client.
const FROM_KAFKA =
  '00000000000000000000003b00000001020318a2700000000000000000015dff7b063c0000015dff7b063c' +
  'ffffffffffffffffffffffffffff0000000112000000010631323300'

const bytes = (text: string): Uint8Array => Buffer.from(text)

describe('a batch, byte by byte', () => {
  const golden = TWO_RECORDS.map(([hex]) => hex).join('')

  it('is written as computed by hand', () => {
    const builder = new BatchBuilder()
    builder.append(bytes('k'), bytes('v'), [], 1000)
    builder.append(
      null,
      null,
      [
        { key: 'h', value: null },
        { key: 'i', value: bytes('x') },
      ],
      1010,
    )
    const batch = builder.finish({ producerId: 7, producerEpoch: 1, baseSequence: 5 })
    assert.equal(toHex(batch), golden)
  })

  it('is read as computed by hand', () => {
    const records = readRecords(fromHex(golden))
    assert.deepEqual(
      records.map((r) => [r.offset, r.timestamp, r.key && toHex(r.key), r.value && toHex(r.value)]),
      [
        [0, 1000, '6b', '76'],
        [1, 1010, null, null],
      ],
    )
    assert.deepEqual(records[0]?.headers, [])
    assert.deepEqual(
      records[1]?.headers.map((h) => [h.key, h.value && toHex(h.value)]),
      [
        ['h', null],
        ['i', '78'],
      ],
    )
  })

  it('has the checksum that the polynomial gives', () => {
    for (const hex of [golden, FROM_KAFKA]) {
      const batch = fromHex(hex)
      const stored = new DataView(batch.buffer).getUint32(17)
      assert.equal(crc32cByHand(batch.subarray(21)), stored)
      assert.equal(batchFault(batch, 1000), undefined)
    }
  })

  it('is read when Kafka wrote it', () => {
    const [batch] = batchesIn(fromHex(FROM_KAFKA))
    assert.ok(batch !== undefined)
    assert.equal(leaderEpoch(batch), 1)
    const [record, ...more] = readRecords(batch)
    assert.equal(more.length, 0)
    assert.equal(record?.offset, 0)
    assert.equal(record.timestamp, 1_503_229_838_908)
    assert.equal(record.key, null)
    assert.equal(Buffer.from(record.value ?? []).toString(), '123')
  })
})
