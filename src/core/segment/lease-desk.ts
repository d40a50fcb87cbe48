// When a coordinator confirmed whose leases of the segments that they lead (PROTOCOLS §4). The broker's side is leases.ts.
//
//   broker       asks at s ─────────────── answered ────────── s + lease_ttl_ms: its lease ends
//   coordinator            confirms at c ────────────────────────────── c + lease_grace_ms: it counts it as ended
//
// A new coordinator knows no c: it counts from its election, as if it had confirmed everyone then.

import type { NodeId } from '../../model/ids.ts'
import type { SegmentTiming } from './types.ts'

export interface LeaseAsk {
  readonly from: NodeId
  readonly boot: number
  readonly oldestSyncMs: number
  readonly shards: readonly number[]
}

export interface LeaseVerdict {
  /** Of those that were asked for. */
  readonly shards: readonly number[]
  /** Its disk has not finished a sync for so long that it counts as failed. */
  readonly stuck: boolean
}

/** When a coordinator confirmed whose leases, in the shards that it leads. The caller makes sure that its Raft lease holds. */
export class LeaseDesk {
  private readonly timing: SegmentTiming
  private readonly shards = new Map<number, { electedAtMs: number; last: Map<NodeId, number> }>()
  private readonly boots = new Map<NodeId, number>()

  constructor(timing: SegmentTiming) {
    this.timing = timing
  }

  /** From now on, or again: whatever was confirmed is counted as if it had been then. */
  leads(shard: number, electedAtMs: number): void {
    this.shards.set(shard, { electedAtMs, last: new Map() })
  }

  leadsNoMore(shard: number): void {
    this.shards.delete(shard)
  }

  request({ from, boot, oldestSyncMs, shards }: LeaseAsk, nowMs: number): LeaseVerdict {
    const stuck = oldestSyncMs > this.timing.replicaAckTimeoutMs
    const known = this.boots.get(from)
    if (known !== undefined && boot < known) return { shards: [], stuck: false }
    this.boots.set(from, boot)
    if (stuck) return { shards: [], stuck }
    const confirmed = shards.filter((shard) => this.shards.has(shard))
    for (const shard of confirmed) this.shards.get(shard)?.last.set(from, nowMs)
    return { shards: confirmed, stuck }
  }

  /** A lease of that shard may be held since then: by its last confirmation, or by what a coordinator before this one confirmed. */
  lastConfirmedMs(shard: number, node: NodeId): number {
    const led = this.shards.get(shard)
    if (led === undefined) return Number.POSITIVE_INFINITY
    return led.last.get(node) ?? led.electedAtMs
  }
}
