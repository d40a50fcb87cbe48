import assert from 'node:assert/strict'
import { test } from 'node:test'
import { prng } from '../../src/base/prng.ts'
import { systemRandom } from '../../src/io/random/system-random.ts'
import type { Random } from '../../src/ports/random.ts'
import { simRandom } from '../../src/sim/ports/random.ts'

function randomSuite(name: string, make: () => Random): void {
  test(`${name} random: bytes of the length asked for, and not twice the same`, () => {
    const random = make()
    assert.equal(random.bytes(0).length, 0)
    assert.equal(random.bytes(33).length, 33)
    assert.notDeepEqual(random.bytes(16), random.bytes(16))
  })

  test(`${name} random: floats fill [0, 1)`, () => {
    const random = make()
    const buckets = new Set<number>()
    for (let i = 0; i < 1000; i++) {
      const value = random.float()
      assert.ok(value >= 0 && value < 1)
      buckets.add(Math.floor(value * 10))
    }
    assert.equal(buckets.size, 10)
  })
}

randomSuite('system', systemRandom)
randomSuite('simulated', () => simRandom(prng(7)))

test('one seed gives one sequence', () => {
  const [a, b, c] = [simRandom(prng(1)), simRandom(prng(1)), simRandom(prng(2))]
  const bytes = a.bytes(16)
  assert.deepEqual(bytes, b.bytes(16))
  assert.notDeepEqual(bytes, c.bytes(16))
})
