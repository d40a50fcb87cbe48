import assert from 'node:assert/strict'
import { it } from 'node:test'
import fc from 'fast-check'
import { Truncated } from '../../../src/base/cursor.ts'
import type { SyncAnswer, SyncRequest } from '../../../src/model/swim.ts'
import {
  readSyncAnswer,
  readSyncRequest,
  writeSyncAnswer,
  writeSyncRequest,
} from '../../../src/wire/swim/sync.ts'
import { cluster, state } from './arbitrary.ts'

const request: fc.Arbitrary<SyncRequest> = fc
  .tuple(fc.option(cluster, { nil: undefined }), state)
  .map(([own, rest]) => ({ kind: 'sync', cluster: own, ...rest }))

const refused = fc.constant('sync-refused' as const)
const answer: fc.Arbitrary<SyncAnswer> = fc.oneof(
  fc
    .tuple(cluster, state)
    .map(([own, rest]): SyncAnswer => ({ kind: 'sync-answer', cluster: own, ...rest })),
  fc.record({ kind: refused, reason: fc.constant('other-cluster' as const), cluster }),
  fc.record({
    kind: refused,
    reason: fc.constant('old-life' as const),
    boot: fc.nat(0xffff_ffff),
  }),
  fc.record({
    kind: refused,
    reason: fc.constantFrom('itself' as const, 'no-member' as const),
  }),
)

it('a sync is read as it was written, either way', () => {
  fc.assert(
    fc.property(request, (one) => {
      assert.deepEqual(readSyncRequest(writeSyncRequest(one)), structuredClone(one))
    }),
  )
  fc.assert(
    fc.property(answer, (one) => {
      assert.deepEqual(readSyncAnswer(writeSyncAnswer(one)), structuredClone(one))
    }),
  )
})

it('bytes that were not written so are read or refused, and nothing else', () => {
  const spots = fc.array(fc.tuple(fc.nat(), fc.nat(255)), { minLength: 1, maxLength: 4 })
  fc.assert(
    fc.property(request, answer, spots, fc.nat(), (one, other, changes, cut) => {
      for (const [bytes, read] of [
        [writeSyncRequest(one).slice(), readSyncRequest],
        [writeSyncAnswer(other).slice(), readSyncAnswer],
      ] as const) {
        for (const [at, value] of changes) bytes[at % bytes.length] = value
        for (const some of [bytes, bytes.subarray(0, cut % bytes.length)]) {
          try {
            read(some)
          } catch (error) {
            assert.ok(error instanceof Truncated, String(error))
          }
        }
      }
    }),
    { numRuns: 300 },
  )
})

it('what announces more than its bytes can hold takes no memory', () => {
  const bytes = new Uint8Array(1 + 1 + 16 + 8 + 4)
  bytes[0] = 3
  bytes.fill(0xff, bytes.length - 4)
  assert.throws(() => readSyncRequest(bytes), /elements announced/)
})
