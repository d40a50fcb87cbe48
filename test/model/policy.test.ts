import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { MIB, POLICY_DEFAULTS, type TopicPolicy } from '../../src/model/policy.ts'
import { checkPolicy } from '../../src/model/policy-check.ts'
import { POLICY_KEYS, parsePolicy, policyTexts } from '../../src/model/policy-keys.ts'

const GOOD: TopicPolicy = { ...POLICY_DEFAULTS, replicationFactor: 3, minInsyncReplicas: 2 }

describe('a topic policy', () => {
  it('of defaults is allowed', () => {
    checkPolicy(GOOD)
  })

  const refused: readonly Partial<TopicPolicy>[] = [
    { partitions: 0 },
    { partitions: 100_001 },
    { partitions: 1.5 },
    { partitions: 2, rangeMode: 'fixed', ranges: 3 },
    { ranges: 2 },
    { replicationFactor: 0 },
    { replicationFactor: 8 },
    { minInsyncReplicas: 4 },
    { retentionMs: 999 },
    { retentionMs: -2 },
    { retentionBytes: 0 },
    { segmentBytes: 64 * 1024 - 1 },
    { segmentEntries: 0 },
    { segmentMs: 999 },
    { maxMessageBytes: 1023 },
    { maxMessageBytes: 64 * MIB + 1 },
    { maxMessageBytes: -1 },
    { acksDefault: 'most' as 'all' },
    { tier: 'gold' as 'low' },
    { rangeMode: 'some' as 'auto' },
  ]
  for (const change of refused) {
    const [key = ''] = policyTexts(change).map(([name]) => name)
    it(`with ${JSON.stringify(change)} is refused, and the message names ${key}`, () => {
      assert.throws(
        () => {
          checkPolicy({ ...GOOD, ...change })
        },
        { code: 'INVALID_POLICY', message: new RegExp(`(^| )${key}[ ,]`) },
      )
    })
  }

  it('may be without limit where that is allowed', () => {
    checkPolicy({ ...GOOD, retentionMs: -1, retentionBytes: -1 })
  })

  it('is the same after its texts were read', () => {
    assert.deepEqual(parsePolicy(policyTexts(GOOD)), GOOD)
    assert.deepEqual(
      policyTexts(GOOD).map(([key]) => key),
      POLICY_KEYS,
    )
  })

  it('in texts refuses what is no key, no number or no word, and says what is', () => {
    const cases: readonly (readonly [string, string, RegExp])[] = [
      ['colour', 'red', /'colour'/],
      ['partitions', 'many', /partitions is 'many'/],
      ['partitions', '', /partitions/],
      ['partitions', '1.5', /partitions/],
      ['tier', 'gold', /low, standard, critical/],
    ]
    for (const [key, text, message] of cases) {
      assert.throws(() => parsePolicy([[key, text]]), { code: 'INVALID_POLICY', message })
    }
  })
})
