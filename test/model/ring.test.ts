import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { type NodeId, nodeId } from '../../src/model/ids.ts'
import { type RingNode, shardPlan } from '../../src/model/ring.ts'

const SHARDS = 256
const VNODES = 256

function node(number: number, host: string = `host-${number}`, rack: string = ''): RingNode {
  const id = nodeId((number * 7919).toString(16).padStart(32, 'c'))
  return { node: id, hostLabel: host, rackLabel: rack }
}

function nodes(count: number): readonly RingNode[] {
  return Array.from({ length: count }, (_, i) => node(i + 1))
}

function counts(lists: readonly (readonly NodeId[])[]): ReadonlyMap<NodeId, number> {
  const found = new Map<NodeId, number>()
  for (const list of lists) for (const one of list) found.set(one, (found.get(one) ?? 0) + 1)
  return found
}

test('every shard has as many holders as it should, all different, as far as there are brokers', () => {
  for (const count of [0, 1, 2, 3, 4, 7]) {
    for (const holders of shardPlan(nodes(count), SHARDS, 3, VNODES)) {
      assert.equal(holders.length, Math.min(3, count))
      assert.equal(new Set(holders).size, holders.length)
    }
  }
})

test('shards and their leading are even, within a fifth of the mean', () => {
  for (const count of [2, 3, 4, 5, 8, 20]) {
    const plan = shardPlan(nodes(count), SHARDS, 3, VNODES)
    for (const [lists, each] of [
      [plan, Math.min(3, count)],
      [plan.map((holders) => holders.slice(0, 1)), 1],
    ] as const) {
      const mean = (SHARDS * each) / count
      for (const { node: id } of nodes(count)) {
        const held = counts(lists).get(id) ?? 0
        assert.ok(Math.abs(held - mean) <= 0.2 * mean + 1, `${held} of ${mean}, ${count} brokers`)
      }
    }
  }
})

test('of few shards nobody holds more than the bound, whatever the ids are', () => {
  const ids = fc.uniqueArray(fc.uint8Array({ minLength: 16, maxLength: 16 }), {
    minLength: 3,
    maxLength: 7,
    selector: (bytes) => bytes.join(),
  })
  fc.assert(
    fc.property(ids, fc.constantFrom(4, 8, 16), (some, shards) => {
      const ring = some.map((bytes): RingNode => {
        const id = nodeId(Buffer.from(bytes).toString('hex'))
        return { node: id, hostLabel: id, rackLabel: '' }
      })
      const held = counts(shardPlan(ring, shards, 3, 16))
      const mean = (3 * shards) / ring.length
      for (const count of held.values())
        assert.ok(count <= Math.ceil(1.02 * mean), `${count} of ${mean}`)
    }),
    { numRuns: 500 },
  )
})

test('the order in which brokers are listed does not matter', () => {
  const property = fc.property(fc.shuffledSubarray([...nodes(9)], { minLength: 9 }), (shuffled) => {
    assert.deepEqual(shardPlan(shuffled, SHARDS, 3, 32), shardPlan(nodes(9), SHARDS, 3, 32))
  })
  fc.assert(property, { numRuns: 20 })
})

test('when a broker comes, most of the others stay where they are', () => {
  const before = shardPlan(nodes(5), SHARDS, 3, VNODES)
  const after = shardPlan(nodes(6), SHARDS, 3, VNODES)
  let moved = 0
  for (const [shard, holders] of after.entries()) {
    moved += holders.filter((one) => before[shard]?.includes(one) !== true).length
  }
  // The newcomer's share is a sixth of all; the bound moves some more.
  assert.ok(moved < (SHARDS * 3) / 3, `${moved} moved`)
})

test('holders stand on different hosts, and in different racks, as far as there are any', () => {
  const six = [
    node(1, 'h1', 'r1'),
    node(2, 'h1', 'r1'),
    node(3, 'h2', 'r1'),
    node(4, 'h3', 'r2'),
    node(5, 'h4', 'r2'),
    node(6, 'h5', 'r3'),
  ]
  const byId = new Map(six.map((one) => [one.node, one]))
  for (const holders of shardPlan(six, SHARDS, 3, VNODES)) {
    const at = holders.map((id) => byId.get(id) as RingNode)
    assert.equal(new Set(at.map(({ hostLabel }) => hostLabel)).size, 3)
  }
  const two = [node(1, 'h1'), node(2, 'h1'), node(3, 'h2')]
  for (const holders of shardPlan(two, SHARDS, 2, VNODES)) {
    assert.ok(holders.includes((two[2] as RingNode).node))
  }
})
