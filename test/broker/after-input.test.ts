import assert from 'node:assert/strict'
import { test } from 'node:test'
import { afterInput } from '../../src/broker/after-input.ts'
import { manualClock } from '../storage/support/ports.ts'

const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))

test('what is due in time runs at once, and what is late behind what the network has brought meanwhile', async () => {
  const clock = manualClock()
  const order: string[] = []
  afterInput(clock, 20, () => order.push('in time'))
  clock.advance(30)
  assert.deepEqual(order, ['in time'])
  afterInput(clock, 20, () => order.push('late'))
  setImmediate(() => order.push('input'))
  clock.advance(1000)
  order.push('other timers')
  await turn()
  assert.deepEqual(order, ['in time', 'other timers', 'input', 'late'])
})

test('what is cancelled while it waits for that does not run', async () => {
  const clock = manualClock()
  let ran = false
  const timer = afterInput(clock, 20, () => {
    ran = true
  })
  clock.advance(1000)
  timer.cancel()
  await turn()
  assert.equal(ran, false)
})
