import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Clock } from '../../src/ports/clock.ts'

export type WithClock = (body: (clock: Clock) => Promise<void>) => Promise<void>

export function clockSuite(name: string, withClock: WithClock): void {
  const check = (what: string, body: (clock: Clock) => Promise<void>): void => {
    test(`${name} clock: ${what}`, () => withClock(body))
  }

  check('timers run in the order of their times', async (clock) => {
    const ran: number[] = []
    await new Promise<void>((resolve) => {
      for (const ms of [30, 1, 15]) clock.after(ms, () => ran.push(ms))
      clock.after(45, resolve)
    })
    assert.deepEqual(ran, [1, 15, 30])
  })

  check('a timer never runs before its time by the monotonic clock', async (clock) => {
    for (const ms of [0, 0.4, 1, 2.7, 5]) {
      const asked = clock.monotonic()
      await new Promise<void>((resolve) => void clock.after(ms, resolve))
      // The sum of two such numbers is rounded.
      assert.ok(clock.monotonic() - asked >= ms - 1e-9)
    }
  })

  check('a cancelled timer does not run, and cancelling twice is harmless', async (clock) => {
    let ran = false
    const timer = clock.after(1, () => {
      ran = true
    })
    timer.cancel()
    timer.cancel()
    await new Promise<void>((resolve) => void clock.after(5, resolve))
    assert.equal(ran, false)
  })

  check('the next turn comes after the promises of this one', async (clock) => {
    const order: string[] = []
    await new Promise<void>((resolve) => {
      clock.nextTurn(() => {
        order.push('turn')
        resolve()
      })
      void Promise.resolve().then(() => order.push('promise'))
    })
    assert.deepEqual(order, ['promise', 'turn'])
  })

  check('wall time is a whole number of milliseconds of this century', async (clock) => {
    assert.ok(Number.isInteger(clock.wall()))
    assert.ok(clock.wall() > Date.UTC(2024, 0) && clock.wall() < Date.UTC(2100, 0))
  })
}
