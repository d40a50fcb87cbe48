import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { gunzipSync, gzipSync } from 'node:zlib'
import fc from 'fast-check'
import { EastGuardError } from '../../../src/base/errors.ts'
import {
  batchEndOffset,
  batchesIn,
  readRecords,
  recordsSection,
  type StoredRecord,
} from '../../../src/model/batch/decode.ts'
import {
  BatchBuilder,
  type BatchFinish,
  NOT_IDEMPOTENT,
  recordBytesMost,
  TIMESTAMP_MAX,
} from '../../../src/model/batch/encode.ts'
import {
  BATCH_HEADER_BYTES,
  baseOffset,
  baseSequence,
  batchCodec,
  batchFault,
  batchSize,
  leaderEpoch,
  maxTimestamp,
  placeBatch,
  producerEpoch,
  producerId,
  recordCount,
  setBatchCrc,
} from '../../../src/model/batch/header.ts'

interface Given {
  readonly key: Uint8Array | null
  readonly value: Uint8Array | null
  readonly headers: readonly { readonly key: string; readonly value: Uint8Array | null }[]
  readonly timestamp: number
}

const NO_LIMIT = 1 << 30
// On both sides of the lengths at which a length takes one more byte, and of the run that is copied by hand.
const lengths = fc.constantFrom(0, 1, 23, 24, 25, 63, 64, 65, 200, 8191, 8192)
const run = fc.oneof(
  fc.uint8Array({ maxLength: 30 }),
  fc.tuple(lengths, fc.nat(0xff)).map(([length, fill]) => new Uint8Array(length).fill(fill)),
)
const record: fc.Arbitrary<Given> = fc.record({
  key: fc.option(run),
  value: fc.option(run),
  headers: fc.oneof(
    fc.constant([]),
    fc.array(
      fc.record({
        key: fc.string({ unit: 'binary', maxLength: 10 }),
        value: fc.option(fc.uint8Array({ maxLength: 10 })),
      }),
      { maxLength: 3 },
    ),
  ),
  timestamp: fc.oneof(
    fc.integer({ min: 1_700_000_000_000, max: 1_700_000_001_000 }),
    fc.constantFrom(-1, TIMESTAMP_MAX),
    fc.integer({ min: -1, max: TIMESTAMP_MAX }),
  ),
})
const records = fc.array(record, { minLength: 1, maxLength: 12 })

function build(all: readonly Given[], how?: BatchFinish): Uint8Array {
  const builder = new BatchBuilder()
  for (const r of all) builder.append(r.key, r.value, r.headers, r.timestamp)
  return builder.finish(how)
}

function same(read: readonly StoredRecord[], given: readonly Given[], offset: number): void {
  const bytes = (b: Uint8Array | null): number[] | null => (b === null ? null : [...b])
  assert.deepEqual(
    read.map((r) => [
      r.offset,
      r.timestamp,
      bytes(r.key),
      bytes(r.value),
      r.headers.map((h) => [h.key, bytes(h.value)]),
    ]),
    given.map((r, i) => [
      offset + i,
      r.timestamp,
      bytes(r.key),
      bytes(r.value),
      r.headers.map((h) => [h.key, bytes(h.value)]),
    ]),
  )
}

