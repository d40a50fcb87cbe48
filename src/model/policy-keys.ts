// A policy's keys and values as texts: in the native protocol, on the command line (--config k=v) and in tables. Keys are
// those of policy.ts in snake_case; values are decimal numbers or words.

import { EastGuardError } from '../base/errors.ts'
import { ACKS, RANGE_MODES, TIERS, type TopicPolicy } from './policy.ts'

type Reader = (key: string, text: string) => number | string

const number: Reader = (key, text) => {
  const value = Number(text)
  if (text.trim() === '' || !Number.isSafeInteger(value)) {
    throw new EastGuardError('INVALID_POLICY', `${key} is '${text}'; a whole number is needed`)
  }
  return value
}

function word(allowed: readonly string[]): Reader {
  return (key, text) => {
    if (allowed.includes(text)) return text
    throw new EastGuardError(
      'INVALID_POLICY',
      `${key} is '${text}'; one of ${allowed.join(', ')} is needed`,
    )
  }
}

/** Every key of a policy by its name on the wire and on the command line, with how its value is read. */
const KEYS: ReadonlyMap<string, readonly [keyof TopicPolicy, Reader]> = new Map<
  string,
  readonly [keyof TopicPolicy, Reader]
>([
  ['partitions', ['partitions', number]],
  ['range_mode', ['rangeMode', word(RANGE_MODES)]],
  ['ranges', ['ranges', number]],
  ['replication_factor', ['replicationFactor', number]],
  ['min_insync_replicas', ['minInsyncReplicas', number]],
  ['acks_default', ['acksDefault', word(ACKS)]],
  ['retention_ms', ['retentionMs', number]],
  ['retention_bytes', ['retentionBytes', number]],
  ['segment_bytes', ['segmentBytes', number]],
  ['segment_entries', ['segmentEntries', number]],
  ['segment_ms', ['segmentMs', number]],
  ['max_message_bytes', ['maxMessageBytes', number]],
  ['tier', ['tier', word(TIERS)]],
])

const NAMES: ReadonlyMap<keyof TopicPolicy, string> = new Map(
  [...KEYS].map(([name, [key]]) => [key, name]),
)

/** A key as people write it. */
export function policyKeyName(key: keyof TopicPolicy): string {
  return NAMES.get(key) ?? key
}

export const POLICY_KEYS: readonly string[] = [...KEYS.keys()]

/** Some of a policy, from texts by wire name. Throws INVALID_POLICY for an unknown key or an unreadable value. */
export function parsePolicy(texts: Iterable<readonly [string, string]>): Partial<TopicPolicy> {
  const policy: Record<string, number | string> = {}
  for (const [name, text] of texts) {
    const known = KEYS.get(name)
    if (known === undefined) {
      throw new EastGuardError('INVALID_POLICY', `there is no policy key '${name}'`, {
        hint: `the keys are ${POLICY_KEYS.join(', ')}`,
      })
    }
    policy[known[0]] = known[1](name, text)
  }
  return policy as Partial<TopicPolicy>
}

/** A policy's texts by wire name, in a fixed order. */
export function policyTexts(policy: Partial<TopicPolicy>): readonly (readonly [string, string])[] {
  const texts: (readonly [string, string])[] = []
  for (const [name, [key]] of KEYS) {
    const value = policy[key]
    if (value !== undefined) texts.push([name, String(value)])
  }
  return texts
}
