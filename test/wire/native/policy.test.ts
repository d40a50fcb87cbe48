import assert from 'node:assert/strict'
import { it } from 'node:test'
import { ByteReader, ByteWriter, Truncated } from '../../../src/base/cursor.ts'
import { POLICY_DEFAULTS, type TopicPolicy } from '../../../src/model/policy.ts'
import { policyTexts } from '../../../src/model/policy-keys.ts'
import { readPolicy, readWholePolicy } from '../../../src/wire/native/policy.ts'

const WHOLE: TopicPolicy = { ...POLICY_DEFAULTS, replicationFactor: 1, minInsyncReplicas: 1 }

function reader(texts: readonly (readonly [string, string])[]): ByteReader {
  const w = new ByteWriter().u32(texts.length)
  for (const [key, value] of texts) w.text(key).text(value)
  return new ByteReader(w.finish())
}

it('a key from the future is refused in a request and passed over in a response', () => {
  const texts = [['colour', 'red'] as const, ...policyTexts(WHOLE)]
  assert.throws(() => readPolicy(reader(texts)), { code: 'INVALID_POLICY', message: /colour/ })
  assert.deepEqual(readWholePolicy(reader(texts)), WHOLE)
})

it('a whole policy lacks no key', () => {
  assert.throws(() => readWholePolicy(reader(policyTexts(WHOLE).slice(1))), Truncated)
})

it('a key that is given twice is malformed', () => {
  const texts = [['tier', 'low'] as const, ['tier', 'critical'] as const]
  assert.throws(() => readPolicy(reader(texts)), Truncated)
})
