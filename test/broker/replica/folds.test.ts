// Replicas of a range fold the same entries, and the digest in each roll says to what.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { RangeCopy } from '../../../src/broker/range/copy.ts'
import { RangeState } from '../../../src/core/producers/range-state.ts'
import type { NodeId } from '../../../src/model/ids.ts'
import { A, B, Rig } from './rig.ts'

const EXPIRY_MS = 3_600_000

function copyAt(rig: Rig, id: NodeId): RangeCopy {
  const copy = rig.node(id).broker.runtimes.get(rig.key.topicId)?.copyOfRange(0)
  assert.ok(copy !== undefined)
  return copy
}

function folded(copy: RangeCopy): Uint8Array {
  assert.ok(copy.state !== undefined)
  return copy.state.encodeCommitted()
}

/** Of whom the greatest producer that has expired here is 7, not none. */
function astray(bytes: Uint8Array): RangeState {
  const changed = bytes.slice()
  changed.fill(0, 10, 17)
  changed[17] = 7
  return RangeState.decode(changed, EXPIRY_MS)
}

test('a replica whose fold has gone astray says so at the next roll, and goes on from the one that was staged', async () => {
  await using rig = await Rig.make({ segmentEntries: 2 })
  await rig.produce(A, '0')
  const copy = copyAt(rig, B)
  await rig.until('B knows that it is committed', () => copy.committedEnd(0) === 1)
  const state = astray(folded(copy))
  state.begin(1)
  copy.state = state
  const alarms: string[] = []
  copy.context.log.error = (message) => void alarms.push(message)
  await rig.produce(A, '1')
  await rig.until('the next segment is open', () => copy.key.segment === 2)
  await copy.ensureLoaded()
  assert.deepEqual(folded(copy), folded(copyAt(rig, A)))
  assert.deepEqual(alarms, [
    'a range folded to another state than its holder, and goes on from the one staged',
  ])
})

test('replicas that fold the same go on without it', async () => {
  await using rig = await Rig.make({ segmentEntries: 2 })
  for (const value of ['0', '1']) await rig.produce(A, value)
  for (const copy of [copyAt(rig, A), copyAt(rig, B)]) {
    await rig.until('the next segment is open', () => copy.key.segment === 2)
    assert.notEqual(copy.state, undefined)
  }
})
