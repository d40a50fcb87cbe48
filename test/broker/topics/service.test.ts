// How many replicas a topic gets, on which brokers, and when there are too few of these.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { BrokerOptions, BrokerParts, Neighbour } from '../../../src/broker/options.ts'
import { TopicService } from '../../../src/broker/topics/service.ts'
import { type NodeId, nodeId } from '../../../src/model/ids.ts'
import type { NodeRole } from '../../../src/model/metadata.ts'
import { minInsyncDefault, POLICY_DEFAULTS, type TopicPolicy } from '../../../src/model/policy.ts'
import { MemoryMetadata } from '../support/harness.ts'

const NODES = [1, 2, 3, 4].map((number) => nodeId(String(number).padStart(32, '0')))
const [OWN, SECOND, THIRD, FOURTH] = NODES as [NodeId, NodeId, NodeId, NodeId]

interface Cluster {
  readonly others: readonly (readonly [NodeId, Neighbour['state'], NodeRole])[]
  readonly minInsync?: number
}

function cluster({ others, minInsync }: Cluster) {
  const metadata = new MemoryMetadata()
  for (const [node, , role] of others) {
    metadata.state.nodes.set(node, { number: NODES.indexOf(node) + 1, role })
  }
  const address = { host: '10.0.0.1', port: 2921 }
  const options = {
    nodeId: OWN,
    hostLabel: OWN,
    rackLabel: '',
    others: () =>
      others.map(([node, state]) => ({
        nodeId: node,
        displayName: node,
        hostLabel: node,
        rackLabel: '',
        state,
        boot: 1,
        cluster: address,
        client: address,
        data: address,
      })),
    defaultPolicy: (replicationFactor: number) => ({
      ...POLICY_DEFAULTS,
      replicationFactor,
      minInsyncReplicas: Math.min(
        minInsync ?? minInsyncDefault(replicationFactor),
        replicationFactor,
      ),
    }),
    defaultReplicationFactor: 3,
  } as Partial<BrokerOptions> as BrokerOptions
  let drawn = 0
  const ports = {
    random: { bytes: (count: number) => new Uint8Array(count).fill(++drawn) },
    clock: { wall: () => 1 },
  }
  const parts = { metadata, ports, store: { room: () => 'free' } } as unknown as BrokerParts
  return { metadata, topics: new TopicService(options, parts) }
}

let names = 0
async function create(topics: TopicService, policy: Partial<TopicPolicy> = {}) {
  const name = `topic-${++names}`
  const { topic } = await topics.create({ name, policy, creationToken: '', ifNotExists: false })
  return topic
}

const THREE: Cluster['others'] = [
  [SECOND, 'alive', 'member'],
  [THIRD, 'alive', 'member'],
]

test('a topic whose creator names no number gets the default, or as many as there are brokers', async () => {
  const cases: readonly (readonly [Cluster['others'], number, number])[] = [
    [[], 1, 1],
    [[[SECOND, 'alive', 'member']], 2, 1],
    [THREE, 3, 2],
    [[...THREE, [FOURTH, 'alive', 'member']], 3, 2],
  ]
  for (const [others, replicas, minInsync] of cases) {
    const { policy, active } = await create(cluster({ others }).topics)
    assert.deepEqual([policy.replicationFactor, policy.minInsyncReplicas], [replicas, minInsync])
    assert.equal(active[0]?.segments[0]?.replicas.length, replicas)
  }
})

test('what an operator set as the fewest copies holds, but not for a topic that got fewer replicas', async () => {
  const full = await create(cluster({ others: THREE, minInsync: 3 }).topics)
  assert.equal(full.policy.minInsyncReplicas, 3)
  const two = cluster({ others: [[SECOND, 'alive', 'member']], minInsync: 3 })
  assert.equal((await create(two.topics)).policy.minInsyncReplicas, 1)
})

test('brokers that are not alive or draining are given nothing, and do not count', async () => {
  const { topics } = cluster({
    others: [
      [SECOND, 'suspect', 'member'],
      [THIRD, 'alive', 'draining'],
      [FOURTH, 'alive', 'member'],
    ],
  })
  const { active } = await create(topics)
  assert.deepEqual(new Set(active[0]?.segments[0]?.replicas), new Set([OWN, FOURTH]))
  await assert.rejects(create(topics, { replicationFactor: 3 }), {
    code: 'NOT_ENOUGH_BROKERS',
    message: '3 replicas are asked for, but 2 brokers are alive and not draining',
  })
  const { topicId } = await create(topics)
  const raised = topics.alter({ topicId }, { replicationFactor: 3 })
  await assert.rejects(raised, { code: 'NOT_ENOUGH_BROKERS' })
})

test('topics spread over the brokers, and count as load until they are deleted', async () => {
  const { topics } = cluster({ others: THREE })
  const led = new Map<NodeId, number>()
  let last = await create(topics, { replicationFactor: 1 })
  for (let i = 0; i < 8; i++) {
    const [leader = OWN] = last.active[0]?.segments[0]?.replicas ?? []
    led.set(leader, (led.get(leader) ?? 0) + 1)
    last = await create(topics, { replicationFactor: 1 })
  }
  assert.deepEqual(
    [...led.values()].map((count) => count >= 2 && count <= 3),
    [true, true, true],
  )
  const [leader] = last.active[0]?.segments[0]?.replicas ?? []
  await topics.delete({ topicId: last.topicId })
  const again = await create(topics, { replicationFactor: 1 })
  assert.equal(again.active[0]?.segments[0]?.replicas[0], leader)
})

test('added partitions have replicas of their own', async () => {
  const { topics } = cluster({ others: THREE })
  const { topicId, policy } = await create(topics)
  const { active } = await topics.addPartitions({ topicId }, policy.partitions + 1)
  assert.equal(active[1]?.segments[0]?.replicas.length, 3)
})
