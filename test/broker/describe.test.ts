// Which brokers are listed: whoever has left and was not removed is missed.

import assert from 'node:assert/strict'
import test from 'node:test'
import { describeCluster } from '../../src/broker/describe.ts'
import type { BrokerOptions, Neighbour } from '../../src/broker/options.ts'
import { emptyState } from '../../src/core/metadata/machine.ts'
import { nodeId } from '../../src/model/ids.ts'

const OWN = nodeId('0'.repeat(32))
const MEMBER = nodeId('1'.repeat(32))
const REMOVED = nodeId('2'.repeat(32))
const UNKNOWN = nodeId('3'.repeat(32))

test('a broker that was stopped is listed as left, until it is removed', () => {
  const { nodes, ...rest } = emptyState()
  nodes.set(OWN, { number: 1, role: 'member' })
  nodes.set(MEMBER, { number: 2, role: 'member' })
  nodes.set(REMOVED, { number: 3, role: 'removed' })
  const options = {
    nodeId: OWN,
    displayName: 'own',
    hostLabel: 'here',
    advertised: { host: '10.0.0.1', port: () => 2921 },
    shards: () => [{ members: [OWN, MEMBER], leader: OWN }],
    others: () => [MEMBER, REMOVED, UNKNOWN].map(departed),
  } as Partial<BrokerOptions> as BrokerOptions
  const space = { totalBytes: 1, freeBytes: 1 }
  const { brokers } = describeCluster(options, { ...rest, nodes }, space)
  assert.deepEqual(
    brokers.map(({ nodeNumber, state, shards }) => [nodeNumber, state, shards]),
    [
      [1, 'alive', 1],
      [2, 'left', 1],
    ],
  )
})

function departed(node: Neighbour['nodeId']): Neighbour {
  const address = { host: '10.0.0.2', port: 2922 }
  const names = { displayName: 'other', hostLabel: 'there' }
  return { nodeId: node, ...names, state: 'left', cluster: address, client: address }
}
