// What a leader says of a partition's end when another broker may have gone on.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { EastGuardError } from '../../../src/base/errors.ts'
import type { Cursor } from '../../../src/broker/read/cursor.ts'
import { type FoundOffset, latestOffset, offsetByTime } from '../../../src/broker/read/offsets.ts'
import { nodeCompute } from '../../../src/io/compute/node-compute.ts'
import { A, B, type Node, Rig } from '../replica/rig.ts'

function cursorAt(rig: Rig, { broker }: Node): Cursor {
  const cursor = broker.cursor(rig.key.topicId, 0, 0)
  assert.ok(!(cursor instanceof EastGuardError))
  return cursor
}

function end(rig: Rig, node: Node): Promise<FoundOffset> {
  return latestOffset(cursorAt(rig, node))
}

/** A is the only replica of the open segment, with one entry, and has restarted. */
async function aloneAndRestarted(rig: Rig): Promise<Node> {
  rig.placement = [A]
  rig.node(A).replicas.giveEndAsked(rig.key, 0, 'policy')
  await rig.until('A is alone', () => rig.segments().length === 2)
  assert.equal((await rig.produce(A, '0')).offset, 0)
  const { store } = rig.node(A)
  await rig.stop(A)
  return rig.start(A, store, 2)
}

/** B leads now, and has taken more. */
async function goOnAtB(rig: Rig): Promise<void> {
  rig.placement = [B]
  rig.roll(A, rig.key, 1, 1)
  await rig.until('B goes on', () => rig.segments().length === 3)
  await rig.produce(B, '1')
}

test('the only replica of a segment that has restarted tells its end when it has learned that nobody goes on', async () => {
  await using rig = await Rig.make({ minInsyncReplicas: 1 })
  const again = await aloneAndRestarted(rig)
  const { metadata } = again.broker.parts
  let learned = 0
  metadata.fresh = async () => {
    learned++
  }
  assert.equal((await end(rig, again)).offset, 1)
  assert.equal(learned, 1)
  metadata.fresh = () => goOnAtB(rig)
  await assert.rejects(end(rig, again), { code: 'NOT_REPLICA' })
})

test('nor does it say that there is no record so young before it has learned that', async () => {
  await using rig = await Rig.make({ minInsyncReplicas: 1 })
  const again = await aloneAndRestarted(rig)
  again.broker.parts.metadata.fresh = () => goOnAtB(rig)
  const found = await offsetByTime(nodeCompute, cursorAt(rig, again), Number.MAX_SAFE_INTEGER)
  assert.equal(found.offset, 1)
})

test('the only replica of a segment that has restarted says of nobody that he is out of range', async () => {
  await using rig = await Rig.make({ minInsyncReplicas: 1 })
  await aloneAndRestarted(rig)
  assert.deepEqual(await rig.read(A, 2), [])
})
