// One start of a broker: what it holds in memory, and how it goes by the shard's log as far as it has applied it. It leads and
// follows with the machines that are judged, asks for leases, and keeps what it has agreed to keep. What it does beyond is the
// other side of their bargain, and is honest.

import type { Segment } from '../../../../src/core/metadata/types.ts'
import { SegmentFollower } from '../../../../src/core/segment/follower.ts'
import { SegmentLeader } from '../../../../src/core/segment/leader.ts'
import { LeaseBook } from '../../../../src/core/segment/leases.ts'
import type { EndReason } from '../../../../src/core/segment/types.ts'
import type { NodeId } from '../../../../src/model/ids.ts'
import type { Broker } from './broker.ts'
import { Copying } from './copying.ts'
import type { Item, Staged } from './disk.ts'
import { Following } from './following.ts'
import { Leading } from './leading.ts'
import { keyOf, SHARD, TIMING } from './place.ts'
import { StagingDesk } from './staging.ts'
import type { World } from './world.ts'

export class Process {
  readonly broker: Broker
  readonly world: World
  readonly boot: number
  readonly id: NodeId
  applied = 0
  readonly leading: Map<number, Leading> = new Map()
  readonly following: Map<number, Following> = new Map()
  readonly leases: LeaseBook
  readonly desk: StagingDesk
  readonly copying: Copying
  private leaseSeq = 0
  private nextLeaseMs = 0
  /** Open segments that are held here, and cannot go on. */
  private readonly unfit = new Map<number, EndReason>()

  constructor(broker: Broker, boot: number) {
    this.broker = broker
    this.world = broker.world
    this.boot = boot
    this.id = broker.id
    this.leases = new LeaseBook(TIMING.leaseTtlMs)
    this.desk = new StagingDesk(this)
    this.copying = new Copying(this)
  }

  get up(): boolean {
    return this.broker.process === this
  }

  get now(): number {
    return this.broker.now
  }

  later(ms: number, run: () => void): void {
    this.world.later(ms, () => {
      if (this.up) run()
    })
  }

  // ---- the shard's log

  segmentOf(number: number): Segment | undefined {
    return this.world.register.segments(this.applied).find(({ segment }) => segment === number)
  }

  /** All that it had before is from an earlier start. */
  begins(): void {
    this.applied = this.broker.applied
    for (const number of this.broker.disk.segments.keys()) this.fromBefore(number)
    this.applies(this.broker.applied)
  }

  applies(index: number): void {
    if (index < this.applied) return
    this.applied = index
    this.broker.applied = index
    for (const segment of this.world.register.segments(index)) {
      if (segment.state === 'sealed') this.sealed(segment)
      else this.open(segment)
    }
    this.desk.forget()
  }

  private sealed({ segment: number, endEntry = 0, replicas }: Segment): void {
    if (!replicas.includes(this.id)) return this.gaveAway(number)
    const leading = this.leading.get(number)
    leading?.learned({ state: 'sealed', endEntry })
    this.following.get(number)?.machine.seal(endEntry)
    this.unfit.delete(number)
    const { disk } = this.broker
    const kept = disk.segments.get(number)
    if (kept === undefined || kept.sealedAt !== undefined) return
    kept.sealedAt = endEntry
    kept.items.length = Math.min(kept.items.length, endEntry)
  }

  /** Others hold it, and have proven that. */
  private gaveAway(number: number): void {
    if (!this.broker.disk.isQuiet(number)) return
    this.broker.disk.segments.delete(number)
    this.leading.delete(number)
    this.following.delete(number)
  }

