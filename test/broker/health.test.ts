// Which ranges are said to lack something, when brokers are missing.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { RangeTrouble } from '../../src/broker/coordinator/types.ts'
import { healthOf } from '../../src/broker/health.ts'
import { apply, emptyState } from '../../src/core/metadata/machine.ts'
import type { MetadataState } from '../../src/core/metadata/types.ts'
import type { NodeId } from '../../src/model/ids.ts'
import { createTopic, given, node, placement, policy, topic } from '../core/metadata/support.ts'

const [ONE, TWO, THREE] = [node(1), node(2), node(3)]

function stateWith(...placed: readonly (readonly NodeId[])[]): MetadataState {
  const state = emptyState()
  const [first = []] = placed
  const three = policy({ partitions: 2, replicationFactor: 3, minInsyncReplicas: 2 })
  const command = createTopic({ policy: three, placement: [placement('', first)] })
  assert.ok(apply(state, command, 1).result.ok)
  for (const [i, replicas] of placed.slice(1).entries()) {
    const range = state.topics.get(topic(1))?.ranges[0]
    assert.ok(range)
    const end = { ...given(range, 1), tailFrom: 1 }
    const roll = { kind: 'RollSegment', topicId: topic(1), ...end, timeMs: 1 } as const
    assert.ok(apply(state, { ...roll, placement: placement('t', replicas) }, i + 2).result.ok)
  }
  return state
}

function issues(state: MetadataState, alive: readonly NodeId[], troubles: RangeTrouble[] = []) {
  const living = { alive: (one: NodeId) => alive.includes(one), usable: alive.length }
  const { unavailable, underReplicated, issues: found } = healthOf(state, living, troubles)
  assert.equal(unavailable + underReplicated, found.length)
  return found.map(({ kind, segment, why }) => `${kind} ${segment}: ${why}`)
}

const ALL = [ONE, TWO, THREE]

test('nothing is amiss while every segment has its replicas and all of them are there', () => {
  assert.deepEqual(issues(stateWith(ALL, ALL), ALL), [])
})

test('a range with a missing replica, or a segment that opened on fewer, is under-replicated', () => {
  const why = 'under-replicated 1: 2 of 3 replicas are there'
  assert.deepEqual(issues(stateWith(ALL), [ONE, TWO]), [why])
  assert.deepEqual(issues(stateWith([ONE, TWO], ALL), ALL), [why])
})

test('a range is unavailable when nobody has it, or too few are there for a successor', () => {
  const nobody = 'unavailable 1: no broker that holds it is alive'
  assert.deepEqual(issues(stateWith(ALL), [node(4)]), [nobody])
  const [few] = issues(stateWith(ALL), [ONE])
  assert.match(few ?? '', /^unavailable 1: .*1 of at least 2 brokers are there/)
})

test('what a coordinator cannot help is told when a broker is missing that it waits for', () => {
  const key = { topicId: topic(1), range: 0, segment: 1 }
  const trouble = { key, text: 'nobody could say where it ends' }
  const [told] = issues(stateWith(ALL), [ONE, TWO], [trouble])
  assert.equal(told, 'unavailable 1: nobody could say where it ends')
  assert.match(issues(stateWith(ALL), ALL, [trouble])[0] ?? '', /^under-replicated 1: nobody/)
})

test('a range that nobody can end is unavailable, though all brokers are there', () => {
  const key = { topicId: topic(1), range: 0, segment: 1 }
  const stuck = { key, text: 'nobody is sure', stuck: true }
  assert.deepEqual(issues(stateWith(ALL), ALL, [stuck]), ['unavailable 1: nobody is sure'])
})

test('a copy that is damaged on the broker that is asked is told, behind what the coordinator says', () => {
  const key = { topicId: topic(1), range: 0, segment: 1 }
  const here = { key, text: 'damaged here' }
  assert.deepEqual(issues(stateWith(ALL), ALL, [here]), ['under-replicated 1: damaged here'])
  const stuck = { key, text: 'nobody is sure', stuck: true }
  assert.deepEqual(issues(stateWith(ALL), ALL, [stuck, here]), ['unavailable 1: nobody is sure'])
})

test('what is wrong with a sealed segment is told, and hides nothing of the open one', () => {
  const key = { topicId: topic(1), range: 0 }
  const sealed = { key: { ...key, segment: 1 }, text: 'its replicas differ' }
  const open = { key: { ...key, segment: 2 }, text: 'nobody could say where it ends' }
  const state = stateWith(ALL, ALL)
  assert.deepEqual(issues(state, ALL, [sealed]), ['under-replicated 1: its replicas differ'])
  assert.deepEqual(issues(state, [ONE, TWO], [sealed]), ['under-replicated 1: its replicas differ'])
  for (const troubles of [
    [sealed, open],
    [open, sealed],
  ]) {
    const [told] = issues(state, [ONE, TWO], troubles)
    assert.equal(told, 'unavailable 2: nobody could say where it ends')
  }
})

test('all are counted, and a few are named, the unavailable first', () => {
  const state = stateWith(ALL)
  for (let i = 2; i <= 60; i++) {
    const replicas = [i % 2 === 0 ? THREE : ONE]
    const one = createTopic({
      name: `t${i}`,
      topicId: topic(i),
      policy: policy({ partitions: 1 }),
      placement: [placement('', replicas)],
    })
    assert.ok(apply(state, one, i).result.ok)
  }
  const living = { alive: (one: NodeId) => one !== THREE, usable: 2 }
  const health = healthOf(state, living, [])
  assert.deepEqual([health.unavailable, health.underReplicated], [30, 1])
  assert.equal(health.issues.length, 20)
  assert.ok(health.issues.every(({ kind }) => kind === 'unavailable'))
})
