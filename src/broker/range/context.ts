// What all ranges of a broker share.

import type { NodeId } from '../../model/ids.ts'
import type { Clock } from '../../ports/clock.ts'
import type { Log } from '../../ports/log.ts'
import type { Counter } from '../../ports/metrics.ts'
import type { Random } from '../../ports/random.ts'
import type { LogStore } from '../../storage/types.ts'
import type { MetadataLog } from '../metadata/types.ts'
import type { HeldBudget, Holding } from './held.ts'

export interface RangeContext {
  readonly store: LogStore
  readonly metadata: MetadataLog
  readonly clock: Clock
  readonly random: Random
  readonly log: Log
  readonly nodeId: NodeId
  readonly producerIdExpiryMs: number
  readonly held: HeldBudget
  /** Ranges with produces that wait, so that room and deadlines reach them without a scan over all. */
  readonly holding: Holding
  /** Plain numbers, read when metrics are collected: the hot path only adds. */
  readonly totals: { batches: number; bytes: number }
  readonly counters: {
    readonly rolls: Counter
    readonly rollFailures: Counter
    readonly heldTimeouts: Counter
  }
}
