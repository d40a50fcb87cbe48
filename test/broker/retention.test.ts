import assert from 'node:assert/strict'
import { test } from 'node:test'
import { dropsOf } from '../../src/broker/topics/retention.ts'
import { apply, emptyState } from '../../src/core/metadata/machine.ts'
import type { MetadataState, Topic } from '../../src/core/metadata/types.ts'
import { nodeId, topicId } from '../../src/model/ids.ts'
import { MIB, POLICY_DEFAULTS, type TopicPolicy } from '../../src/model/policy.ts'

const ID = topicId('11'.repeat(16))
const placement = { replicas: [nodeId('22'.repeat(16))], token: '', stateDigest: '' }

/** One range whose segments opened at the given times; the last is open. */
function topicWith(openedAt: readonly number[], policy: Partial<TopicPolicy>): Topic {
  const state: MetadataState = emptyState()
  apply(
    state,
    {
      kind: 'CreateTopic',
      name: 't',
      topicId: ID,
      policy: {
        ...POLICY_DEFAULTS,
        partitions: 1,
        replicationFactor: 1,
        minInsyncReplicas: 1,
        ...policy,
      },
      placement: [placement],
      creationToken: '',
      ifNotExists: false,
      system: false,
      timeMs: openedAt[0] as number,
    },
    1,
  )
  for (const [i, timeMs] of openedAt.slice(1).entries()) {
    const result = apply(
      state,
      {
        kind: 'RollSegment',
        topicId: ID,
        range: 0,
        segment: i + 1,
        attempt: 0,
        endEntry: i + 1,
        nextOffsets: [10 * (i + 1)],
        tailFrom: i + 1,
        placement: { ...placement, token: `${i}` },
        timeMs,
      },
      i + 2,
    )
    assert.ok(result.result.ok)
  }
  return state.topics.get(ID) as Topic
}

test('a segment is as old as the moment at which it was sealed', () => {
  const topic = topicWith([0, 100_000, 200_000, 300_000], { retentionMs: 50_000 })
  const none = (): number => 0
  assert.deepEqual(dropsOf(topic, 149_999, none), [])
  assert.deepEqual(dropsOf(topic, 150_000, none), [{ range: 0, belowSegment: 2 }])
  assert.deepEqual(dropsOf(topic, 250_000, none), [{ range: 0, belowSegment: 3 }])
  assert.deepEqual(dropsOf(topic, 9_000_000, none), [{ range: 0, belowSegment: 4 }])
})

test('the oldest sealed segments go until the rest fits; the open one stays whatever its size', () => {
  const topic = topicWith([0, 1, 2, 3], { retentionMs: -1, retentionBytes: 2 * MIB })
  const each = (bytes: number) => (): number => bytes
  assert.deepEqual(dropsOf(topic, 9, each(MIB / 2)), [])
  assert.deepEqual(dropsOf(topic, 9, each(MIB)), [{ range: 0, belowSegment: 3 }])
  assert.deepEqual(dropsOf(topic, 9, each(100 * MIB)), [{ range: 0, belowSegment: 4 }])
})
