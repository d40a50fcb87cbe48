// How this broker gets the leases of what it leads, and says what of its segments cannot go on: one frame for each coordinator,
// every `lease_sync_ms`, as long as it has something to ask or to say. A broker that leads nothing is silent.

import { LeaseBook } from '../../core/segment/leases.ts'
import type { NodeId } from '../../model/ids.ts'
import type { SegmentKey } from '../../model/segment-key.ts'
import { shardOfTopic } from '../../model/shards.ts'
import type { Timer } from '../../ports/clock.ts'
import type {
  LeaseAnswer,
  SegmentMessage,
  ShardAt,
  UnfitSegment,
} from '../../wire/peer/segments.ts'
import type { ControlOptions } from '../coordinator/types.ts'

/** Of those that cannot go on, so many are named to one coordinator at a time; once they are seen to, others come. */
const UNFIT_MAX = 256
/** Looked at in one round. */
const UNFIT_LOOKED_AT_MAX = 4096
/** Where the numbers of a start's requests may begin. */
const NUMBERS = 2 ** 40

/** Rounds that somebody waits for come so much closer together at the most. */
const SOONER = 4

const EVERYTHING = (): boolean => true

interface Asked {
  readonly shards: ShardAt[]
  readonly unfit: UnfitSegment[]
}

export class Leases {
  private readonly options: ControlOptions
  private readonly send: (to: NodeId, message: SegmentMessage) => void
  private readonly book: LeaseBook
  private readonly shardsOf = new WeakMap<SegmentKey, number>()
  private seq: number
  private timer: Timer | undefined
  /** A producer waits, and the coordinator has not been told since. */
  private urgent = false
  private askedMs = Number.NEGATIVE_INFINITY
  /** Shards in which this broker may lead its first segment now. */
  private readonly fresh = new Set<number>()
  private readonly unlisten: () => void
  private turnIsDue = false
  private draining = false

  constructor(options: ControlOptions, send: (to: NodeId, message: SegmentMessage) => void) {
    this.options = options
    this.send = send
    this.book = new LeaseBook(options.timing.leaseTtlMs)
    this.seq = Math.floor(options.ports.random.float() * NUMBERS)
    this.unlisten = options.metadata.onChange((_, shard) => this.changed(shard))
    this.arm()
    options.ports.clock.nextTurn(() => {
      if (this.timer !== undefined) this.round()
    })
  }

  private arm(): void {
    const { ports, leaseSyncMs } = this.options
    this.timer = ports.clock.after(leaseSyncMs, () => {
      this.arm()
      this.round()
    })
  }

  stop(): void {
    this.timer?.cancel()
    this.timer = undefined
    this.unlisten()
  }

  /** Asked for every batch: the leader of a segment asks with the same key again and again. */
  private shardOf(key: SegmentKey): number {
    let shard = this.shardsOf.get(key)
    if (shard === undefined) {
      shard = shardOfTopic(key.topicId, this.options.shards.count)
      this.shardsOf.set(key, shard)
    }
    return shard
  }

  /** Whether the leader here of an open segment may accept anything now. */
  leased(key: SegmentKey): boolean {
    const { shards, ports } = this.options
    const shard = this.shardOf(key)
    return this.book.leased(shard, key, shards.copyOf(shard).appliedIndex, ports.clock.monotonic())
  }

  /** A producer waits for a segment that cannot go on (`Replicas.unfit`): its coordinator need not wait for the next round. */
  waits(): void {
    const { ports, leaseSyncMs } = this.options
    // Of many that wait at once the first is enough: each round tells of all.
    if (ports.clock.monotonic() - this.askedMs < leaseSyncMs / SOONER) return
    this.urgent = true
    this.soon()
  }

  /** Whoever has just become a leader need not wait for the next round. */
  private changed(shard: number): void {
    if (this.book.has(shard, this.options.ports.clock.monotonic())) return
    this.fresh.add(shard)
    this.soon()
  }

  private soon(): void {
    if (this.turnIsDue || this.timer === undefined) return
    this.turnIsDue = true
    this.options.ports.clock.nextTurn(() => {
      this.turnIsDue = false
      if (this.timer === undefined) return
      if (this.urgent) this.round()
      else this.ask((shard) => this.fresh.has(shard))
    })
  }

  /** This broker is about to stop: what it holds of open segments should go to others. */
  drain(): void {
    this.draining = true
    this.round()
  }

  answered({ seq, shards, withheld }: LeaseAnswer): void {
    this.book.answered(seq, shards, withheld)
  }

  private round(): void {
    this.urgent = false
    this.askedMs = this.options.ports.clock.monotonic()
    this.ask(EVERYTHING)
  }

  private ask(about: (shard: number) => boolean): void {
    const { options } = this
    const { replicas, ports, boot } = options
    const diskFull = options.diskFull()
    const asked = new Map<NodeId, Asked>()
    for (const at of replicas.ledShards()) {
      if (about(at.shard)) this.askedOf(asked, at.shard)?.shards.push(at)
    }
    this.fresh.clear()
    if (about === EVERYTHING) {
      this.addUnfit(asked)
      if (this.draining || diskFull) this.addAll(asked)
    }
    if (asked.size === 0) return
    const seq = ++this.seq
    this.book.requested(seq, ports.clock.monotonic())
    const oldestSyncMs = Math.ceil(options.oldestSyncMs())
    const said = { seq, boot, oldestSyncMs, stopping: this.draining, diskFull }
    for (const [to, one] of asked) this.send(to, { kind: 'lease-request', ...said, ...one })
  }

  private askedOf(asked: Map<NodeId, Asked>, shard: number): Asked | undefined {
    const to = this.options.shards.leaderOf(shard)?.node
    if (to === undefined) return undefined
    let one = asked.get(to)
    if (one === undefined) {
      one = { shards: [], unfit: [] }
      asked.set(to, one)
    }
    return one
  }

  private addUnfit(asked: Map<NodeId, Asked>): void {
    let looked = 0
    for (const unfit of this.options.replicas.unfit()) {
      if (looked++ >= UNFIT_LOOKED_AT_MAX) return
      const one = this.askedOf(asked, shardOfTopic(unfit.key.topicId, this.options.shards.count))
      if (one !== undefined && one.unfit.length < UNFIT_MAX) one.unfit.push(unfit)
    }
  }

  /** Every coordinator. */
  private addAll(asked: Map<NodeId, Asked>): void {
    const { shards } = this.options
    for (let shard = 0; shard < shards.count; shard++) this.askedOf(asked, shard)
  }
}
