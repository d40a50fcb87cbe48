// The rules that keep a range's data, one by one, and then under whatever is heard in whatever order.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { SEGMENT_TIMING } from '../../../src/core/segment/types.ts'
import { CareScript, idOf, nameOf } from './care-script.ts'

const { leaseGraceMs } = SEGMENT_TIMING

function fenced(setup = {}): CareScript {
  const script = new CareScript(setup)
  script.passes(100)
  script.unfit('A', 'restarted')
  return script
}

function names(nodes: readonly string[]): string {
  return nodes.map((node) => nameOf(node as ReturnType<typeof idOf>)).join('')
}

test('an answer of a broker that holds no replica counts for nothing', () => {
  const script = fenced()
  script.answers('D', 9)
  script.answers('A', 2)
  script.answers('B', 2)
  script.answers('C', 2)
  assert.equal(script.last('stage').end, 2)
})

test('an answer before any fence, or from an earlier start, counts for nothing', () => {
  const script = new CareScript()
  script.answers('B', 9)
  script.lives('B', true)
  script.passes(50)
  script.unfit('A', 'restarted')
  script.answers('B', 9, { boot: 1 })
  script.answers('A', 2)
  script.answers('C', 3)
  script.passes(1000)
  assert.equal(script.last('stage').end, 3)
})

test('asked again a replica may have more; what was overtaken on the way does not lower it', () => {
  const script = fenced()
  script.answers('A', 4)
  script.answers('B', 6)
  script.answers('B', 5)
  script.answers('C', 4)
  assert.equal(script.last('stage').end, 6)
  assert.equal(script.last('stage').to, idOf('B'))
})

test('an empty segment has an end: zero, which is not the same as unknown', () => {
  const script = fenced()
  script.passes(2000)
  assert.equal(script.all('stage').length, 0)
  for (const name of ['A', 'B', 'C']) script.answers(name, 0)
  assert.equal(script.last('stage').end, 0)
  script.stored()
  assert.equal(script.last('roll').end, 0)
})

test('a replica that is dead is not waited for, and one that is alive is, for a while', () => {
  const script = fenced()
  script.dies('C')
  script.answers('A', 4)
  script.passes(400)
  assert.equal(script.all('stage').length, 0)
  script.answers('B', 4)
  assert.equal(script.all('stage').length, 1)
})

test('a leader whose lease has run out in silence is not waited for, and one that was heard lately is', () => {
  const script = new CareScript()
  script.passes(100)
  script.silent()
  script.passes(leaseGraceMs)
  assert.equal(script.all('fence').length, 1)
  script.answers('B', 4)
  script.passes(100)
  assert.equal(script.all('stage').length, 0, 'C may have more')
  script.answers('C', 5)
  assert.equal(script.last('stage').end, 5)
  const heard = fenced()
  heard.answers('B', 4)
  heard.answers('C', 5)
  heard.passes(400)
  assert.equal(heard.all('stage').length, 0)
})

test('the tail begins at the greatest high watermark that anyone reported, sure or not', () => {
  const script = fenced()
  script.answers('A', 9, { unsure: 'damage', highWatermark: 5 })
  script.answers('B', 8, { highWatermark: 3 })
  script.answers('C', 7, { highWatermark: 4 })
  assert.equal(script.last('stage').tailFrom, 5)
})

test('a high watermark that is reported late still forbids a lower end', () => {
  const script = fenced()
  script.answers('A', 4)
  script.answers('B', 5)
  script.passes(600)
  assert.equal(script.last('stage').end, 5)
  script.answers('C', 5, { unsure: 'damage', highWatermark: 6 })
  script.stored()
  script.passes(1000)
  assert.equal(script.all('roll').length, 0)
  assert.match(script.care.trouble ?? '', /^damaged/)
})

test('a high watermark that was reported by a replica that is gone still forbids a lower end', () => {
  const script = fenced()
  script.answers('B', 7, { highWatermark: 7 })
  script.dies('B')
  script.answers('A', 5)
  script.answers('C', 5)
  script.passes(1000)
  assert.equal(script.all('roll').length + script.all('stage').length, 0)
})

test('nothing is proposed before all have stored, and nothing for a token that was given up', () => {
  const script = fenced()
  for (const name of ['A', 'B', 'C']) script.answers(name, 3)
  const { token, to } = script.last('stage')
  script.passes(300)
  assert.equal(script.all('roll').length, 0)
  script.lives('C', true)
  script.passes(50)
  script.answers('C', 3)
  assert.notEqual(script.last('stage').token, token)
  const outcome = { nextOffsets: [1], stateDigest: 'x' }
  script.care.staged(to, token, outcome, script.nowMs)
  script.passes(50)
  assert.equal(script.all('roll').length, 0)
})

