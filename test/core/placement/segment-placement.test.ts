import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { type PlacedBroker, placeSegment } from '../../../src/core/placement/segment-placement.ts'
import { type NodeId, nodeId } from '../../../src/model/ids.ts'

const idOf = (i: number): NodeId => nodeId(i.toString(16).padStart(32, '0'))

function broker(i: number, more: Partial<PlacedBroker> = {}): PlacedBroker {
  return { node: idOf(i), host: `h${i}`, rack: '', held: 0, led: 0, ...more }
}

const anyBrokers = fc
  .array(
    fc.record({
      host: fc.constantFrom('', 'h1', 'h2', 'h3', 'h4'),
      rack: fc.constantFrom('', 'r1', 'r2'),
      held: fc.nat(5),
      led: fc.nat(5),
    }),
    { maxLength: 9 },
  )
  .map((all) => all.map((one, i) => broker(i, one)))

test('as many as are asked for, each once, whenever there are so many', () => {
  fc.assert(
    fc.property(anyBrokers, fc.integer({ min: 1, max: 5 }), fc.string(), (brokers, count, salt) => {
      const placed = placeSegment(brokers, { count, salt })
      assert.equal(placed.length, Math.min(count, brokers.length))
      assert.equal(new Set(placed).size, placed.length)
      assert.deepEqual(placeSegment(brokers.toReversed(), { count, salt }), placed)
    }),
  )
})

test('who holds the segment before it and is well stays, and only empty seats are filled', () => {
  fc.assert(
    fc.property(anyBrokers, fc.uniqueArray(fc.nat(9), { maxLength: 3 }), (brokers, seats) => {
      const keep = seats.map(idOf)
      const placed = placeSegment(brokers, { count: 3, keep, salt: 'x' })
      for (const node of keep) {
        assert.equal(
          placed.includes(node),
          brokers.some((one) => one.node === node),
        )
      }
    }),
  )
})

test('no two on one host while there are hosts enough', () => {
  fc.assert(
    fc.property(anyBrokers, (brokers) => {
      const labelled = brokers.filter(({ host }) => host !== '')
      const hostOf = new Map(labelled.map(({ node, host }) => [node, host]))
      const placed = placeSegment(labelled, { count: 3, salt: 'x' })
      const hosts = new Set(placed.map((node) => hostOf.get(node)))
      assert.equal(hosts.size, Math.min(3, new Set(hostOf.values()).size, placed.length))
    }),
  )
})

test('another rack, when the hosts are different anyway', () => {
  const brokers = [
    broker(0, { rack: 'r1', held: 0 }),
    broker(1, { rack: 'r1', held: 1 }),
    broker(2, { rack: 'r2', held: 9 }),
  ]
  assert.deepEqual(placeSegment(brokers, { count: 2, salt: 'x' }).toSorted(), [idOf(0), idOf(2)])
})

test('the least loaded are taken, and the one that leads least leads', () => {
  const brokers = [
    broker(0, { held: 2, led: 0 }),
    broker(1, { held: 1, led: 1 }),
    broker(2, { held: 1, led: 0 }),
    broker(3, { held: 3, led: 0 }),
  ]
  assert.deepEqual(placeSegment(brokers, { count: 2, salt: 'x' }), [idOf(2), idOf(1)])
})

test('who is asked to lead leads, though it leads most', () => {
  const brokers = [broker(0, { led: 9 }), broker(1), broker(2)]
  const keep = [idOf(0), idOf(1)]
  const placed = placeSegment(brokers, { count: 3, keep, first: idOf(0), salt: 'x' })
  assert.deepEqual(placed, [idOf(0), idOf(1), idOf(2)])
})

test('equal brokers share many ranges out among themselves', () => {
  const brokers = [0, 1, 2, 3, 4].map((i) => broker(i))
  const led = new Map<NodeId, number>()
  for (let range = 0; range < 500; range++) {
    const [leader] = placeSegment(brokers, { count: 3, salt: `topic/${range}` })
    if (leader !== undefined) led.set(leader, (led.get(leader) ?? 0) + 1)
  }
  for (const { node } of brokers) assert.ok((led.get(node) ?? 0) > 60, `${node} leads too few`)
})
