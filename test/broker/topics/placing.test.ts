import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { placeRanges } from '../../../src/broker/topics/placing.ts'
import { nodeId } from '../../../src/model/ids.ts'

const NOTHING = { held: 0, led: 0 }

function places(count: number) {
  return Array.from({ length: count }, (_, i) => ({
    node: nodeId(String(i + 1).padStart(32, '0')),
    hostLabel: `h${i}`,
    rackLabel: '',
  }))
}

test('the ranges of a topic, and who leads them, are spread evenly over brokers that had nothing', () => {
  const sizes = [fc.integer({ min: 1, max: 7 }), fc.nat(60), fc.string()] as const
  fc.assert(
    fc.property(...sizes, (brokers, ranges, salt) => {
      const at = places(brokers)
      const replicas = Math.min(3, brokers)
      const held = new Map<string, number>()
      const led = new Map<string, number>()
      const placed = placeRanges(ranges, replicas, at, () => NOTHING, salt)
      assert.equal(placed.length, ranges)
      for (const nodes of placed) {
        assert.equal(new Set(nodes).size, replicas)
        for (const node of nodes) held.set(node, (held.get(node) ?? 0) + 1)
        led.set(nodes[0] ?? '', (led.get(nodes[0] ?? '') ?? 0) + 1)
      }
      const spread = (counts: Map<string, number>): number => {
        const all = at.map(({ node }) => counts.get(node) ?? 0)
        return Math.max(...all) - Math.min(...all)
      }
      assert.ok(spread(held) <= 1)
      assert.ok(spread(led) <= 2)
    }),
  )
})

test('who holds much is given nothing before the others have caught up', () => {
  const at = places(3)
  const full = at[0]?.node
  const loadOf = (node: string) => (node === full ? { held: 5, led: 5 } : NOTHING)
  for (const nodes of placeRanges(5, 2, at, loadOf, 'salt')) {
    assert.ok(nodes.every((node) => node !== full))
  }
})
