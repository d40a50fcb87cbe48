// A broker's leases of the segments that it leads (PROTOCOLS §4). It asks each coordinator for all of a shard at once:
//
//   broker        asks, seq n ──────────────────────────────> counts `ttl` from here
//   coordinator          └──> confirms the shard, as of an index of its log; not the segments that it has fenced
//   broker                        └──> may accept, once it has applied up to that index
//
// The broker counts from when it asked, the coordinator for longer from when it answered: so the coordinator never takes a lease
// for over that the broker still counts. Below the index the broker may lead less than it thinks.
//
// Of two answers in a row the older counts too while its time lasts: its index may be applied already when the newer one's is not.

import { keyText, type SegmentKey } from '../../model/segment-key.ts'

interface Lease {
  readonly untilMs: number
  readonly index: number
  readonly withheld: ReadonlySet<string>
}

interface ShardLease {
  seq: number
  newest: Lease
  older: Lease | undefined
}

interface ShardAt {
  readonly shard: number
  readonly index: number
}

const NONE: ReadonlySet<string> = new Set()

export class LeaseBook {
  private readonly ttlMs: number
  /** When each request was sent that may still be answered in time, oldest first. */
  private readonly sent = new Map<number, number>()
  private readonly leases = new Map<number, ShardLease>()

  constructor(ttlMs: number) {
    this.ttlMs = ttlMs
  }

  /** Numbers grow, and no earlier start of this broker has used them. */
  requested(seq: number, nowMs: number): void {
    this.sent.set(seq, nowMs)
    for (const [old, sentMs] of this.sent) {
      if (nowMs - sentMs < this.ttlMs) break
      this.sent.delete(old)
    }
  }

  answered(seq: number, shards: readonly ShardAt[], withheld: readonly SegmentKey[]): void {
    const sentMs = this.sent.get(seq)
    if (sentMs === undefined) return
    const keys = withheld.length === 0 ? NONE : new Set(withheld.map(keyText))
    for (const { shard, index } of shards) {
      const newest = { untilMs: sentMs + this.ttlMs, index, withheld: keys }
      const lease = this.leases.get(shard)
      if (lease === undefined) {
        this.leases.set(shard, { seq, newest, older: undefined })
      } else if (lease.seq < seq) {
        lease.seq = seq
        lease.older = lease.newest
        lease.newest = newest
      }
    }
  }

  /** Whether anything was confirmed of the shard that still counts. */
  has(shard: number, nowMs: number): boolean {
    return nowMs < (this.leases.get(shard)?.newest.untilMs ?? nowMs)
  }

  /** Whether the leader of the segment may accept anything now. `appliedIndex`: of the shard, here. */
  leased(shard: number, key: SegmentKey, appliedIndex: number, nowMs: number): boolean {
    const lease = this.leases.get(shard)
    if (lease === undefined) return false
    const { newest, older } = lease
    // What an answer withholds no answer before it gives, and what it gives is not what that one withheld.
    if (withholds(newest, key)) return false
    if (holds(newest, appliedIndex, nowMs)) return true
    return holds(older, appliedIndex, nowMs) && !withholds(older, key)
  }
}

function withholds(lease: Lease | undefined, key: SegmentKey): boolean {
  const { size } = lease?.withheld ?? NONE
  return size > 0 && lease?.withheld.has(keyText(key)) === true
}

function holds(lease: Lease | undefined, appliedIndex: number, nowMs: number): boolean {
  return lease !== undefined && nowMs < lease.untilMs && appliedIndex >= lease.index
}
