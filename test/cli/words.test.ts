import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { quoteWord, splitWords, UnfinishedQuote } from '../../src/cli/shell/words.ts'

test('quoted words come back as they were, whatever is in them', () => {
  fc.assert(
    fc.property(fc.array(fc.string({ unit: 'grapheme' })), (words) => {
      assert.deepEqual(splitWords(words.map(quoteWord).join('  ')), words)
    }),
  )
})

test('quotes and backslashes mean what a shell means by them', () => {
  assert.deepEqual(splitWords(`publish t user123 "Hello EastGuard!"`), [
    'publish',
    't',
    'user123',
    'Hello EastGuard!',
  ])
  assert.deepEqual(splitWords(`a"b"'c' '' "x\\"y\\z" p\\ q`), ['abc', '', 'x"y\\z', 'p q'])
  assert.deepEqual(splitWords('  list-topics  # all of them'), ['list-topics'])
  assert.deepEqual(splitWords('a#b'), ['a#b'])
})

test('a quote that is not closed is told', () => {
  for (const line of [`publish t k "open`, `it's`, 'end\\']) {
    assert.throws(() => splitWords(line), UnfinishedQuote)
  }
})
