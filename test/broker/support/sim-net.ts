// A simulated world for parts of brokers, and how a test lets its time pass.

import assert from 'node:assert/strict'
import type { SimProcess } from '../../../src/sim/process.ts'
import { simWorld, type World } from '../../../src/sim/world.ts'
import { settle } from '../../ports/support.ts'

export class SimNet {
  readonly world: World
  /** How often is looked whether something has come true. */
  private readonly lookMs: number

  constructor(seed: number, lookMs: number) {
    this.world = simWorld(seed)
    this.lookMs = lookMs
  }

  now(): number {
    return this.world.clock.monotonic()
  }

  run(ms: number): Promise<void> {
    return this.world.clock.advance(ms, settle)
  }

  /** How long it takes until `done`; fails after `withinMs`. */
  async until(what: string, done: () => boolean, withinMs: number = 20_000): Promise<number> {
    const from = this.now()
    while (!done()) {
      assert.ok(this.now() - from < withinMs, `${what} within ${withinMs} ms`)
      await this.run(this.lookMs)
    }
    return this.now() - from
  }
}

/** What the process shows under that name. */
export async function metricOf({ ports }: SimProcess, name: string): Promise<number> {
  const text = await ports.metrics.render()
  const line = text.split('\n').find((one) => one.startsWith(`${name} `))
  assert.ok(line !== undefined, `there is a metric ${name}`)
  return Number(line.split(' ')[1])
}