describe('a batch of records', () => {
  it('is what a broker takes, and is read as it was written, wherever it is placed', () => {
    fc.assert(
      fc.property(records, fc.maxSafeNat(), fc.nat(0x7fff_ffff), (given, offset, segment) => {
        const batch = build(given, { producerId: 9, producerEpoch: 3, baseSequence: 77 })
        assert.equal(batchFault(batch, NO_LIMIT), undefined)
        const at = Math.max(0, offset - given.length)
        placeBatch(batch, at, segment)
        assert.equal(batchFault(batch, NO_LIMIT), undefined)
        assert.equal(baseOffset(batch), at)
        assert.equal(leaderEpoch(batch), segment)
        assert.equal(batchSize(batch), batch.length)
        assert.equal(recordCount(batch), given.length)
        assert.equal(batchEndOffset(batch), at + given.length)
        assert.equal(maxTimestamp(batch), Math.max(...given.map((r) => r.timestamp)))
        assert.deepEqual([producerId(batch), producerEpoch(batch), baseSequence(batch)], [9, 3, 77])
        same(readRecords(batch), given, at)
      }),
    )
  })

  it('without a producer says so', () => {
    const batch = build([{ key: null, value: null, headers: [], timestamp: 5 }])
    assert.deepEqual([producerId(batch), producerEpoch(batch), baseSequence(batch)], [-1, -1, -1])
  })

  it('has the size that its builder told at every moment', () => {
    fc.assert(
      fc.property(records, (given) => {
        for (let count = 1; count <= given.length; count++) {
          const builder = new BatchBuilder()
          for (const r of given.slice(0, count)) {
            const before = builder.size
            builder.append(r.key, r.value, r.headers, r.timestamp)
            const most = recordBytesMost(r.key, r.value, r.headers)
            assert.ok(builder.size - before <= most)
          }
          const { size, recordsSize } = builder
          assert.equal(recordsSize, size - BATCH_HEADER_BYTES)
          assert.equal(builder.finish().length, size)
        }
      }),
      { numRuns: 30 },
    )
  })

  it('never exceeds the limit that its builder was given, but for a first record', () => {
    fc.assert(
      fc.property(records, fc.integer({ min: 62, max: 20_000 }), (given, limit) => {
        const builder = new BatchBuilder()
        const taken: Given[] = []
        for (const r of given) {
          const before = builder.size
          if (builder.append(r.key, r.value, r.headers, r.timestamp, limit)) taken.push(r)
          else assert.equal(builder.size, before)
        }
        assert.ok(builder.size <= limit || builder.count === 1)
        assert.equal(builder.count, taken.length)
        same(readRecords(builder.finish()), taken, 0)
      }),
    )
  })

  it('takes back its records compressed', () => {
    fc.assert(
      fc.property(records, (given) => {
        const builder = new BatchBuilder()
        for (const r of given) builder.append(r.key, r.value, r.headers, r.timestamp)
        const compressedRecords = gzipSync(builder.records())
        const batch = builder.finish({ ...NOT_IDEMPOTENT, codec: 'gzip', compressedRecords })
        assert.equal(batchFault(batch, NO_LIMIT), undefined)
        assert.equal(batchCodec(batch), 'gzip')
        assert.throws(() => readRecords(batch), { code: 'DECODE_FAILED' })
        same(readRecords(batch, gunzipSync(recordsSection(batch))), given, 0)
      }),
      { numRuns: 30 },
    )
  })

  it('with the broker time in it gives that time for every record', () => {
    const batch = build([
      { key: null, value: null, headers: [], timestamp: 5 },
      { key: null, value: null, headers: [], timestamp: 9 },
    ])
    batch[22] = 0x08
    setBatchCrc(batch)
    assert.deepEqual(
      readRecords(batch).map((r) => r.timestamp),
      [9, 9],
    )
  })

  it('gives views and not copies', () => {
    const batch = build([
      { key: Buffer.from('k'), value: Buffer.from('v'), headers: [], timestamp: 1 },
    ])
    const [record] = readRecords(batch)
    assert.equal(record?.key?.buffer, batch.buffer)
    assert.equal(record.value?.buffer, batch.buffer)
  })
})

describe('a run of batches', () => {
  it('is split into what it was made of', () => {
    fc.assert(
      fc.property(fc.array(records, { maxLength: 4 }), (groups) => {
        const batches = groups.map((group) => build(group))
        const split = batchesIn(Buffer.concat(batches))
        assert.deepEqual(
          split.map((b) => [...b]),
          batches.map((b) => [...b]),
        )
      }),
      { numRuns: 40 },
    )
  })

  it('that is cut off within a batch is refused', () => {
    const one = build([{ key: null, value: Buffer.from('abc'), headers: [], timestamp: 1 }])
    const bytes = Buffer.concat([one, one])
    for (let length = 1; length < bytes.length; length++) {
      if (length === one.length) continue
      assert.throws(() => batchesIn(bytes.subarray(0, length)), { code: 'DECODE_FAILED' })
    }
  })
})

describe('damaged bytes', () => {
  const orRefused = (read: () => void): void => {
    try {
      read()
    } catch (error) {
      assert.ok(error instanceof EastGuardError && error.code === 'DECODE_FAILED', String(error))
    }
  }

  it('are records or DECODE_FAILED, never anything else', () => {
    const damage = fc.array(fc.tuple(fc.nat(), fc.nat(0xff)), { minLength: 1, maxLength: 5 })
    fc.assert(
      fc.property(records, damage, (given, changes) => {
        const batch = build(given)
        for (const [at, byte] of changes) {
          // Half of them where the records are, which are most of the reader's work.
          const from = at % 2 === 0 ? 0 : BATCH_HEADER_BYTES
          batch[from + (at % (batch.length - from))] = byte
        }
        orRefused(() => batchesIn(batch).forEach((b) => readRecords(b)))
        orRefused(() => readRecords(batch))
      }),
      { numRuns: 500 },
    )
  })

  it('of a section that was decompressed likewise, at every truncation', () => {
    fc.assert(
      fc.property(records, (given) => {
        const batch = build(given)
        const section = recordsSection(batch)
        const step = section.length > 300 ? 61 : 1
        for (let length = 0; length < section.length; length += step) {
          assert.throws(() => readRecords(batch, section.subarray(0, length)), {
            code: 'DECODE_FAILED',
          })
        }
      }),
      { numRuns: 30 },
    )
  })

  it('cannot make the reader take memory for records that are not there', () => {
    const batch = build([{ key: null, value: null, headers: [], timestamp: 1 }])
    batch.set([0x7f, 0xff, 0xff, 0xff], 57)
    assert.throws(() => readRecords(batch), { code: 'DECODE_FAILED' })
  })

  it('change the checksum, wherever they are behind it', () => {
    fc.assert(
      fc.property(records, fc.nat(), fc.integer({ min: 1, max: 255 }), (given, at, change) => {
        const batch = build(given)
        const place = 17 + (at % (batch.length - 17))
        batch[place] = (batch[place] as number) ^ change
        assert.equal(batchFault(batch, NO_LIMIT)?.code, 'CORRUPT_BATCH')
      }),
    )
  })
})
