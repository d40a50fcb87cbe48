// Which of its recovered entries a starting broker takes for committed.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { BrokerParts } from '../../src/broker/options.ts'
import { segmentFacts } from '../../src/broker/topics/facts.ts'
import { settleRecovered } from '../../src/broker/topics/recovered.ts'
import { apply, emptyState } from '../../src/core/metadata/machine.ts'
import type { MetadataState } from '../../src/core/metadata/types.ts'
import { type NodeId, nodeId, topicId } from '../../src/model/ids.ts'
import { POLICY_DEFAULTS } from '../../src/model/policy.ts'
import { LISTENER } from '../storage/segment/rig.ts'
import { type MemoryLog, MemoryStore } from './support/memory-store.ts'

const NODES: readonly NodeId[] = ['a', 'b', 'c'].map((digit) => nodeId(digit.repeat(32)))
const TOPIC = topicId('1'.repeat(32))

function topicOn(replicas: readonly NodeId[]): MetadataState {
  const state = emptyState()
  const { result } = apply(
    state,
    {
      kind: 'CreateTopic',
      topicId: TOPIC,
      name: 'orders',
      creationToken: '2'.repeat(32),
      ifNotExists: false,
      policy: { ...POLICY_DEFAULTS, replicationFactor: replicas.length, minInsyncReplicas: 1 },
      placement: [{ replicas, token: '', stateDigest: '' }],
      timeMs: 1,
      system: false,
    },
    1,
  )
  assert.ok(result.ok)
  return state
}

/** Found at start: five durable entries, of which an envelope says that three were committed. */
async function settled(state: MetadataState): Promise<MemoryLog> {
  const store = new MemoryStore()
  const segment = state.topics.get(TOPIC)?.ranges[0]?.segments[0]?.segment ?? 0
  const log = store.create({ topicId: TOPIC, range: 0, segment }, LISTENER)
  log.durableEnd = 5
  Object.defineProperty(log, 'knownHighWatermark', { value: 3 })
  const told: string[] = []
  const parts = { store, metadata: { state } } as unknown as BrokerParts
  await settleRecovered(parts, (done, of) => told.push(`${done} of ${of}`))
  assert.deepEqual(told, ['0 of 1'])
  return log
}

test('with no other replica all that was recovered is committed', async () => {
  assert.equal((await settled(topicOn(NODES.slice(0, 1)))).highWatermark, 5)
})

test('with other replicas no more is committed than an envelope says: the rest may be cut', async () => {
  assert.equal((await settled(topicOn(NODES))).highWatermark, 3)
})

test('what an operator may accept the loss of is what has no other replica', () => {
  const [own, other] = NODES as [NodeId, NodeId]
  assert.equal(segmentFacts(topicOn([own]), own).length, 1)
  assert.equal(segmentFacts(topicOn([other]), own).length, 0)
  assert.equal(segmentFacts(topicOn([own, other]), own).length, 0)
})
