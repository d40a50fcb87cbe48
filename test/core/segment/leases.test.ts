import assert from 'node:assert/strict'
import { test } from 'node:test'
import { LeaseBook } from '../../../src/core/segment/leases.ts'
import { topicId } from '../../../src/model/ids.ts'
import type { SegmentKey } from '../../../src/model/segment-key.ts'

const TTL = 2000
const SHARD = 7
const KEY: SegmentKey = { topicId: topicId('a'.repeat(32)), range: 0, segment: 3 }
const OTHER: SegmentKey = { ...KEY, range: 1 }

test('a lease is counted from when it was asked for, not from when the answer came', () => {
  const book = new LeaseBook(TTL)
  assert.equal(book.leased(SHARD, KEY, 10, 0), false)
  book.requested(1, 100)
  book.answered(1, [{ shard: SHARD, index: 10 }], [])
  assert.equal(book.leased(SHARD, KEY, 10, 100 + TTL - 1), true)
  assert.equal(book.leased(SHARD, KEY, 10, 100 + TTL), false)
  assert.equal(book.leased(SHARD + 1, KEY, 10, 200), false)
})

test('who has applied less than the coordinator had may lead less than it thinks', () => {
  const book = new LeaseBook(TTL)
  book.requested(1, 0)
  book.answered(1, [{ shard: SHARD, index: 10 }], [])
  assert.equal(book.leased(SHARD, KEY, 9, 1), false)
  assert.equal(book.leased(SHARD, KEY, 11, 1), true)
})

test('the lease before the newest counts while its time lasts, so that a busy shard interrupts nobody', () => {
  const book = new LeaseBook(TTL)
  book.requested(1, 0)
  book.answered(1, [{ shard: SHARD, index: 10 }], [])
  book.requested(2, 100)
  book.answered(2, [{ shard: SHARD, index: 12 }], [])
  assert.equal(book.leased(SHARD, KEY, 11, TTL - 1), true)
  assert.equal(book.leased(SHARD, KEY, 11, TTL), false)
  assert.equal(book.leased(SHARD, KEY, 12, TTL), true)
})

test('of a segment that is fenced nothing is confirmed, whatever was before', () => {
  const book = new LeaseBook(TTL)
  book.requested(1, 0)
  book.answered(1, [{ shard: SHARD, index: 10 }], [])
  book.requested(2, 100)
  book.answered(2, [{ shard: SHARD, index: 10 }], [KEY])
  assert.equal(book.leased(SHARD, KEY, 10, 150), false)
  assert.equal(book.leased(SHARD, OTHER, 10, 150), true)
  book.requested(3, 200)
  book.answered(3, [{ shard: SHARD, index: 11 }], [])
  assert.equal(book.leased(SHARD, KEY, 11, 250), true)
})

test('an answer that withheld a segment does not give it when the next one is of an index not applied yet', () => {
  const book = new LeaseBook(TTL)
  book.requested(1, 0)
  book.answered(1, [{ shard: SHARD, index: 10 }], [KEY])
  book.requested(2, 100)
  // The successor is open by now: withheld is nothing any more.
  book.answered(2, [{ shard: SHARD, index: 11 }], [])
  assert.equal(book.leased(SHARD, KEY, 10, 150), false)
  assert.equal(book.leased(SHARD, OTHER, 10, 150), true)
})

test('an answer that was overtaken, comes too late, or answers nothing that was asked, changes nothing', () => {
  const book = new LeaseBook(TTL)
  book.requested(1, 0)
  book.requested(2, 100)
  book.answered(2, [{ shard: SHARD, index: 10 }], [KEY])
  book.answered(1, [{ shard: SHARD, index: 10 }], [])
  assert.equal(book.leased(SHARD, KEY, 10, 150), false)
  book.answered(3, [{ shard: SHARD, index: 10 }], [])
  assert.equal(book.leased(SHARD, KEY, 10, 150), false)
  book.requested(4, 100 + TTL)
  book.answered(2, [{ shard: SHARD + 1, index: 10 }], [])
  assert.equal(book.leased(SHARD + 1, KEY, 10, 100 + TTL), false)
})