test('only the holder says that all have stored', () => {
  const script = fenced()
  for (const name of ['A', 'B', 'C']) script.answers(name, 3)
  const { token, to } = script.last('stage')
  const other = idOf(to === idOf('B') ? 'C' : 'B')
  script.care.staged(other, token, { nextOffsets: [1], stateDigest: 'x' }, script.nowMs)
  script.passes(50)
  assert.equal(script.all('roll').length, 0)
})

test('a leader that may hold a lease is waited for', () => {
  const script = new CareScript()
  script.passes(1000)
  script.silent()
  const since = script.nowMs
  script.dies('A')
  script.passes(800)
  script.answers('B', 3)
  script.answers('C', 3)
  script.stored()
  script.passes(leaseGraceMs - (script.nowMs - since) - 50)
  assert.equal(script.all('roll').length, 0)
  script.passes(50)
  assert.equal(script.all('roll').length, 1)
})

test('a fence withholds the lease: no confirmation counts any more', () => {
  const script = new CareScript()
  assert.equal(script.care.withholds, false)
  script.silent()
  script.dies('A')
  script.passes(800)
  assert.equal(script.all('fence').length > 0, true)
  assert.equal(script.care.withholds, true)
  script.heard()
  script.passes(100)
  script.answers('B', 3)
  script.answers('C', 3)
  script.stored()
  script.passes(leaseGraceMs - script.nowMs)
  assert.equal(script.all('roll').length, 1)
  script.commits()
  assert.equal(script.care.withholds, false)
})

test('a leader with a damaged disk may still lead: its lease is waited for', () => {
  const script = new CareScript()
  script.passes(500)
  script.unfit('A', 'damaged')
  script.answers('B', 3)
  script.answers('C', 3)
  script.passes(600)
  script.stored()
  assert.equal(script.all('roll').length, 0)
})

test('a new start of the leader ends its lease, once it was heard in the one before', () => {
  const script = new CareScript()
  script.passes(500)
  script.dies('A')
  script.lives('A', true)
  script.passes(50)
  script.answers('B', 3)
  script.answers('C', 3)
  script.answers('A', 3)
  script.stored()
  assert.equal(script.all('roll').length, 1)
})

test('what a leader gave in its earlier start is not relied on', () => {
  const script = new CareScript()
  script.passes(500)
  script.gives('A', { end: 9, highWatermark: 2 })
  script.lives('A', true)
  script.passes(50)
  script.answers('A', 3)
  script.answers('B', 4)
  script.answers('C', 4)
  assert.equal(script.last('stage').end, 4)
  assert.notEqual(script.last('stage').to, idOf('A'))
})

test('an end is taken from the leader alone, and under the present attempt', () => {
  const script = new CareScript()
  script.passes(100)
  script.gives('B', { end: 9 })
  script.gives('A', { end: 9, attempt: 1 })
  script.passes(200)
  assert.equal(script.all('stage').length, 0)
})

test('while a roll may yet be applied, no other end is proposed under that attempt', () => {
  const script = fenced()
  for (const name of ['A', 'B', 'C']) script.answers(name, 3)
  script.stored()
  const first = script.last('roll')
  script.outcome('unknown')
  for (const name of ['A', 'B', 'C']) script.lives(name, true)
  for (const name of ['A', 'B', 'C']) script.answers(name, 4)
  script.passes(20_000)
  for (const roll of script.all('roll')) assert.deepEqual(roll, first)
  assert.equal(script.last('cancel').attempt, 0)
  script.commits()
  script.stored()
  assert.equal(script.last('roll').attempt, 1)
  assert.equal(script.last('roll').end, 4)
})

test('a proposal that is refused is followed by another with another token', () => {
  const script = fenced()
  for (const name of ['A', 'B', 'C']) script.answers(name, 3)
  script.stored()
  script.outcome('refused')
  script.passes(500)
  script.stored()
  const [first, second] = script.all('roll')
  assert.notEqual(first?.placement.token, second?.placement.token)
})

