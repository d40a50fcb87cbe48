// What clients and brokers see of the metadata: plain, immutable views of the metadata machine's state.

import type { NodeId, TopicId } from './ids.ts'
import type { TopicPolicy } from './policy.ts'
import type { MemberState } from './swim.ts'

export interface SegmentView {
  /** Grows along the range's lineage; also the leader epoch that clients see. */
  readonly segment: number
  readonly state: 'open' | 'sealed'
  /** replicas[0] leads while the segment is open. */
  readonly replicas: readonly NodeId[]
  /** Each partition's first offset in this segment, in the range's partition order. */
  readonly firstOffsets: readonly number[]
  readonly openedAtMs: number
  /** Entries in it, once sealed. */
  readonly endEntry?: number
  /** Over all its entries, once every replica is known to have them: it is settled. Empty or absent: it is not. */
  readonly digest?: string
  /** Of a sealed one that is not settled: entries from here on may be on other brokers only, until repair has copied them. */
  readonly tail?: { readonly from: number } | undefined
  /** What the broker that was asked has of it. */
  readonly held?: HeldSegment
}

interface HeldSegment {
  readonly entries: number
  /** Of the entries with their envelopes. */
  readonly bytes: number
}

export const ISSUE_KINDS = ['under-replicated', 'unavailable'] as const

/** A range that is not as it should be. */
export interface RangeIssue {
  readonly topic: string
  readonly range: number
  readonly segment: number
  readonly kind: (typeof ISSUE_KINDS)[number]
  /** For people. */
  readonly why: string
}

export interface RangeView {
  readonly range: number
  readonly state: 'active' | 'sealed'
  /** Partitions [firstPartition, endPartition). */
  readonly firstPartition: number
  readonly endPartition: number
  /** Oldest first; the last is open while the range is active. */
  readonly segments: readonly SegmentView[]
  readonly parents: readonly number[]
  readonly children: readonly number[]
}

export interface TopicView {
  readonly name: string
  readonly topicId: TopicId
  readonly policy: TopicPolicy
  readonly createdAtMs: number
  /** Raised by every change of this topic. */
  readonly version: number
  readonly ranges: readonly RangeView[]
  /** Per partition: offsets below it are gone (retention, DeleteRecords). */
  readonly logStartOffsets: readonly number[]
}

export const NODE_ROLES = ['member', 'draining', 'removed'] as const
export type NodeRole = (typeof NODE_ROLES)[number]

export interface BrokerView {
  readonly nodeId: NodeId
  readonly nodeNumber: number
  readonly displayName: string
  readonly host: string
  readonly clientPort: number
  readonly state: MemberState
  readonly role: NodeRole
  /** Brokers with the same one are taken to fail together. */
  readonly hostLabel: string
  /** Likewise, of a rack; empty: not known. */
  readonly rackLabel: string
  /** Metadata shards that it holds, and leads. */
  readonly shards: number
  readonly leads: number
}
