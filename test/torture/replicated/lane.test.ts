import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Lane } from './lane.ts'

/** Three records, acknowledged in their places. */
function lane(firm: boolean = true): Lane {
  const made = new Lane('t', 0, 0, firm)
  for (let i = 0; i < 3; i++) made.acknowledge(made.send(), i)
  return made
}

/** What is said when somebody reads these numbers from offset 0 on. */
function judged(made: Lane, numbers: readonly (number | undefined)[]): string {
  for (const [offset, number] of numbers.entries()) made.read('r', offset, number, offset)
  made.ended('r', numbers.length, made.certain)
  return made.violations.join('\n')
}

test('what was acknowledged is read by several readers, and nothing is said', () => {
  const made = lane()
  assert.equal(judged(made, [0, 1, 2]), '')
  assert.equal(judged(made, [0, 1, 2]), '')
})

test('a lost record, one in another place, a stranger and a hole are found', () => {
  assert.match(judged(lane(), [0, 1]), /only below offset 2, acknowledged is all below 3/)
  assert.match(judged(lane(), [0, 2, 1]), /offset 1: r read record 2/)
  assert.match(judged(lane(), [0, 1, 2, 3]), /never sent/)
  assert.match(judged(lane(), [undefined, 1, 2]), /never sent/)
  const holed = lane()
  holed.read('r', 1, 1, 0)
  assert.match(holed.violations.join(), /expected offset 0/)
})

test('a record acknowledged at another offset than its own, or refused, is found', () => {
  const made = new Lane('t', 0, 0, true)
  made.acknowledge(made.send(), 1)
  assert.match(made.violations.join(), /record 0 was acknowledged here/)
  made.failed(7, new Error('no'))
  assert.match(made.violations.join(), /record 7 was refused/)
})

test('of a loose lane acknowledged records may be lost and doubled, but never change once they were read', () => {
  assert.equal(judged(lane(false), [0, 1]), '')
  assert.equal(judged(lane(false), [0, 0, 1]), '')
  const changed = lane(false)
  judged(changed, [0, 1])
  assert.match(judged(changed, [0, 2]), /read record 2, where 1 was read before/)
  const shorter = lane(false)
  judged(shorter, [0, 1])
  assert.match(judged(shorter, [0]), /only below offset 1/)
})
