// What all ranges of a broker share.

import type { SegmentTiming } from '../../core/segment/types.ts'
import type { NodeId } from '../../model/ids.ts'
import type { RedirectBroker } from '../../model/redirect.ts'
import type { SegmentKey } from '../../model/segment-key.ts'
import type { Clock } from '../../ports/clock.ts'
import type { Log } from '../../ports/log.ts'
import type { Counter } from '../../ports/metrics.ts'
import type { LogStore } from '../../storage/types.ts'
import type { MetadataLog } from '../metadata/types.ts'
import type { Census } from '../replica/census.ts'
import type { Seals } from '../replica/seals.ts'
import type { Sendings } from '../replica/sending.ts'
import type { StagedBook } from '../replica/staged.ts'
import type { ReplicaHooks } from '../replica/types.ts'
import type { RangeCopy } from './copy.ts'
import type { RangeFollower } from './follower.ts'
import type { HeldBudget, Holding } from './held.ts'
import type { Ticking } from './ticking.ts'

export interface RangeContext {
  readonly store: LogStore
  readonly metadata: MetadataLog
  readonly clock: Clock
  readonly log: Log
  readonly nodeId: NodeId
  readonly producerIdExpiryMs: number
  readonly timing: SegmentTiming
  readonly held: HeldBudget
  /** Ranges with produces that wait, so that room and deadlines reach them without a scan over all. */
  readonly holding: Holding
  /** Leaders with something that only time can end. */
  readonly ticking: Ticking
  readonly staged: StagedBook
  readonly seals: Seals
  readonly census: Census
  readonly hooks: ReplicaHooks
  readonly sendings: Sendings
  /** Whether this broker has a lease of the open segment that it leads. */
  leased(key: SegmentKey): boolean
  /** Where clients reach these brokers, as far as that is known. */
  reachable(nodes: readonly NodeId[]): readonly RedirectBroker[]
  /** The segment is not open here any more: it has a successor, or its range has gone. */
  over(key: SegmentKey): void
  /** Something of the segment turned out to be damaged here. */
  damaged(key: SegmentKey): void
  /** A package for a successor was stored here. */
  stored(key: SegmentKey, token: string): void
  /** Followers with entries that wait for room. */
  readonly parked: Set<RangeFollower>
  /** Copies at whose end somebody waits, or did a moment ago. */
  readonly watched: Set<RangeCopy>
  /** Without news from its leader for so long, a follower sends readers elsewhere. */
  readonly hwStaleMs: number
  /** Plain numbers, read when metrics are collected: the hot path only adds. */
  readonly totals: { batches: number; bytes: number }
  readonly counters: {
    readonly rolls: Counter
    readonly endsWithoutFollowers: Counter
    readonly endsTakenBack: Counter
    readonly heldTimeouts: Counter
  }
}
