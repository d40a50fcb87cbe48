// What is damaged, or dropped while it is searched, is no answer to who looks for a time.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { EastGuardError } from '../../../src/base/errors.ts'
import type { SegmentKey } from '../../../src/model/segment-key.ts'
import { A, Rig } from '../replica/rig.ts'
import type { MemoryLog } from '../support/memory-store.ts'

/** So many sealed segments with one record each, and an open one. */
async function sealed(segments: number): Promise<Rig> {
  const rig = await Rig.make({ segmentEntries: 1 })
  for (let i = 0; i < segments; i++) {
    await rig.produce(A, `${i}`)
    await rig.until('the next segment is open', () => rig.segments().length === i + 2)
  }
  return rig
}

function logOf(rig: Rig, segment: number): MemoryLog {
  const log = rig.node(A).store.find({ ...rig.key, segment })
  assert.ok(log !== undefined)
  return log
}

async function drop(rig: Rig, belowSegment: number): Promise<void> {
  const { topicId, range } = rig.key
  await rig.metadata.propose({ kind: 'DropSegments', topicId, range, belowSegment })
  const last = { ...rig.key, segment: belowSegment - 1 }
  await rig.until('it is dropped', () => rig.node(A).store.find(last) === undefined)
}

test('who looks for a time where a segment turns out to be damaged is sent to others, and it is mended', async () => {
  await using rig = await sealed(1)
  const log = logOf(rig, 1)
  log.readByTime = () => Promise.reject(new EastGuardError('DAMAGED', 'a bad block'))
  const { broker } = rig.node(A)
  const mended: SegmentKey[] = []
  broker['context'].damaged = (key) => mended.push(key)
  await assert.rejects(broker.findOffset(rig.key.topicId, 0, 0), { code: 'NOT_REPLICA' })
  assert.deepEqual(mended, [log.key])
})

test('a segment that is dropped while it is searched for a time does not end the search', async () => {
  await using rig = await sealed(2)
  logOf(rig, 1).readByTime = async () => {
    await drop(rig, 2)
    throw new EastGuardError('OFFSET_OUT_OF_RANGE', 'segment 1 of range 0 was dropped')
  }
  assert.equal((await rig.node(A).broker.findOffset(rig.key.topicId, 0, 0)).offset, 1)
})

test('nor does one that is dropped while another is searched', async () => {
  await using rig = await sealed(3)
  logOf(rig, 1).readByTime = async () => {
    await drop(rig, 3)
    return undefined
  }
  assert.equal((await rig.node(A).broker.findOffset(rig.key.topicId, 0, 0)).offset, 2)
})
