import assert from 'node:assert/strict'
import { test } from 'node:test'
import { EastGuardError } from '../../src/base/errors.ts'
import { Patience } from '../../src/client/patience.ts'
import { SimClock } from '../../src/sim/ports/clock.ts'
import { simLog } from '../../src/sim/ports/log.ts'

const LOST = new EastGuardError('CONNECTION_LOST', 'the connection was lost')

test('trouble of many partitions at once is told in a line or two, and its end in one', async () => {
  const clock = new SimClock()
  const lines: string[] = []
  const log = simLog(({ level, message }) => lines.push(`${level} ${message}`))
  const patience = new Patience(clock, log, 'orders', 'written')
  const told = (): string[] => lines.splice(0)
  const failing = async (from: number, to: number, ms: number): Promise<void> => {
    for (let passed = 0; passed < ms; passed += 500) {
      for (let one = from; one < to; one++) patience.failed(one, LOST)
      await clock.advance(500, async () => {})
    }
  }

  await failing(0, 64, 5000)
  assert.deepEqual(told(), [], 'a fail-over is over before that')
  await failing(0, 64, 2000)
  assert.deepEqual(told(), [
    "warn 64 partitions of 'orders' could not be written for 5 s, and the client tries again: the connection was lost",
  ])
  await failing(0, 66, 6000)
  assert.deepEqual(told(), [
    "warn 2 more partitions of 'orders' could not be written for 5 s, and the client tries again: the connection was lost",
  ])
  for (let one = 0; one < 65; one++) patience.well(one)
  assert.deepEqual(told(), [], 'one is still in trouble')
  patience.well(65)
  assert.deepEqual(told(), ["info it works again: 'orders' is written"])

  await failing(7, 8, 6000)
  assert.deepEqual(told(), [
    "warn partition 7 of 'orders' could not be written for 5 s, and the client tries again: the connection was lost",
  ])
})
