import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Ticking } from '../../../src/broker/range/ticking.ts'
import { manualClock } from '../../storage/support/ports.ts'

test('a clock that is late says for how long the broker stood still, and one that is hardly late says nothing', () => {
  const clock = manualClock()
  const ticking = new Ticking(clock)
  const told: [number, number][] = []
  ticking.add({
    tick: (nowMs, stalledMs) => {
      told.push([nowMs, stalledMs])
      return true
    },
  })
  for (const ms of [25, 40, 1025, 25]) clock.advance(ms)
  assert.deepEqual(told, [
    [25, 0],
    [65, 0],
    [1090, 1000],
    [1115, 0],
  ])
  ticking.stop()
})
