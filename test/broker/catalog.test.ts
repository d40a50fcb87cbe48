import assert from 'node:assert/strict'
import { test } from 'node:test'
import { catalogOf } from '../../src/broker/topics/catalog.ts'
import { apply, emptyState } from '../../src/core/metadata/machine.ts'
import { nodeId, topicId } from '../../src/model/ids.ts'
import { POLICY_DEFAULTS } from '../../src/model/policy.ts'

test("a node's catalog has the segments that are kept on it, and no others'", () => {
  const nodes = [nodeId('a'.repeat(32)), nodeId('b'.repeat(32)), nodeId('c'.repeat(32))] as const
  const id = topicId('1'.repeat(32))
  const state = emptyState()
  const { result } = apply(
    state,
    {
      kind: 'CreateTopic',
      topicId: id,
      name: 'orders',
      creationToken: '2'.repeat(32),
      ifNotExists: false,
      policy: { ...POLICY_DEFAULTS, replicationFactor: 2, minInsyncReplicas: 1 },
      placement: [{ replicas: [nodes[0], nodes[1]], token: '', stateDigest: '' }],
      timeMs: 1,
      system: false,
    },
    1,
  )
  assert.ok(result.ok)
  const segmentsOf = (node: (typeof nodes)[number]): number =>
    [...catalogOf(state, node).segments()].length
  assert.deepEqual(nodes.map(segmentsOf), [1, 1, 0])
  assert.equal(catalogOf(state, nodes[2]).topicName(id), 'orders')
})
