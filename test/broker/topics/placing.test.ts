import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { type Place, placeSegments } from '../../../src/broker/topics/placing.ts'
import { nodeId } from '../../../src/model/ids.ts'

const NOTHING = { held: 0, led: 0 }

function place(number: number, hostLabel: string = `h${number}`, rackLabel: string = ''): Place {
  return { node: nodeId(String(number).padStart(32, '0')), hostLabel, rackLabel }
}

const clusters = fc
  .array(fc.tuple(fc.integer({ min: 0, max: 4 }), fc.integer({ min: 0, max: 3 })), {
    minLength: 1,
    maxLength: 9,
  })
  .map((hosts) => hosts.map(([host, rack], i) => place(i + 1, `h${host}`, `r${rack}`)))

test('each range has as many brokers as it should, all of them different, as far as there are so many', () => {
  fc.assert(
    fc.property(
      clusters,
      fc.nat(20),
      fc.integer({ min: 1, max: 7 }),
      fc.nat(),
      (at, n, rf, from) => {
        const placed = placeSegments(n, rf, at, () => NOTHING, from)
        assert.equal(placed.length, n)
        for (const nodes of placed) {
          assert.equal(nodes.length, Math.min(rf, at.length))
          assert.equal(new Set(nodes).size, nodes.length)
        }
      },
    ),
  )
})

test('copies are on different hosts as long as there are any, and on different racks when that is free to choose', () => {
  fc.assert(
    fc.property(clusters, fc.integer({ min: 1, max: 7 }), fc.nat(), (at, rf, from) => {
      const [nodes = []] = placeSegments(1, rf, at, () => NOTHING, from)
      const hosts = nodes.map((node) => at.find((one) => one.node === node)?.hostLabel)
      const there = new Set(at.map(({ hostLabel }) => hostLabel)).size
      assert.equal(new Set(hosts).size, Math.min(nodes.length, there))
    }),
  )
  const racks = [place(1, 'a', 'r1'), place(2, 'b', 'r1'), place(3, 'c', 'r2'), place(4, 'd', 'r2')]
  const [nodes = []] = placeSegments(1, 2, racks, () => NOTHING, 0)
  assert.deepEqual(nodes, [racks[0]?.node, racks[2]?.node])
})

test('the ranges of a topic, and who leads them, are spread evenly', () => {
  fc.assert(
    fc.property(fc.integer({ min: 1, max: 7 }), fc.nat(60), fc.nat(), (brokers, ranges, from) => {
      const at = Array.from({ length: brokers }, (_, i) => place(i + 1))
      const replicas = Math.min(3, brokers)
      const held = new Map<string, number>()
      const led = new Map<string, number>()
      for (const nodes of placeSegments(ranges, replicas, at, () => NOTHING, from)) {
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
  const at = [place(1), place(2), place(3)]
  const loadOf = (node: string) => (node === at[0]?.node ? { held: 5, led: 5 } : NOTHING)
  const placed = placeSegments(5, 2, at, loadOf, 0)
  assert.ok(placed.every((nodes) => !nodes.includes(at[0]?.node ?? nodeId('f'.repeat(32)))))
})
