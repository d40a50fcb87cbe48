// A topic's policy: what its creator decides, and what AlterTopic can change. Durations are milliseconds, sizes
// bytes. `-1` means without limit where it is allowed.

import { EastGuardError } from '../base/errors.ts'

export const ACKS = ['0', '1', 'all'] as const
export type Acks = (typeof ACKS)[number]
export const TIERS = ['low', 'standard', 'critical'] as const
export type Tier = (typeof TIERS)[number]

export interface TopicPolicy {
  /** Fixed at creation; only AddPartitions raises it. */
  readonly partitions: number
  /** auto: one range at first, split and merged by load. fixed: `ranges` of them, never split. */
  readonly rangeMode: 'auto' | 'fixed'
  readonly ranges: number
  readonly replicationFactor: number
  readonly minInsyncReplicas: number
  readonly acksDefault: Acks
  readonly retentionMs: number
  /** Of the whole topic, counted once and not per replica. */
  readonly retentionBytes: number
  readonly segmentBytes: number
  readonly segmentEntries: number
  readonly segmentMs: number
  /** The largest batch taken. */
  readonly maxMessageBytes: number
  /** How much a bad write costs; permissions go by it. */
  readonly tier: Tier
}

export const MIB: number = 1024 * 1024

export const POLICY_DEFAULTS: Omit<TopicPolicy, 'replicationFactor' | 'minInsyncReplicas'> = {
  partitions: 64,
  rangeMode: 'auto',
  ranges: 1,
  acksDefault: 'all',
  retentionMs: 7 * 24 * 3600 * 1000,
  retentionBytes: -1,
  segmentBytes: 1024 * MIB,
  segmentEntries: 1_000_000,
  segmentMs: 3600 * 1000,
  maxMessageBytes: MIB,
  tier: 'standard',
}

export const PARTITIONS_MAX = 100_000
const REPLICATION_FACTOR_MAX = 7

interface Bounds {
  readonly least: number
  readonly most: number
  /** -1, "no limit", is allowed too. */
  readonly unlimited?: boolean
}

const BOUNDS: Partial<Record<keyof TopicPolicy, Bounds>> = {
  partitions: { least: 1, most: PARTITIONS_MAX },
  ranges: { least: 1, most: PARTITIONS_MAX },
  replicationFactor: { least: 1, most: REPLICATION_FACTOR_MAX },
  minInsyncReplicas: { least: 1, most: REPLICATION_FACTOR_MAX },
  retentionMs: { least: 1000, most: Number.MAX_SAFE_INTEGER, unlimited: true },
  retentionBytes: { least: MIB, most: Number.MAX_SAFE_INTEGER, unlimited: true },
  segmentBytes: { least: 64 * 1024, most: 16 * 1024 * MIB },
  segmentEntries: { least: 1, most: 100_000_000 },
  segmentMs: { least: 1000, most: 365 * 24 * 3600 * 1000 },
  maxMessageBytes: { least: 1024, most: 64 * MIB },
}

/** Throws INVALID_POLICY with the key, the value and what is allowed. */
export function checkPolicy(policy: TopicPolicy): void {
  for (const [key, bounds] of Object.entries(BOUNDS)) {
    const value = policy[key as keyof TopicPolicy] as number
    if (bounds.unlimited === true && value === -1) continue
    if (!Number.isSafeInteger(value) || value < bounds.least || value > bounds.most) {
      const extra = bounds.unlimited === true ? ', or -1 for no limit' : ''
      throw invalid(`${key} is ${value}; ${bounds.least} to ${bounds.most} is allowed${extra}`)
    }
  }
  if (policy.ranges > policy.partitions) {
    throw invalid(`ranges is ${policy.ranges} but there are only ${policy.partitions} partitions`)
  }
  if (policy.rangeMode === 'auto' && policy.ranges !== 1) {
    throw invalid(
      `ranges is ${policy.ranges}, but in mode auto a topic begins with one: use mode fixed`,
    )
  }
  if (policy.minInsyncReplicas > policy.replicationFactor) {
    throw invalid(
      `minInsyncReplicas is ${policy.minInsyncReplicas} but replicationFactor is ${policy.replicationFactor}`,
    )
  }
  if (!ACKS.includes(policy.acksDefault)) throw invalid(`acksDefault is ${policy.acksDefault}`)
  if (!TIERS.includes(policy.tier)) throw invalid(`tier is ${policy.tier}`)
  if (policy.rangeMode !== 'auto' && policy.rangeMode !== 'fixed') {
    throw invalid(`rangeMode is ${String(policy.rangeMode)}`)
  }
}

function invalid(message: string): EastGuardError {
  return new EastGuardError('INVALID_POLICY', message)
}

export function minInsyncDefault(replicationFactor: number): number {
  return Math.max(1, replicationFactor - 1)
}
