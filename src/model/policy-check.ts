// Whether a policy's values are allowed, each by itself and together. Messages name keys as people write them
// (policy-keys.ts), whatever they are called in here.

import { EastGuardError } from '../base/errors.ts'
import { BATCH_BYTES_MAX } from './limits.ts'
import { ACKS, MIB, PARTITIONS_MAX, RANGE_MODES, TIERS, type TopicPolicy } from './policy.ts'
import { policyKeyName as name } from './policy-keys.ts'

const REPLICATION_FACTOR_MAX = 7

interface Bounds {
  readonly least: number
  readonly most: number
  /** -1, "no limit", is allowed too. */
  readonly unlimited?: boolean
}

type NumberKey = {
  [Key in keyof TopicPolicy]: TopicPolicy[Key] extends number ? Key : never
}[keyof TopicPolicy]

const BOUNDS: readonly (readonly [NumberKey, Bounds])[] = [
  ['partitions', { least: 1, most: PARTITIONS_MAX }],
  ['ranges', { least: 1, most: PARTITIONS_MAX }],
  ['replicationFactor', { least: 1, most: REPLICATION_FACTOR_MAX }],
  ['minInsyncReplicas', { least: 1, most: REPLICATION_FACTOR_MAX }],
  ['retentionMs', { least: 1000, most: Number.MAX_SAFE_INTEGER, unlimited: true }],
  ['retentionBytes', { least: MIB, most: Number.MAX_SAFE_INTEGER, unlimited: true }],
  ['segmentBytes', { least: 64 * 1024, most: 16 * 1024 * MIB }],
  ['segmentEntries', { least: 1, most: 100_000_000 }],
  ['segmentMs', { least: 1000, most: 365 * 24 * 3600 * 1000 }],
  ['maxMessageBytes', { least: 1024, most: BATCH_BYTES_MAX }],
]

/** Throws INVALID_POLICY with the key, the value and what is allowed. */
export function checkPolicy(policy: TopicPolicy): void {
  const { partitions, ranges, rangeMode, replicationFactor, minInsyncReplicas } = policy
  for (const [key, bounds] of BOUNDS) {
    const value = policy[key]
    if (bounds.unlimited === true && value === -1) continue
    if (!Number.isSafeInteger(value) || value < bounds.least || value > bounds.most) {
      const extra = bounds.unlimited === true ? ', or -1 for no limit' : ''
      throw invalid(policy, key, `${bounds.least} to ${bounds.most} is allowed${extra}`)
    }
  }
  if (ranges > partitions) {
    throw invalid(policy, 'ranges', `at most ${name('partitions')}, ${partitions}, is allowed`)
  }
  if (rangeMode === 'auto' && ranges !== 1) {
    throw invalid(policy, 'ranges', 'in mode auto a topic begins with one: use mode fixed')
  }
  if (minInsyncReplicas > replicationFactor) {
    const most = `${name('replicationFactor')}, ${replicationFactor}`
    throw invalid(policy, 'minInsyncReplicas', `at most ${most}, is allowed`)
  }
  mustBeOneOf(policy, 'acksDefault', ACKS)
  mustBeOneOf(policy, 'tier', TIERS)
  mustBeOneOf(policy, 'rangeMode', RANGE_MODES)
}

function mustBeOneOf(
  policy: TopicPolicy,
  key: keyof TopicPolicy,
  allowed: readonly unknown[],
): void {
  if (!allowed.includes(policy[key]))
    throw invalid(policy, key, `one of ${allowed.join(', ')} is needed`)
}

function invalid(policy: TopicPolicy, key: keyof TopicPolicy, rule: string): EastGuardError {
  return new EastGuardError('INVALID_POLICY', `${name(key)} is ${String(policy[key])}; ${rule}`)
}
