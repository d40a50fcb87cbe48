import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Bounds } from './bounds.ts'
import type { Kind } from './faults.ts'
import { type Creation, Keeper } from './keeper.ts'

function creation(beganMs: number, endedMs: number, code?: string): Creation {
  return { name: `t-${beganMs}`, beganMs, endedMs, code }
}

/** What is said against these creations when something happened at 1000. */
function judged(kind: Kind, creations: Creation[], starvedMs: number = 0): string {
  const keeper = new Keeper('t', 'nowhere')
  keeper.creations = creations
  const bounds = new Bounds({ between: () => starvedMs })
  bounds.judge(kind, [keeper], 1000)
  return bounds.violations.join('\n')
}

test('three seconds without a creation that succeeds are too long, unless a processor was missing', () => {
  const held = [creation(900, 1010), creation(1020, 4500)]
  assert.match(judged('kill', held), /no creation succeeded for 3490 ms/)
  assert.match(judged('pause', held), /no creation succeeded/)
  assert.equal(judged('kill', held, 600), '')
  assert.equal(judged('kill', [creation(900, 1010), creation(1020, 3900)]), '')
})

test('a creation that fails ends no gap, but the last one shows how long it was', () => {
  const failing = [creation(1000, 2000), creation(2000, 4000, 'TIMEOUT')]
  assert.match(judged('kill', [...failing, creation(4000, 5500)]), /for 3500 ms/)
  assert.match(judged('kill', [...failing, creation(4000, 5500, 'TIMEOUT')]), /for 3500 ms/)
})

test('while another stops in peace no creation fails or takes longer than a second', () => {
  assert.equal(judged('stop', [creation(1000, 1900)]), '')
  assert.match(judged('stop', [creation(1000, 2100)]), /t-1000 took 1100 ms/)
  assert.match(judged('stop', [creation(1000, 1100, 'METADATA_UNAVAILABLE')]), /METADATA_UNAVAIL/)
  assert.equal(judged('stop', [creation(100, 900, 'TIMEOUT')]), '', 'it was before')
})
