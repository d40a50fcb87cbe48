// What a broker says of its replicas to coordinators.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { A, B, C, Rig } from './rig.ts'

test('a copy that a broker is about to give up is not said to be whole: another might be given up for it', async () => {
  await using rig = await Rig.make({ segmentEntries: 1 })
  await rig.produce(A, '0')
  await rig.until('the next segment is open', () => rig.segments().length === 2)
  const segment = { topicId: rig.key.topicId, range: 0, segment: 1 }
  const answer = await rig.node(B).replicas.inspect(segment)
  assert.ok(answer.kind === 'whole')
  const { digest } = answer
  let learn = (): void => {}
  rig.node(A).broker.parts.metadata.fresh = () => {
    return new Promise((resolve) => {
      learn = resolve
    })
  }
  await rig.metadata.propose({ kind: 'SettleSegment', ...segment, digest })
  const reassign = { kind: 'ReassignSegment', ...segment, replica: A, seen: [] } as const
  assert.ok((await rig.metadata.propose({ ...reassign, change: 'drop' })).ok)
  await assert.rejects(rig.node(A).replicas.inspect(segment), { code: 'METADATA_CONFLICT' })
  assert.ok((await rig.metadata.propose({ ...reassign, change: 'add' })).ok)
  learn()
  assert.deepEqual(await rig.node(A).replicas.inspect(segment), answer)
  assert.deepEqual(rig.segments()[0]?.replicas, [B, C, A])
})