test('no successor opens on fewer brokers than min_insync_replicas', () => {
  const script = new CareScript({ brokers: 3, minInsync: 3 })
  script.passes(100)
  script.dies('C')
  script.passes(500)
  assert.equal(script.all('ask-end').length, 0)
  script.gives('A', { end: 3 }, 'C')
  assert.equal(script.all('stage').length, 0)
  assert.equal(script.last('end-refused').code, 'NOT_ENOUGH_REPLICAS')
  assert.match(script.care.trouble ?? '', /^too few brokers/)
})

test('the leader and the followers that are well stay, and only the empty seat is filled', () => {
  for (const failed of ['B', 'C']) {
    const script = new CareScript({ brokers: 6 })
    script.passes(100)
    script.gives('A', { end: 3 }, failed)
    assert.equal(names(script.last('stage').replicas), failed === 'B' ? 'ACD' : 'ABD')
  }
})

test('of those that failed lately some are taken rather than too few', () => {
  const script = new CareScript({ brokers: 3, minInsync: 3 })
  script.passes(100)
  script.gives('A', { end: 3 }, 'B')
  assert.equal(names(script.last('stage').replicas).split('').sort().join(''), 'ABC')
})

test('who failed longest ago is taken first when too few are left: the one that fails now is not tried again and again', () => {
  const script = new CareScript({ brokers: 3 })
  script.passes(100)
  script.gives('A', { end: 3 }, 'C')
  assert.equal(names(script.last('stage').replicas), 'AB')
  script.notStored('B')
  script.passes(1000)
  assert.equal(names(script.last('stage').replicas), 'AC')
})

test('a range that is well is idle, and one under-replicated with nobody to help it as well', () => {
  const script = new CareScript()
  script.passes(100)
  assert.equal(script.care.idle, true)
  script.drains('C')
  script.passes(100)
  assert.equal(script.care.idle, false)
  assert.equal(script.last('ask-end').why, 'drained')
  const alone = new CareScript({ brokers: 2, replicas: 'AB' })
  alone.passes(100)
  assert.equal(alone.care.idle, true)
  assert.match(alone.care.trouble ?? '', /^under-replicated/)
  alone.joins('C')
  alone.passes(100)
  assert.equal(alone.care.idle, false)
})

test('a flapping follower is left out for longer each time', () => {
  const script = new CareScript({ brokers: 3 })
  const pauses: number[] = []
  script.passes(100)
  for (let round = 0; round < 4; round++) {
    script.gives('A', { end: 3 }, 'C')
    script.stored()
    script.commits()
    const since = script.nowMs
    assert.equal(names(script.view.segment.replicas), 'AB')
    const asked = script.all('ask-end').length
    while (script.all('ask-end').length === asked) script.passes(100)
    pauses.push(script.nowMs - since)
    script.gives('A', { end: 3, why: 'under-replicated' })
    script.stored()
    script.commits()
    script.passes(500)
  }
  assert.ok((pauses[0] as number) > 5000 && (pauses[1] as number) > (pauses[0] as number))
  assert.ok((pauses.at(-1) as number) < 15_000)
})

test('a sure answer of a broker that is lost counts for nothing until it is back', () => {
  const script = fenced()
  script.answers('B', 5)
  script.dies('B')
  script.answers('A', 9, { unsure: 'damage' })
  script.answers('C', 9, { unsure: 'damage' })
  script.passes(2000)
  assert.equal(script.all('stage').length, 0)
  assert.match(script.care.trouble ?? '', /^unavailable/)
  script.lives('B')
  script.passes(50)
  assert.equal(script.last('stage').end, 5)
})

test('an operator may end a segment of which nobody is sure, and is told what that loses', () => {
  const script = fenced()
  assert.equal(script.care.forceable, undefined)
  script.answers('A', 9, { unsure: 'damage', highWatermark: 7 })
  script.dies('B')
  script.dies('C')
  script.passes(1000)
  assert.deepEqual(script.care.forceable, {
    answers: [{ node: idOf('A'), end: 9, unsure: 'damage' }],
    silent: [idOf('B'), idOf('C')],
    highWatermark: 7,
  })
  assert.match(script.care.force(10) ?? '', /no replica .* has 10 entries/)
  assert.equal(script.all('stage').length, 0)
  assert.equal(script.care.force(6), undefined)
  script.passes(50)
  const { end, tailFrom, to } = script.last('stage')
  assert.deepEqual([end, tailFrom, to], [6, 6, idOf('A')])
  assert.match(
    script.all('log').at(-2)?.text ?? '',
    /at least 1 entries that were readable are lost/,
  )
  script.stored()
  assert.equal(script.last('roll').why, 'forced')
})

