import assert from 'node:assert/strict'
import { test } from 'node:test'
import { RangeState } from '../../../src/core/producers/range-state.ts'
import { batchOf, entryOf, type Made } from './support.ts'

const EXPIRY_MS = 1000
const MOST = 0x7fffffff

/** A leader of one partition, number 4, that commits when told to. */
function leader(state: RangeState = new RangeState(4, [0], EXPIRY_MS)) {
  let entry = 0
  return {
    state,
    check: (id: number, epoch: number, first: number, count = 1) =>
      state.check(4, batchOf({ partition: 4, id, epoch, first, count })),
    append(id: number, epoch: number, first: number, count = 1, timeMs = 0): void {
      const made: Made = { partition: 4, id, epoch, first, count }
      state.append(entryOf(made, entry++, state.nextOffset(4), timeMs))
    },
    commit: (): void => state.commit(entry),
    store(id: number, epoch: number, first: number, count = 1, timeMs = 0): void {
      this.append(id, epoch, first, count, timeMs)
      state.commit(entry)
    },
  }
}

test('a batch without a producer id is always accepted', () => {
  const { check } = leader()
  assert.equal(check(-1, -1, -1), 'accept')
})

test('an unknown producer must begin at sequence 0', () => {
  const one = leader()
  assert.equal(one.check(7, 0, 0), 'accept')
  assert.equal(one.check(7, 0, 1), 'OUT_OF_ORDER_SEQUENCE')
  assert.equal(one.check(7, 3, 0), 'accept')
  assert.equal(one.check(7, -1, 0), 'OUT_OF_ORDER_SEQUENCE')
  assert.equal(one.check(7, 0, -5), 'OUT_OF_ORDER_SEQUENCE')
})

test('the next sequence is accepted, a gap is not', () => {
  const one = leader()
  one.store(7, 0, 0, 3)
  assert.equal(one.check(7, 0, 3), 'accept')
  assert.equal(one.check(7, 0, 4), 'OUT_OF_ORDER_SEQUENCE')
})

test('the last five batches answer with their offsets, older ones without', () => {
  const one = leader()
  for (let i = 0; i < 6; i++) one.store(7, 0, 2 * i, 2)
  assert.equal(one.check(7, 0, 0, 2), 'DUPLICATE_SEQUENCE')
  for (let i = 1; i < 6; i++) {
    assert.equal(one.check(7, 0, 2 * i, 2), 'seen')
    assert.equal(one.state.verdictOffset, 2 * i)
  }
})

test('a batch that overlaps what is stored but brings something new is out of order', () => {
  const one = leader()
  one.store(7, 0, 0, 4)
  assert.equal(one.check(7, 0, 2, 4), 'OUT_OF_ORDER_SEQUENCE')
  assert.equal(one.check(7, 0, 1, 2), 'DUPLICATE_SEQUENCE')
})

test('a pending batch is neither new nor stored: its retry gets its entry, and the next may follow it', () => {
  const one = leader()
  one.append(7, 0, 0, 2)
  one.append(7, 0, 2, 2)
  assert.equal(one.check(7, 0, 2, 2), 'pending')
  assert.deepEqual([one.state.verdictEntry, one.state.verdictOffset], [1, 2])
  assert.equal(one.check(7, 0, 4), 'accept')
  // Other bounds than the pending batch's: whether its records will be stored is not known yet.
  assert.equal(one.check(7, 0, 3), 'OUT_OF_ORDER_SEQUENCE')
  one.state.commit(1)
  assert.equal(one.check(7, 0, 0, 2), 'seen')
  assert.equal(one.check(7, 0, 2, 2), 'pending')
  one.commit()
  assert.equal(one.check(7, 0, 2, 2), 'seen')
})

test('the table moves at commit, never at append', () => {
  const one = leader()
  one.store(7, 0, 0)
  const before = one.state.encode()
  one.append(7, 0, 1)
  assert.equal(one.state.committedOffset(4), 1)
  assert.equal(one.state.nextOffset(4), 2)
  assert.throws(() => one.state.encode(), /encoded at an end/)
  one.commit()
  assert.notDeepEqual(one.state.encode(), before)
})

