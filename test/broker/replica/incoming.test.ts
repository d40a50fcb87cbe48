// What a follower says to its leader finds no room on the link.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { A, B, Rig } from './rig.ts'

test('a follower whose link has no room for its answer gives it later: nothing is asked twice on a connection', async () => {
  await using rig = await Rig.make()
  await rig.produce(A, '0')
  const links = rig.node(B).broker.parts.data
  assert.ok(links !== undefined)
  const send = links.send.bind(links)
  let refused = 0
  links.send = (to, message) => {
    if (message.kind !== 'opened' || refused === 3) return send(to, message)
    refused++
    return false
  }
  rig.node(A).replicas.giveEndAsked(rig.key, 0, 'policy')
  await rig.until('the successor is open', () => rig.segments().length === 2)
  assert.equal((await rig.produce(A, '1')).offset, 1)
  assert.equal(refused, 3)
  assert.equal(rig.segments().length, 2)
})