  private open(segment: Segment): void {
    const { segment: number, replicas, attempt, token } = segment
    const leading = this.leading.get(number)
    leading?.learned({ state: 'open', attempt })
    if (leading !== undefined || !replicas.includes(this.id)) return
    const known = this.following.get(number)
    if (replicas[0] !== this.id) {
      if (known === undefined) this.follow(segment)
      return
    }
    if (known !== undefined) return
    const staged = this.stagedUnder(token)
    if (token !== '' && (staged === undefined || staged.boot !== this.boot)) {
      return this.fromBefore(number)
    }
    if (token === '' && this.boot > 1) return this.fromBefore(number)
    const followers = replicas.slice(1)
    const machine = new SegmentLeader({ followers, attempt, timing: TIMING })
    const next = staged?.next ?? segment.firstOffsets
    this.leading.set(number, new Leading(this, number, token, machine, followers, [...next]))
    this.world.say(`${this.broker.name} leads segment ${number}`)
  }

  stagedUnder(token: string): Staged | undefined {
    return this.broker.disk.staged.get(token)
  }

  /** As its metadata says, or as it has staged it: it may hear of its leader first. */
  follow({ segment: number, replicas, token }: Segment): Following {
    const staged = this.stagedUnder(token)
    const mine = token === '' ? this.boot === 1 : staged?.boot === this.boot
    const following = this.follower(number, replicas[0] as NodeId, !mine)
    if (!mine) this.unfit.set(number, 'restarted')
    return following
  }

  /** What it holds of a segment that was begun before this start, led or followed. */
  private fromBefore(number: number): void {
    const segment = this.segmentOf(number)
    if (this.following.has(number) || segment?.state === 'sealed') return
    this.follower(number, segment?.replicas[0] ?? this.id, true)
    this.unfit.set(number, 'restarted')
  }

  follower(number: number, leader: NodeId, fencedByRestart: boolean): Following {
    const { items } = this.broker.disk.segment(number)
    const highWatermark = items.reduce((hw, item) => Math.max(hw, item.highWatermark), 0)
    const options = { leader, next: items.length, fencedByRestart, highWatermark }
    const following = new Following(this, number, new SegmentFollower(options))
    this.following.set(number, following)
    return following
  }

  // ---- what it does by itself

  tick(): void {
    for (const leading of this.leading.values()) leading.tick()
    this.desk.tick()
    this.copying.tick()
    if (this.now < this.nextLeaseMs) return
    this.nextLeaseMs = this.now + 100
    this.askForLease()
  }

  private askForLease(): void {
    const { world } = this
    const seq = ++this.leaseSeq
    const coordinator = world.coordinatorFor(this)
    if (coordinator === undefined) return
    this.leases.requested(seq, this.now)
    const asked = {
      seq,
      boot: this.boot,
      oldestSyncMs: this.broker.disk.oldestSyncMs(),
      index: this.applied,
      unfit: this.unfitSegments(),
    }
    world.net.tell(this, coordinator.host.id, `lease request ${seq}`, () => {
      coordinator.leaseAsked(this.id, asked)
    })
  }

  /** Open segments that are held here and cannot go on: an earlier coordinator may have fenced them, and is gone. */
  private unfitSegments(): (readonly [number, EndReason])[] {
    const all = new Map(this.unfit)
    for (const [number, { machine }] of this.following) {
      if (machine.fenced && !all.has(number)) all.set(number, 'fenced')
    }
    for (const [number, { machine }] of this.leading) {
      if (machine.mode === 'fenced') all.set(number, 'fenced')
    }
    return [...all].filter(([number]) => this.segmentOf(number)?.state === 'open')
  }

  leaseAnswered(seq: number, index: number, withheld: readonly number[]): void {
    const shards = [{ shard: SHARD, index }]
    this.leases.answered(seq, shards, withheld.map(keyOf))
  }

  leased(number: number): boolean {
    return this.leases.leased(SHARD, keyOf(number), this.applied, this.now)
  }

  // ---- what others see of it

  /** The other end of a link is another start, or the link was cut in between. */
  linkBroke(peer: NodeId): void {
    for (const leading of this.leading.values()) leading.linkBroke(peer)
  }

  /** Entries as it has them, in memory or on its disk; only what is durable when it is asked to hand on. */
  itemsOf(number: number): readonly Item[] {
    return this.leading.get(number)?.items ?? this.broker.disk.segment(number).items
  }
}
