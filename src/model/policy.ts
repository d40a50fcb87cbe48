// A topic's policy: what its creator decides, and what AlterTopic can change. Durations are milliseconds, sizes
// bytes. `-1` means without limit where it is allowed.

export const ACKS = ['0', '1', 'all'] as const
export type Acks = (typeof ACKS)[number]
export const RANGE_MODES = ['auto', 'fixed'] as const
type RangeMode = (typeof RANGE_MODES)[number]
export const TIERS = ['low', 'standard', 'critical'] as const
export type Tier = (typeof TIERS)[number]

export interface TopicPolicy {
  /** Fixed at creation; only AddPartitions raises it. */
  readonly partitions: number
  /** auto: one range at first, split and merged by load. fixed: `ranges` of them, never split. */
  readonly rangeMode: RangeMode
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

export function minInsyncDefault(replicationFactor: number): number {
  return Math.max(1, replicationFactor - 1)
}
