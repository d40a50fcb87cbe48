// How long the coordinator waits for what is being staged.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { SEGMENT_TIMING } from '../../../src/core/segment/types.ts'
import { CareScript } from './care-script.ts'

const { stageTimeoutMs } = SEGMENT_TIMING

function fenced(): CareScript {
  const script = new CareScript()
  script.passes(100)
  script.unfit('A', 'restarted')
  return script
}

test('a holder that needs long gets longer each time, when there is no other', () => {
  const script = fenced()
  script.answers('A', 5)
  script.answers('B', 1, { unsure: 'damage' })
  script.answers('C', 1, { unsure: 'damage' })
  const begun: number[] = []
  while (script.nowMs < 90_000) {
    const before = script.all('stage').at(-1)?.token
    script.passes(50)
    if (script.all('stage').at(-1)?.token !== before) begun.push(script.nowMs)
  }
  const lasted = begun.slice(1).map((at, i) => Math.floor((at - (begun[i] as number)) / 5000))
  assert.deepEqual(lasted.slice(0, 4), [1, 2, 4, 8])
})

test('a staging that moves is waited for, however long it takes; others begin beside it', () => {
  const script = fenced()
  for (const name of ['A', 'B', 'C']) script.answers(name, 5)
  const { to, token } = script.last('stage')
  const moves = (moved: number): void => script.care.staged(to, token, { moved }, script.nowMs)
  for (let parts = 1; parts <= 30; parts++) {
    script.passes(stageTimeoutMs - 1000)
    moves(parts * 256)
    assert.equal(script.last('stage').token, token)
    assert.equal(script.care.stages, parts === 1)
  }
  // The same again is no more than before.
  for (let i = 0; i < 9; i++) {
    script.passes(500)
    moves(30 * 256)
  }
  assert.equal(script.last('stage').token, token)
  script.passes(600)
  assert.notEqual(script.last('stage').token, token)
})

test('what has moved is waited for as long as a disk may need for it', () => {
  const script = fenced()
  for (const name of ['A', 'B', 'C']) script.answers(name, 5)
  const { to, token } = script.last('stage')
  script.care.staged(to, token, { moved: 40 * 1024 * 1024 }, script.nowMs)
  script.passes(stageTimeoutMs + 10_000)
  assert.equal(script.last('stage').token, token)
  script.passes(500)
  assert.notEqual(script.last('stage').token, token)
})
