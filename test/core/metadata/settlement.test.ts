// What a sealed segment goes through until all its replicas are known to have all of it, and that logs and snapshots from
// before there were replicas are still understood.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { decodeCommand } from '../../../src/core/metadata/command-codec.ts'
import type { Command, ResultOf } from '../../../src/core/metadata/commands.ts'
import { openOf } from '../../../src/core/metadata/lookup.ts'
import { apply, emptyState } from '../../../src/core/metadata/machine.ts'
import { decodeSnapshot, encodeSnapshot } from '../../../src/core/metadata/snapshot.ts'
import type { MetadataState, Range, Segment } from '../../../src/core/metadata/types.ts'
import { createTopic, given, node, placement, policy, topic } from './support.ts'

function run<C extends Command>(state: MetadataState, command: C): ResultOf<C['kind']> {
  return apply(state, command, state.appliedIndex + 1).result as ResultOf<C['kind']>
}

function refused(result: { readonly ok: boolean }, code: string): void {
  assert.equal(result.ok ? 'ok' : (result as { code?: string }).code, code)
}

function withTopic(): MetadataState {
  const state = emptyState()
  assert.ok(run(state, createTopic({ policy: policy({ partitions: 2 }) })).ok)
  return state
}

function onlyRange(state: MetadataState): Range {
  const range = state.topics.get(topic(1))?.ranges[0]
  assert.ok(range)
  return range
}

function sealedOne(state: MetadataState): Segment | undefined {
  return onlyRange(state).segments[0]
}

function roll(state: MetadataState, entries: number, tailFrom: number, token: string = 'next') {
  const end = given(onlyRange(state), entries)
  const command = { kind: 'RollSegment', topicId: topic(1), ...end, tailFrom, timeMs: 5 } as const
  return run(state, { ...command, placement: placement(token) })
}

function settle(digest: string, segment: number = 1) {
  return { kind: 'SettleSegment', topicId: topic(1), range: 0, segment, digest } as const
}

test('no replica leaves a sealed segment before it is settled: those who stay may lack its last entries', () => {
  const state = withTopic()
  roll(state, 3, 1)
  const at = { kind: 'ReassignSegment', topicId: topic(1), range: 0, segment: 1, seen: [] } as const
  assert.ok(run(state, { ...at, change: 'add', replica: node(2) }).ok)
  const drop = { ...at, change: 'drop', replica: node(1) } as const
  refused(run(state, drop), 'METADATA_CONFLICT')
  run(state, settle('digest'))
  assert.ok(run(state, drop).ok)
})

test('a roll names who holds the tail of what it seals; settling lets it go and keeps the digest', () => {
  const state = withTopic()
  roll(state, 5, 3)
  const tail = { from: 3, holders: [node(1)], token: 'next' }
  assert.deepEqual([sealedOne(state)?.tail, sealedOne(state)?.digest], [tail, ''])
  assert.ok(run(state, settle('digest')).ok)
  const settled = sealedOne(state)
  assert.deepEqual([settled?.tail, settled?.digest], [undefined, 'digest'])
  assert.deepEqual(run(state, settle('digest')).ok && sealedOne(state), settled)
  refused(run(state, settle('another')), 'METADATA_CONFLICT')
  assert.equal(sealedOne(state)?.digest, 'digest')
})

test('only what is sealed is settled, and by a digest', () => {
  const state = withTopic()
  refused(run(state, settle('digest')), 'METADATA_CONFLICT')
  roll(state, 1, 1)
  refused(run(state, settle('')), 'INTERNAL')
  refused(run(state, settle('digest', 2)), 'METADATA_CONFLICT')
  refused(run(state, settle('digest', 3)), 'METADATA_CONFLICT')
  assert.ok(run(state, settle('digest')).ok)
})

test('a tail lies within what is sealed and has the token of the state beside it; an empty one is none', () => {
  const state = withTopic()
  refused(roll(state, 2, 3), 'INTERNAL')
  refused(roll(state, 2, -1), 'INTERNAL')
  refused(roll(state, 2, 1, ''), 'INTERNAL')
  assert.ok(roll(state, 2, 2).ok)
  assert.equal(sealedOne(state)?.tail, undefined)
})

test('a roll from a log of before there were tails left nothing out', () => {
  const bytes = Buffer.from(ROLL_1, 'hex')
  const command = decodeCommand(bytes)
  assert.ok(command.kind === 'RollSegment')
  assert.deepEqual([command.endEntry, command.tailFrom], [3, 3])
  assert.deepEqual(command.nextOffsets, [3, 3])
  assert.deepEqual(command.placement, placement('t'))
})

test('a change of replicas from a log of before they were compared takes effect whatever they are', () => {
  const state = withTopic()
  roll(state, 3, 1)
  const command = decodeCommand(Buffer.from(REASSIGN_1, 'hex'))
  assert.ok(command.kind === 'ReassignSegment')
  assert.deepEqual([command.change, command.replica, command.seen], ['add', node(2), []])
  assert.ok(run(state, command).ok)
  assert.deepEqual(sealedOne(state)?.replicas, [node(1), node(2)])
})

test('a snapshot of before there were tails is the state that its commands make now', () => {
  const state = emptyState()
  run(state, { kind: 'AddNode', nodeId: node(1) })
  run(state, createTopic({ policy: policy({ partitions: 2 }) }))
  assert.ok(roll(state, 3, 3, 't').ok)
  const old = decodeSnapshot(Buffer.from(SNAPSHOT_2, 'hex'))
  assert.deepEqual(encodeSnapshot(old), encodeSnapshot(state))
  assert.equal(openOf(onlyRange(old))?.segment, 2)
})

/** Bytes as version 1 of the commands and version 2 of the snapshot were written. */
const ROLL_1: string = [
  '0501aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa1000000000000000000000001000000000000000000000003000000020000',
  '0000000000030000000000000003010000000000000000000000000000000100017400086469676573742d7400000000',
  '00000005',
].join('')
const REASSIGN_1: string = [
  '0901aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa10000000000000000000000010000000000000000000000000000000002',
].join('')
const SNAPSHOT_2: string = [
  '000200000000000000030000000000000001000000000200000001000000000000000000000000000000010000000100',
  '00000001aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa100066576656e74730000000000000002000000000000000001000000',
  '000000000100000000000000010200000000240c8400ffffffffffffffff000000004000000000000000000f42400000',
  '00000036ee8000000000001000000100000000000003e800000000000000020000000100000000000200000000000000',
  '000000000000000000000000010000000000000000000000020000000000000000000000020000000000000001000000',
  '000000000301000000000000000000000000000000010000000200000000000000000000000000000000000000000000',
  '03e800000000000000000000000000000002ffffffffffffffff01000000000000000000000000000000010000000200',
  '00000000000003000000000000000300000000000000050000000000017400086469676573742d74',
].join('')
