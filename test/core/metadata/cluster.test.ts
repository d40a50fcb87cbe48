import assert from 'node:assert/strict'
import { test } from 'node:test'
import { decodeCommand, encodeCommand } from '../../../src/core/metadata/command-codec.ts'
import type { Command } from '../../../src/core/metadata/commands.ts'
import { apply, emptyState } from '../../../src/core/metadata/machine.ts'
import { decodeSnapshot, encodeSnapshot } from '../../../src/core/metadata/snapshot.ts'
import { clusterId, nodeId } from '../../../src/model/ids.ts'

const A = nodeId('a'.repeat(32))
const B = nodeId('b'.repeat(32))
const CLUSTER = clusterId('c'.repeat(32))
const FOUND: Command = { kind: 'FoundCluster', clusterId: CLUSTER, shards: 8, timeMs: 5 }

function machine(): {
  readonly state: ReturnType<typeof emptyState>
  readonly run: (c: Command) => unknown
} {
  const state = emptyState()
  return {
    state,
    run: (command) => {
      const exact = decodeCommand(encodeCommand(command))
      assert.deepEqual(exact, command)
      const { result } = apply(state, exact, state.appliedIndex + 1)
      return result.ok ? result.answer : result.code
    },
  }
}

test('a cluster is founded once, and told so again; another is refused', () => {
  const { state, run } = machine()
  assert.deepEqual(run(FOUND), {})
  assert.deepEqual(run({ ...FOUND, timeMs: 9 }), {})
  assert.equal(run({ ...FOUND, shards: 16 }), 'METADATA_CONFLICT')
  assert.deepEqual(state.cluster, { clusterId: CLUSTER, shards: 8, foundedAtMs: 5 })
})

test('a node has one number for ever, and nobody else gets it', () => {
  const { run } = machine()
  assert.deepEqual(run({ kind: 'AddNode', nodeId: A }), { number: 1 })
  assert.deepEqual(run({ kind: 'AddNode', nodeId: B }), { number: 2 })
  assert.deepEqual(run({ kind: 'AddNode', nodeId: A }), { number: 1 })
})

test('a node is drained, comes back, and is removed for good', () => {
  const { state, run } = machine()
  assert.equal(run({ kind: 'SetNodeRole', nodeId: A, role: 'draining' }), 'UNKNOWN_BROKER')
  run({ kind: 'AddNode', nodeId: A })
  for (const role of ['draining', 'member', 'removed', 'removed'] as const) {
    assert.deepEqual(run({ kind: 'SetNodeRole', nodeId: A, role }), { role })
  }
  assert.equal(run({ kind: 'SetNodeRole', nodeId: A, role: 'member' }), 'METADATA_CONFLICT')
  assert.deepEqual(run({ kind: 'AddNode', nodeId: A }), { number: 1 })
  assert.equal(state.nodes.get(A)?.role, 'removed')
})

test('all of it is in the snapshot', () => {
  const { state, run } = machine()
  run(FOUND)
  run({ kind: 'AddNode', nodeId: A })
  run({ kind: 'AddNode', nodeId: B })
  run({ kind: 'SetNodeRole', nodeId: B, role: 'draining' })
  assert.deepEqual(decodeSnapshot(encodeSnapshot(state)), state)
})
