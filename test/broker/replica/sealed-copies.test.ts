// Copies of sealed segments: what is a proof of one, and what becomes of a damaged one.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { MemoryLog } from '../support/memory-store.ts'
import { A, B, Rig } from './rig.ts'

test('a damaged copy of a sealed segment is thrown away and copied anew', async () => {
  await using rig = await Rig.make({ segmentEntries: 2 })
  for (let i = 0; i < 3; i++) await rig.produce(A, `${i}`)
  const key = { ...rig.key, segment: 1 }
  const log = rig.node(B).store.find(key)
  assert.ok(log !== undefined)
  log.damage = 'a bit has flipped'
  assert.equal((await rig.node(B).replicas.inspect(key)).kind, 'damaged')
  await rig.until('B is whole', async () => {
    const answer = await rig.node(B).replicas.inspect(key)
    return answer.kind === 'whole'
  })
  assert.deepEqual(await rig.node(B).replicas.inspect(key), await rig.node(A).replicas.inspect(key))
})

test('what is copied is no proof before it is durable: another copy may go for it', async () => {
  await using rig = await Rig.make({ segmentEntries: 2 })
  for (let i = 0; i < 3; i++) await rig.produce(A, `${i}`)
  const { replicas, store } = rig.node(B)
  const key = { ...rig.key, segment: 1 }
  const log = store.find(key)
  assert.ok(log instanceof MemoryLog)
  await rig.until('B is whole', async () => (await replicas.inspect(key)).kind === 'whole')
  log.durableEnd = 1
  assert.deepEqual(await replicas.inspect(key), { kind: 'part', end: 1 })
})

test('who meets damage in a sealed segment is sent to others, and the copy is mended', async () => {
  await using rig = await Rig.make({ segmentEntries: 2 })
  for (let i = 0; i < 3; i++) await rig.produce(A, `${i}`)
  await rig.until('B is up to date', async () => (await rig.read(B)).length === 3)
  const log = rig.node(B).store.find({ ...rig.key, segment: 1 })
  assert.ok(log !== undefined)
  log.damage = 'a bit has flipped'
  assert.equal(await rig.read(B), 'NOT_REPLICA')
  await rig.until('B is whole', async () => (await rig.read(B)).length === 3)
})
