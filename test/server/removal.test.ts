// When a broker that was removed for good has nothing left that the cluster needs.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { nodeId } from '../../src/model/ids.ts'
import { segmentsHeld } from '../../src/server/removal.ts'

const A = nodeId('aa'.repeat(16))
const B = nodeId('bb'.repeat(16))

test('a broker holds the segments that it has a replica of, and those of which it keeps the last entries', () => {
  const plain = { replicas: [B], tail: undefined }
  const own = { replicas: [B, A], tail: undefined }
  const tail = { replicas: [B], tail: { holders: [B, A] } }
  assert.equal(segmentsHeld([{ ranges: [{ segments: [plain, own] }] }], A), 1)
  assert.equal(segmentsHeld([{ ranges: [{ segments: [plain] }, { segments: [tail] }] }], A), 1)
  assert.equal(segmentsHeld([{ ranges: [{ segments: [plain] }] }], A), 0)
})
