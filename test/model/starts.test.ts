import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import fc from 'fast-check'
import {
  inPast,
  newestStart,
  STARTS_MAX,
  type Start,
  type Starts,
  withStart,
} from '../../src/model/starts.ts'

/** `5a 6b`: start 5 has the id aaaa..., start 6 the id bbbb... */
function starts(text: string): Starts {
  const [first, ...later] = text.split(' ').map((word) => {
    const [bootCount, letter = ''] = [Number.parseInt(word, 10), word.at(-1)]
    return { bootCount, id: letter.repeat(16) }
  })
  assert.ok(first !== undefined)
  return [first, ...later]
}

describe('a start that was met', () => {
  const cases: readonly (readonly [string, string, boolean, string])[] = [
    ['7a', '7a', true, 'is the one that speaks'],
    ['7a', '5a 6a 7a', true, 'is the one that speaks, and others were before'],
    ['5a', '5a 6a 7a', true, 'is the first that is told'],
    ['6a', '5a 6a 7a', true, 'is one before it'],
    ['7a', '5a 6a', false, 'is later than all'],
    ['7a', '5a 6a 7b', false, 'has the number of the one that speaks and another id'],
    ['7a', '7b', false, 'has the number of the only one that is told and another id'],
    ['7a', '6a 7b 8b 9b', false, 'has the number of one before and another id'],
    ['7a', '7b 8b 9b', false, 'has the number of the first that is told and another id'],
    ['7a', '6a 8a', false, 'falls into a gap of what is told'],
    ['7a', '8b 9b', true, 'is further back than what is told: its number alone decides'],
    ['1a', '8b', true, 'is much further back'],
  ]
  for (const [met, told, past, what] of cases) {
    it(`${past ? 'is in the past' : 'is not in the past'} when it ${what}`, () => {
      assert.equal(inPast(newestStart(starts(met)), starts(told)), past)
    })
  }
})

describe('the starts of a directory and of its copies', () => {
  let drawn = 0
  function startAgain(before: readonly Start[], times: number): readonly Start[] {
    let all = before
    for (let i = 0; i < times; i++) {
      const bootCount = (all.at(-1)?.bootCount ?? 0) + 1
      drawn++
      all = withStart(all, { bootCount, id: drawn.toString(16).padStart(16, '0') })
      assert.ok(all.length === Math.min(bootCount, STARTS_MAX))
    }
    return all
  }
  const told = (all: readonly Start[]): Starts => all as unknown as Starts

  it('tell them apart: nobody who has met a later start takes a copy, unless it has started too often since', () => {
    const holds = fc.property(
      fc.nat(80),
      fc.integer({ min: 1, max: 80 }),
      fc.integer({ min: 1, max: STARTS_MAX }),
      (before, since, ofCopy) => {
        const common = startAgain([], before)
        const original = startAgain(common, since)
        const copy = startAgain(common, ofCopy)
        // Of those after the copy was made each may be the last that somebody has met, and none is in the copy's past.
        for (const met of original.filter(({ bootCount }) => bootCount > before)) {
          assert.ok(!inPast(met, told(copy)))
        }
        for (const met of common) assert.ok(inPast(met, told(copy)))
      },
    )
    fc.assert(holds)
  })

  it('never speak against a directory that was not copied', () => {
    const holds = fc.property(fc.integer({ min: 1, max: 80 }), fc.nat(80), (before, since) => {
      const then = startAgain([], before)
      const now = startAgain(then, since)
      for (const met of then) assert.ok(inPast(met, told(now)))
    })
    fc.assert(holds)
  })
})
