import assert from 'node:assert/strict'
import { it } from 'node:test'
import { checkTopicName, isSystemTopic, topicNameFault } from '../../src/model/topic-name.ts'

it('topic names of letters, digits, dots, underscores and hyphens are allowed', () => {
  for (const name of ['a', 'A-z_0.9', '...', 'x'.repeat(249)]) {
    assert.equal(topicNameFault(name), undefined, name)
  }
})

it('any other name is refused with what is wrong', () => {
  const cases: readonly (readonly [string, RegExp])[] = [
    ['', /empty/],
    ['.', /may not be/],
    ['..', /may not be/],
    ['x'.repeat(250), /250/],
    ['a b', /other characters/],
    ['a/b', /other characters/],
    ['ä', /other characters/],
    ['a\n', /other characters/],
  ]
  for (const [name, message] of cases) {
    assert.throws(
      () => {
        checkTopicName(name)
      },
      { code: 'INVALID_TOPIC_NAME', message },
    )
  }
})

it('system topics are known by their name', () => {
  assert.equal(isSystemTopic('__eastguard_offsets'), true)
  assert.equal(isSystemTopic('eastguard'), false)
})