test('a newer epoch begins at 0 and fences the older, pending or not', () => {
  const one = leader()
  one.store(7, 0, 0)
  assert.equal(one.check(7, 1, 1), 'OUT_OF_ORDER_SEQUENCE')
  assert.equal(one.check(7, 1, 0), 'accept')
  one.append(7, 1, 0)
  assert.equal(one.check(7, 0, 1), 'PRODUCER_FENCED')
  assert.equal(one.check(7, 0, 0), 'PRODUCER_FENCED')
  one.commit()
  assert.equal(one.check(7, 0, 0), 'PRODUCER_FENCED')
  assert.equal(one.check(7, 1, 1), 'accept')
})

test('sequences wrap after 2^31 - 1', () => {
  const one = leader()
  one.store(7, 0, 0, MOST - 1)
  one.store(7, 0, MOST - 1, 2)
  assert.equal(one.check(7, 0, 0), 'accept')
  one.store(7, 0, 0, 2)
  assert.equal(one.check(7, 0, MOST - 1, 2), 'seen')
  assert.equal(one.check(7, 0, MOST - 9), 'DUPLICATE_SEQUENCE')
  const across = leader()
  across.store(8, 0, 0, MOST - 1)
  across.store(8, 0, MOST - 1, 4)
  assert.equal(across.check(8, 0, MOST - 1, 4), 'seen')
  assert.equal(across.check(8, 0, 2), 'accept')
})

test('a sequence that the epoch has not used is never called a duplicate', () => {
  const one = leader()
  one.store(7, 0, 0, 5)
  assert.equal(one.check(7, 0, MOST), 'OUT_OF_ORDER_SEQUENCE')
})

test('an idle producer leaves by log time, and is then unknown rather than out of order', () => {
  const one = leader()
  one.store(7, 0, 0, 1, 100)
  one.store(5, 0, 0, 1, 100 + EXPIRY_MS - 1)
  assert.equal(one.check(7, 0, 1), 'accept')
  one.store(5, 0, 1, 1, 100 + EXPIRY_MS)
  assert.equal(one.check(7, 0, 1), 'UNKNOWN_PRODUCER_ID')
  assert.equal(one.check(6, 0, 1), 'UNKNOWN_PRODUCER_ID', 'ids up to the greatest that expired')
  assert.equal(one.check(8, 0, 1), 'OUT_OF_ORDER_SEQUENCE')
  assert.equal(one.check(7, 0, 0), 'accept')
})

test('log time never goes back, and entries without a producer move it too', () => {
  const one = leader()
  one.store(7, 0, 0, 1, 100)
  one.store(-1, -1, -1, 1, 100 + EXPIRY_MS)
  assert.equal(one.check(7, 0, 1), 'UNKNOWN_PRODUCER_ID')
  one.store(-1, -1, -1, 1, 5)
  assert.equal(one.state.logTimeMs, 100 + EXPIRY_MS)
})

test('a producer that expires with a batch pending comes back when that commits', () => {
  const one = leader()
  one.store(7, 0, 0, 1, 0)
  one.append(-1, -1, -1, 1, EXPIRY_MS)
  one.append(7, 0, 1, 1, EXPIRY_MS)
  one.state.commit(2)
  assert.equal(one.check(7, 0, 2), 'accept')
  one.commit()
  assert.equal(one.check(7, 0, 1), 'seen')
  assert.equal(one.check(7, 0, 2), 'accept')
})

test('entries out of order in number or offset are refused by assertion', () => {
  const state = new RangeState(4, [0], EXPIRY_MS)
  const made: Made = { partition: 4, id: -1, epoch: -1, first: -1, count: 2 }
  assert.throws(() => state.append(entryOf(made, 1, 0)), /entry numbers are dense/)
  assert.throws(() => state.append(entryOf(made, 0, 1)), /offsets are dense/)
  assert.throws(
    () => state.append(entryOf({ ...made, partition: 5 }, 0, 0)),
    /belongs to the range/,
  )
})
