import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { systemClock } from '../../src/io/clock/system-clock.ts'
import { SimClock } from '../../src/sim/ports/clock.ts'
import { clockSuite } from './clock.suite.ts'
import { driven, settle } from './support.ts'

clockSuite('system', (body) => heldAlive(() => body(systemClock())))
clockSuite('simulated', (body) => {
  const clock = new SimClock()
  return driven(clock, () => body(clock))
})

/** The clock's timers do not keep a process alive, so a test that waits for one must. */
async function heldAlive(body: () => Promise<void>): Promise<void> {
  const held = setInterval(() => undefined, 1000)
  try {
    await body()
  } finally {
    clearInterval(held)
  }
}

test('virtual time runs any set of timers by due time, then by age', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(fc.tuple(fc.nat(50), fc.boolean())), async (timers) => {
      const clock = new SimClock()
      const ran: number[] = []
      timers.forEach(([ms, cancelled], i) => {
        const timer = clock.after(ms, () => ran.push(i))
        if (cancelled) timer.cancel()
      })
      await clock.advance(50, () => Promise.resolve())
      const wanted = timers
        .map(([ms, cancelled], i) => ({ ms, cancelled, i }))
        .filter((t) => !t.cancelled)
        .sort((a, b) => a.ms - b.ms || a.i - b.i)
      assert.deepEqual(
        ran,
        wanted.map((t) => t.i),
      )
      assert.equal(clock.monotonic(), 50)
    }),
  )
})

test('virtual time does not pass the moment it was advanced to', async () => {
  const clock = new SimClock()
  let ran = false
  clock.after(10, () => {
    ran = true
  })
  await clock.advance(9.9, settle)
  assert.equal(ran, false)
  await clock.advance(0.1, settle)
  assert.equal(ran, true)
})
