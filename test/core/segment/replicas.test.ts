// What a caller must not do, and what no dialogue shows.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { AssertionFailed } from '../../../src/base/assert.ts'
import { SegmentFollower } from '../../../src/core/segment/follower.ts'
import { SegmentLeader } from '../../../src/core/segment/leader.ts'
import { SEGMENT_TIMING } from '../../../src/core/segment/types.ts'
import { idOf } from './script.ts'

const [A, B, C] = [idOf('A'), idOf('B'), idOf('C')]

function leader(): SegmentLeader {
  return new SegmentLeader({ followers: [B, C], attempt: 0, timing: SEGMENT_TIMING })
}

test('a leader appends nothing while an end of its own may commit', () => {
  const segment = leader()
  segment.roll('full')
  assert.equal(segment.mode, 'frozen')
  assert.throws(() => segment.appended(0), AssertionFailed)
})

test('a leader takes no end back while what comes behind it is being handed on', () => {
  const segment = leader()
  const { frozenTimeoutMs } = SEGMENT_TIMING
  segment.roll('full')
  segment.tick(0)
  for (let now = 0; now < 10 * frozenTimeoutMs; now += 1000) {
    segment.handsOn(now)
    segment.tick(now + 999)
    assert.equal(segment.wantsCancel, false)
  }
  segment.tick(11 * frozenTimeoutMs)
  assert.equal(segment.wantsCancel, true)
})

test('a leader goes on under the attempt that it learned of, and gives its next end under it', () => {
  const segment = leader()
  segment.learned({ state: 'open', attempt: 3 })
  segment.roll('full')
  assert.equal(segment.given?.attempt, 3)
  segment.learned({ state: 'open', attempt: 3 })
  assert.equal(segment.mode, 'frozen')
  segment.learned({ state: 'open', attempt: 4 })
  segment.roll('full')
  assert.equal(segment.given?.attempt, 4)
})

test('a follower that acknowledges steadily has not failed, however far behind it is', () => {
  const segment = leader()
  for (let i = 0; i < 100; i++) segment.appended(0)
  segment.durable(100)
  segment.acked(B, 100, 0)
  for (let i = 1; i <= 50; i++) {
    segment.acked(C, i, i * 700)
    segment.tick(i * 700)
    assert.equal(segment.mode, 'open')
  }
})

test('a follower that was long idle has its whole time for what comes next', () => {
  const segment = leader()
  segment.tick(60_000)
  segment.appended(60_000)
  segment.durable(1)
  segment.acked(B, 1, 60_000)
  segment.tick(60_700)
  assert.equal(segment.mode, 'open')
  segment.tick(60_750)
  assert.deepEqual(
    segment.given?.failed.map(({ node }) => node),
    [C],
  )
})

test('time in which the leader stood still counts against no follower', () => {
  const segment = leader()
  segment.appended(0)
  segment.durable(1)
  segment.acked(B, 1, 0)
  segment.tick(400)
  segment.tick(3000, 2600)
  segment.tick(3300, 0)
  assert.equal(segment.mode, 'open')
  segment.tick(3350, 0)
  assert.deepEqual(
    segment.given?.failed.map(({ node }) => node),
    [C],
  )
})

test('a leader asks that its end be taken back only when it could go on', () => {
  const cancels = (fails: boolean): boolean => {
    const segment = leader()
    segment.appended(0)
    for (const node of [B, C]) if (node === B || !fails) segment.acked(node, 1, 0)
    segment.durable(1)
    segment.roll('full')
    for (let now = 0; now <= 10_000; now += 50) segment.tick(now)
    assert.equal(segment.mode, 'frozen')
    return segment.wantsCancel
  }
  assert.equal(cancels(false), true)
  assert.equal(cancels(true), false)
})

test('a leader cannot be sealed above what it appended, nor acknowledge for a stranger', () => {
  const segment = leader()
  assert.throws(() => segment.learned({ state: 'sealed', endEntry: 1 }), AssertionFailed)
  assert.throws(() => segment.acked(A, 1, 0), AssertionFailed)
})

test('a follower takes nothing behind its fence, and tells of no fence that is not durable', () => {
  const segment = new SegmentFollower({ leader: A, next: 0, fencedByRestart: false })
  segment.took()
  segment.fence()
  assert.equal(segment.answer, undefined)
  assert.throws(() => segment.took(), AssertionFailed)
  segment.durable(1)
  assert.equal(segment.answer, undefined)
  segment.fenceDurable()
  assert.deepEqual(segment.answer, { end: 1, highWatermark: 0 })
})

test('a high watermark that is above what a restarted follower has is told, and not served', () => {
  const options = { leader: A, next: 1, fencedByRestart: true, highWatermark: 2 }
  const segment = new SegmentFollower(options)
  assert.equal(segment.highWatermark, 1)
  assert.deepEqual(segment.answer, { end: 1, highWatermark: 2 })
})

test('a sync that ends after the seal does not count what the seal has cut off', () => {
  const segment = new SegmentFollower({ leader: A, next: 0, fencedByRestart: false })
  for (let i = 0; i < 3; i++) segment.took()
  segment.fence()
  segment.seal(2)
  segment.durable(3)
  segment.fenceDurable()
  assert.deepEqual([segment.next, segment.durableEnd], [2, 2])
})
