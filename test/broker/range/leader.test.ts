// When the leader of a range ends its segment.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { A, Rig } from '../replica/rig.ts'

test('a full segment whose end was taken back takes more for a while before it is ended again', async () => {
  await using rig = await Rig.make({ segmentEntries: 2 })
  rig.placement = []
  const attempts = (): number => new Set(rig.given.map(({ attempt }) => attempt)).size
  await Promise.all([rig.produce(A, '0'), rig.produce(A, '1')])
  await rig.until('it gives an end', () => attempts() === 1)
  const { topicId, range, segment } = rig.key
  await rig.metadata.propose({ kind: 'CancelEnd', topicId, range, segment, attempt: 0 })
  for (let i = 2; i < 10; i++) assert.equal((await rig.produce(A, `${i}`)).offset, i)
  assert.equal(attempts(), 1)
  await rig.until('it gives another', () => {
    void rig.produce(A, 'more')
    return attempts() === 2
  })
})
