// Brokers that find one another by themselves, come and go, and are drained and removed, under many seeds.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { membershipPlan } from '../../src/sim/membership/plan.ts'
import { findNothing, sameHere } from './checks.ts'

const SEEDS = 100

/** What must have happened somewhere. */
const KINDS = [
  'join',
  'retire',
  'replace',
  'mistake',
  'drain',
  'undrain',
  'remove',
  'mass-restart',
  'partition',
  'cut',
  'lasting cut',
  'slow-link',
  'lossy-link',
  'lostPackets',
  'doubledPackets',
  'overtakenPackets',
  'reset',
  'half-open',
  'unansweredDials',
  'pause',
  'kill',
  'power-cut',
  'power cut of all',
  'crash-at-operation',
  'stop',
  'wall',
  'slow-disk',
  'fail-disk',
]

test('from one broker to twenty, all there from the beginning or joining later', () => {
  const plans = Array.from({ length: 5000 }, (_, seed) => membershipPlan(seed))
  for (let count = 1; count <= 20; count++) {
    assert.ok(
      plans.some(({ brokers }) => brokers.length === count),
      `${count} brokers`,
    )
  }
  const seedsOf = plans.flatMap(({ brokers }) => brokers.map(({ seeds }, i) => ({ seeds, i })))
  assert.ok(
    seedsOf.some(({ seeds, i }) => i > 0 && seeds.includes(i)),
    'itself among its seeds',
  )
  for (const { seeds, i } of seedsOf) assert.ok(i === 0 || seeds.some((seed) => seed < i))
})

test('who is there is known by all, and metadata follows the ring, whoever comes and goes', async (t) => {
  const { counts, digests } = await findNothing('membership', SEEDS)
  assert.ok((counts['moves'] ?? 0) > 10 * SEEDS)
  assert.ok((counts['answered'] ?? 0) > 0.6 * (counts['operations'] ?? 0))
  for (const kind of KINDS) assert.ok((counts[kind] ?? 0) > 0, `${kind} never struck`)
  await t.test('one seed gives one story, byte for byte, here and in a worker', () =>
    sameHere('membership', digests, 2, 300),
  )
})
