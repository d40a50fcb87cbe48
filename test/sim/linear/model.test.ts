import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import type { Command, Result } from '../../../src/core/metadata/commands.ts'
import { apply, emptyState } from '../../../src/core/metadata/machine.ts'
import type { MetadataState, Topic } from '../../../src/core/metadata/types.ts'
import type { NodeId, TopicId } from '../../../src/model/ids.ts'
import { MIB, POLICY_DEFAULTS, type TopicPolicy } from '../../../src/model/policy.ts'
import { answered, NOTHING_YET } from '../../../src/sim/linear/model.ts'
import type { Facts, Operation, Outcome } from '../../../src/sim/linear/types.ts'
import { anyIntent, NAME } from './histories.ts'

// The model and the metadata machine were written apart. Here they are asked the same.

test('what the metadata machine answers, one command after another, is what the model allows', () => {
  const seen = new Set<string>()
  fc.assert(
    fc.property(fc.array(anyIntent(0, 0), { maxLength: 30 }), (intents) => {
      const machine = emptyState()
      let state = NOTHING_YET
      for (const [i, { operation }] of intents.entries()) {
        const outcome = ask(machine, operation, i)
        const next = answered(state, operation, outcome)
        assert.ok(next, `${JSON.stringify(operation)} -> ${JSON.stringify(outcome)}`)
        state = next
        seen.add(`${operation.kind} ${outcome.kind}`)
      }
    }),
    { numRuns: 300 },
  )
  assert.equal(seen.size, 9, [...seen].join())
})

function ask(machine: MetadataState, operation: Operation, i: number): Outcome {
  const topic = machine.topicsByName.get(NAME)
  if (operation.kind === 'create') return outcomeOf(run(machine, creation(operation, i)))
  if (topic === undefined) return { kind: 'absent' }
  const { topicId } = topic
  switch (operation.kind) {
    case 'describe':
      return { kind: 'described', topicId, policy: factsOf(topic) }
    case 'delete':
      assert.ok(run(machine, { kind: 'DeleteTopic', topicId }).ok)
      return { kind: 'deleted' }
    case 'alter': {
      assert.ok(
        run(machine, { kind: 'AlterTopic', topicId, changes: policyOf(operation.changes) }).ok,
      )
      const changed = machine.topics.get(topicId)
      assert.ok(changed)
      return { kind: 'altered', policy: factsOf(changed) }
    }
  }
}

function run(machine: MetadataState, command: Command): Result {
  return apply(machine, command, machine.appliedIndex + 1).result
}

function creation(operation: Extract<Operation, { kind: 'create' }>, i: number): Command {
  return {
    kind: 'CreateTopic',
    name: NAME,
    topicId: i.toString(16).padStart(32, '0') as TopicId,
    policy: {
      ...POLICY_DEFAULTS,
      replicationFactor: 1,
      minInsyncReplicas: 1,
      ...policyOf(operation.policy),
    },
    placement: [{ replicas: ['n1' as NodeId], token: '', stateDigest: '' }],
    creationToken: operation.token,
    ifNotExists: operation.ifNotExists,
    system: false,
    timeMs: 0,
  }
}

function outcomeOf(result: Result): Outcome {
  if (!result.ok) {
    assert.equal(result.code, 'TOPIC_EXISTS')
    return { kind: 'taken' }
  }
  assert.ok('outcome' in result.answer)
  const { topic, outcome } = result.answer
  return { kind: outcome, topicId: topic.topicId, policy: factsOf(topic) }
}

/** Two keys that may be anything, for `a` and `b`. */
function policyOf({ a, b }: Facts): Partial<TopicPolicy> {
  return {
    ...(typeof a === 'number' && { segmentEntries: a * 100 }),
    ...(typeof b === 'number' && { segmentBytes: b * MIB }),
  }
}

function factsOf({ policy }: Topic): Facts {
  return { a: policy.segmentEntries / 100, b: policy.segmentBytes / MIB }
}
