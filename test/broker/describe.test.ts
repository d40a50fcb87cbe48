// Which brokers are listed: whoever has left and was not removed is missed.

import assert from 'node:assert/strict'
import test from 'node:test'
import { describeCluster } from '../../src/broker/describe.ts'
import type { BrokerOptions, Neighbour } from '../../src/broker/options.ts'
import { emptyState } from '../../src/core/metadata/machine.ts'
import { nodeId as toNodeId } from '../../src/model/ids.ts'

type Described = ReturnType<typeof describeCluster>

const OWN = toNodeId('0'.repeat(32))
const MEMBER = toNodeId('1'.repeat(32))
const REMOVED = toNodeId('2'.repeat(32))
const UNKNOWN = toNodeId('3'.repeat(32))

test('a broker that was stopped is listed as left, until it is removed', () => {
  const { brokers } = describe('left', OWN)
  assert.deepEqual(
    brokers.map(({ nodeNumber, state, shards }) => [nodeNumber, state, shards]),
    [
      [1, 'alive', 1],
      [2, 'left', 1],
    ],
  )
})

test('a broker that is dead leads nothing, even if nobody else does', () => {
  for (const state of ['alive', 'suspect'] as const) {
    assert.equal(describe(state, MEMBER).shardsLed, 1)
  }
  const { brokers, shardsLed } = describe('dead', MEMBER)
  assert.equal(shardsLed, 0)
  assert.ok(brokers.every(({ leads }) => leads === 0))
})

/** Three others, of which one is a member and one was removed; a single shard. */
function describe(state: Neighbour['state'], leader: Neighbour['nodeId']): Described {
  const { nodes, ...rest } = emptyState()
  nodes.set(OWN, { number: 1, role: 'member' })
  nodes.set(MEMBER, { number: 2, role: 'member' })
  nodes.set(REMOVED, { number: 3, role: 'removed' })
  const options = {
    nodeId: OWN,
    displayName: 'own',
    hostLabel: 'here',
    rackLabel: '',
    advertised: { host: '10.0.0.1', port: 2921 },
    shards: () => [{ members: [OWN, MEMBER], leader }],
    others: () => [MEMBER, REMOVED, UNKNOWN].map((node) => other(node, state)),
  } as Partial<BrokerOptions> as BrokerOptions
  const space = { totalBytes: 1, freeBytes: 1 }
  return describeCluster(options, { ...rest, nodes }, space)
}

function other(nodeId: Neighbour['nodeId'], state: Neighbour['state']): Neighbour {
  const address = { host: '10.0.0.2', port: 2922 }
  const names = { displayName: 'other', hostLabel: 'there', rackLabel: 'r', boot: 1 }
  return { nodeId, ...names, state, cluster: address, client: address, data: address }
}