test('an end is not forced when a sure answer is there, or comes while it is staged', () => {
  const script = fenced()
  script.answers('A', 9, { unsure: 'damage', highWatermark: 7 })
  script.dies('B')
  script.dies('C')
  script.passes(1000)
  assert.equal(script.care.force(6), undefined)
  script.passes(50)
  script.lives('B')
  script.answers('B', 8)
  script.stored()
  script.passes(50)
  assert.equal(script.all('roll').length, 0)
  assert.equal(script.care.forceable, undefined)
  assert.match(script.care.force(6) ?? '', /can be found without that/)
  script.answers('C', 8)
  assert.equal(script.last('stage').end, 8)
})

test('an operator may end a segment of which something that was readable is gone', () => {
  const script = fenced()
  script.answers('A', 4, { unsure: 'damage', highWatermark: 7 })
  script.answers('B', 5)
  script.answers('C', 5)
  assert.match(script.care.trouble ?? '', /^damaged/)
  assert.equal(script.care.forceable?.answers.length, 3)
  assert.equal(script.care.force(5), undefined)
  script.passes(50)
  const { end, to } = script.last('stage')
  assert.deepEqual([end, to], [5, idOf('B')])
  script.stored()
  assert.equal(script.last('roll').why, 'forced')
})

test('a follower that an earlier coordinator has fenced is well: it may be given the next segment at once', () => {
  const script = new CareScript({ brokers: 4 })
  script.passes(200)
  script.unfit('B', 'fenced')
  script.gives('A', { end: 3, why: 'follower-failed' }, 'B')
  assert.equal(names(script.last('stage').replicas), 'ABC')
})

test('who has not answered the fence gets nothing of the successor, nor soon after, though nobody holds it dead yet', () => {
  const script = new CareScript({ brokers: 3 })
  script.passes(100)
  script.silent()
  script.passes(2200)
  script.answers('B', 3)
  script.answers('C', 4)
  script.passes(600)
  assert.equal(names(script.last('stage').replicas), 'CB')
  script.stored()
  script.commits()
  script.passes(6000)
  assert.equal(script.all('ask-end').length, 0)
  script.passes(4000)
  assert.equal(script.last('ask-end').why, 'under-replicated')
})

test('the outcome of an earlier proposal says nothing of the present one', () => {
  const script = fenced()
  for (const name of ['A', 'B', 'C']) script.answers(name, 3)
  script.stored()
  const first = script.last('roll')
  script.outcome('unknown')
  script.lives('B', true)
  script.passes(500)
  assert.equal(script.all('cancel').length, 1)
  script.care.proposed('refused', script.nowMs, first)
  for (const name of ['A', 'B', 'C']) script.answers(name, 3)
  script.passes(200)
  assert.equal(script.all('stage').length, 1)
})

test('a leader that takes its end back again and again, since it cannot hand on what it has, is replaced', () => {
  const script = new CareScript()
  script.gives('A', { end: 3 }, 'B')
  script.notStored('C')
  for (let attempt = 0; attempt < 2; attempt++) {
    for (let i = 0; i < 9; i++) {
      script.gives('A', { end: 3 }, 'B')
      script.passes(500)
    }
    assert.equal(script.all('fence').length, 0)
    script.apply({ ...script.view.segment, attempt: attempt + 1 })
  }
  script.gives('A', { end: 3 }, 'B')
  assert.notEqual(script.all('fence').length, 0)
  for (const name of ['A', 'B', 'C']) script.answers(name, 3)
  script.passes(1000)
  // It said that B had failed, and C. The successor goes without it, and not without them.
  const { to, replicas } = script.last('stage')
  assert.notEqual(to, idOf('A'))
  assert.deepEqual(
    replicas
      .map((node) => nameOf(node))
      .toSorted()
      .slice(0, 2),
    ['B', 'C'],
  )
})

test('of two coordinators the roll that commits first holds: the other takes it for its own, and begins with the successor', () => {
  const [first, second] = [fenced(), fenced()]
  for (const script of [first, second]) for (const name of ['A', 'B', 'C']) script.answers(name, 3)
  first.stored()
  second.stored()
  first.commits()
  second.apply(first.view.segment)
  second.outcome('refused')
  second.passes(10_000)
  assert.equal(second.all('roll').length, 1)
  assert.equal(second.care.withholds, false)
  assert.equal(second.care.idle, true)
})
