// One member: packets, syncs and time in; packets, syncs and events out; no IO.
//
//   tick(now)   receive(packet)   answerSync / syncAnswered / syncFailed   setProfile / lead / leave
//        └─────────────┴──────────────────────┴─────────────────────────────────┘
//                                     v
//                               take() ──> Effects: send, ask, tell            view(): who is there, and is that still moving?
//
//   new ──join, found──> joined ──leave──> leaving ──told everyone──> departed
//                          └──── peers remember a later life, or this boot count ────> refused: takes no part any more
//
// Who is believed stands in membership.ts, who is asked in probing.ts, what is told along in gossip.ts, whole states in
// syncing.ts. Here: the door. Packets of other clusters and of earlier lives do not get past it.
//
// A member that slept (a stopped process, a stalled machine) could hear nobody: it adds that time to everything that it
// waits for, or it would accuse all the others of its own absence.

import { type Address, sameAddress } from '../../base/address.ts'
import { assert } from '../../base/assert.ts'
import type { NodeId } from '../../model/ids.ts'
import {
  type ClusterIdentity,
  type Life,
  type Member,
  type NamedCluster,
  type Packet,
  type PacketBody,
  type Profile,
  SHARDS_MAX,
  type ShardHint,
  type SyncAnswer,
  type SyncRequest,
  type SyncState,
  type Update,
} from '../../model/swim.ts'
import { Gossip } from './gossip.ts'
import { Health } from './health.ts'
import { type SwimHost, shuffled } from './host.ts'
import { Membership } from './membership.ts'
import { compareLives } from './order.ts'
import { Probing } from './probing.ts'
import { Syncing } from './syncing.ts'
import { movesView, Table } from './table.ts'
import type { Counters, Effects, SwimEvent, SwimOptions, View } from './types.ts'

/** A tick that comes later than this, in periods, finds a member that slept. */
const SLEEP_PERIODS = 0.5
/** Whom a leaving member tells itself; the others hear it from them. */
const FAREWELLS_MAX = 32
/** Clusters that are told of when their packets arrive. */
const FOREIGN_MAX = 16

export class Swim implements SwimHost {
  readonly options: SwimOptions
  cluster: ClusterIdentity | undefined
  now: number
  joined = false
  readonly table: Table
  readonly gossip: Gossip
  readonly health: Health = new Health()
  readonly hints: Map<number, ShardHint> = new Map()
  readonly counters: Counters = {
    foreign: 0,
    outdated: 0,
    probes: 0,
    probesFailed: 0,
    suspicions: 0,
    refutations: 0,
    syncs: 0,
    syncsFailed: 0,
    misdirected: 0,
    dropped: 0,
  }
  private readonly membership: Membership
  private readonly probing: Probing
  private readonly syncing: Syncing
  /** Whether this cluster yields to them. */
  private readonly foreign = new Map<string, boolean>()
  /** Takes no part: not yet (nothing was joined or founded), or not any more. */
  private silent = true
  /** The next tick, when it is known already. */
  private due: number | undefined
  private gossipAt: number
  private leavesAt = Number.POSITIVE_INFINITY
  private nextForgetting: number
  private wantedProfile: Profile | undefined
  private profileAt = Number.NEGATIVE_INFINITY
  // What `take` will give.
  private packets: { to: Address; packet: Packet }[] = []
  private syncs: { to: Address; request: SyncRequest }[] = []
  private events: SwimEvent[] = []

  constructor(options: SwimOptions, now: number) {
    const { node, boot, nonce, profile, settings, sizes } = options
    this.options = options
    this.cluster = options.cluster
    this.now = now
    this.gossipAt = now
    this.nextForgetting = now + settings.forgetMs / 100
    this.table = new Table({ node, boot, nonce, incarnation: 0, state: 'alive', profile }, now)
    this.gossip = new Gossip(settings, sizes)
    this.membership = new Membership(this, {
      arrived: ({ member }, back) => {
        this.probing.arrived(member.node)
        if (!back) return
        // As wrong, perhaps, as this death was are others: a sync tells of them, as something to be contradicted.
        this.gossip.forgetDeaths()
        this.syncing.returned(member.profile.cluster)
      },
      suspected: ({ member }) => this.probing.next(member.node),
      doubtful: (known) => this.probing.askOnce(known),
      superseded: ({ boot: later }) => this.refuse(later),
    })
    this.probing = new Probing(this, (suspect) => this.membership.suspect(suspect))
    this.syncing = new Syncing(this)
    this.membership.tellSelf()
  }

  // Coming and going.

  /** The first broker of a cluster, which has nobody to ask. */
  found(cluster: ClusterIdentity, now: number): void {
    assert(
      this.cluster === undefined,
      'a broker founds one cluster, and only if it belongs to none',
    )
    this.cluster = cluster
    this.join([], now)
  }

  /** Seeds at this broker's own address are dropped; without any, and without peers, a broker that belongs to a cluster waits to be found. */
  join(seeds: readonly Address[], now: number): void {
    this.now = now
    this.due = undefined
    this.silent = false
    const own = this.table.self.profile.cluster
    const others = (all: readonly Address[]): Address[] =>
      all.filter((one) => !sameAddress(one, own))
    this.syncing.join(others(seeds), others(this.options.peers))
    if (!this.syncing.hasCandidates) this.withoutSeeds()
  }

  private withoutSeeds(): void {
    if (this.cluster === undefined) this.emit({ kind: 'no-seeds' })
    else this.hasJoined()
  }

  private hasJoined(): void {
    if (this.joined) return
    this.joined = true
    this.table.changed(this.now)
    this.emit({ kind: 'joined' })
  }

  /** For good: those who hear of it do not count on this broker until its next start. */
  leave(now: number): void {
    this.arrive(now)
    if (this.silent || this.table.self.state === 'left') return
    this.membership.raise(0, { state: 'left' })
    this.leavesAt = now + this.options.settings.leaveMs
    this.gossipAt = now
    if (this.table.live().length === 0) this.leavesAt = now
    this.tick(now)
  }

  private refuse(boot: number): void {
    if (this.silent) return
    this.silent = true
    this.emit({ kind: 'refused', boot })
  }

  // What this broker says of itself and of shards.

  setProfile(profile: Profile, now: number): void {
    this.arrive(now)
    this.wantedProfile = profile
    this.tellProfile()
  }

  private tellProfile(): void {
    const { wantedProfile: profile, now, table, options } = this
    if (profile === undefined) return
    const moves = movesView(profile, table.self.profile)
    if (!moves && now < this.profileAt + options.settings.loadEveryMs) return
    this.wantedProfile = undefined
    this.profileAt = now
    if (moves) table.changed(now)
    this.membership.raise(0, { profile })
  }

  /** This broker's Raft says who leads; the newest term wins. */
  lead(hint: ShardHint, now: number): void {
    this.arrive(now)
    this.learnHint(hint)
  }

  leaderOf(shard: number): ShardHint | undefined {
    return this.hints.get(shard)
  }

  /** In whatever state; this broker itself, too. */
  memberOf(node: NodeId): Member | undefined {
    const { self } = this.table
    return node === self.node ? self : this.table.get(node)?.member
  }

  view(): View {
    return this.table.view(this.joined)
  }

  // Time.

  tick(now: number): void {
    this.arrive(now)
    if (this.silent) return
    const leaving = this.table.self.state === 'left'
    if (!leaving) {
      this.syncing.tick()
      this.probing.tick()
      this.membership.tick()
      this.tellProfile()
    }
    if (now >= this.nextForgetting) {
      this.nextForgetting = now + this.options.settings.forgetMs / 100
      this.membership.forget()
    }
    if (now >= this.gossipDue) this.tellNews(leaving)
    if (now >= this.leavesAt) {
      this.silent = true
      this.emit({ kind: 'departed' })
    }
  }

  /** When `tick` has something to do, at the latest. */
  get nextTick(): number {
    this.due ??= this.nextDue()
    return this.due
  }

  private nextDue(): number {
    if (this.silent) return Number.POSITIVE_INFINITY
    const { settings } = this.options
    const profileDue =
      this.wantedProfile === undefined
        ? Number.POSITIVE_INFINITY
        : this.profileAt + settings.loadEveryMs
    const { probing, membership, syncing } = this
    const parts =
      this.table.self.state === 'left'
        ? [this.leavesAt]
        : [probing.nextTick, membership.nextTick, syncing.nextTick, profileDue]
    const due = Math.min(...parts, this.gossipDue, this.nextForgetting)
    // What an event has made due is due since then, or this member would seem to have slept.
    return Math.max(this.now, due)
  }

  private get gossipDue(): number {
    const somebody = this.table.liveCount > 1
    return this.gossip.waiting && somebody ? this.gossipAt : Number.POSITIVE_INFINITY
  }

  private tellNews(leaving: boolean): void {
    const { gossipMs, gossipTargets } = this.options.settings
    this.gossipAt = this.now + gossipMs
    const targets = leaving ? FAREWELLS_MAX : gossipTargets
    for (const { member } of shuffled(this, this.table.live()).slice(0, targets)) {
      // The first of them may have been told the last of it.
      if (!leaving && !this.gossip.waiting) break
      this.send(member.profile.cluster, member.node, { kind: 'gossip' })
    }
    if (leaving) this.membership.tellSelf()
  }

  private arrive(now: number): void {
    const late = now - this.nextTick
    this.now = now
    this.due = undefined
    if (late <= SLEEP_PERIODS * this.options.settings.periodMs) return
    this.probing.shift(late)
    this.membership.shift(late)
    this.syncing.shift(late)
    this.health.worse()
  }

  // Packets.

  receive(packet: Packet, from: Address, now: number): void {
    this.arrive(now)
    if (this.silent || this.cluster === undefined) return
    if (packet.cluster.id !== this.cluster.id) return this.meetForeign(packet.cluster, from)
    if (this.isOwn(packet)) return
    if (!this.admits(packet)) {
      // Two that refuse each other would never end.
      if (packet.body.kind === 'refused') return
      const { boot, nonce } = packet
      const remembered = this.memberOf(packet.from)?.boot ?? boot
      this.send(from, undefined, { kind: 'refused', refused: { boot, nonce }, boot: remembered })
      return
    }
    const reporter = this.thinksIllOfThis(packet) ? packet.from : undefined
    for (const update of packet.updates) this.membership.learn(update, reporter)
    for (const hint of packet.hints) this.learnHint(hint)
    const known = this.table.get(packet.from)
    if (known === undefined || compareLives(known.member, packet) < 0) {
      this.syncing.stranger(from, packet.from, packet.boot)
    }
    this.answerTo(packet.from, packet.body, from)
  }

  private answerTo(node: NodeId, body: PacketBody, from: Address): void {
    const { self } = this.table
    switch (body.kind) {
      case 'ping':
        if (body.to === self.node) this.send(from, node, { kind: 'ack', sequence: body.sequence })
        else this.counters.misdirected++
        return
      case 'ping-request':
        return this.probing.onPingRequest(node, from, body)
      case 'ack':
        return this.probing.onAck(node, body.sequence)
      case 'nack':
        return this.probing.onNack(node, body.sequence)
      case 'refused':
        if (compareLives(body.refused, self) === 0) this.refuse(body.boot)
        return
      case 'gossip':
        return
    }
  }

  /** Then its sender is from the other side of a partition, perhaps, and what it thinks of others is as wrong. */
  private thinksIllOfThis({ updates }: Packet): boolean {
    const { self } = this.table
    return updates.some(({ member }) => member.node === self.node && member.state !== 'alive')
  }

  /** At the address of a dead member there may live this one. */
  private isOwn(sender: Life & { readonly from: NodeId }): boolean {
    const { self } = this.table
    return sender.from === self.node && compareLives(sender, self) === 0
  }

  /** False: it comes from an earlier life than the one that is known, or claims this broker's own. */
  private admits({ from, boot, nonce }: Life & { readonly from: NodeId }): boolean {
    const { self } = this.table
    const known = this.memberOf(from)
    if (known === undefined) return true
    const order = compareLives({ boot, nonce }, known)
    // Of two that claim one boot count, the one that is known stays.
    const claims = boot === known.boot && nonce !== known.nonce
    if (order >= 0 && !claims) {
      if (from === self.node && order > 0) this.refuse(boot)
      return from !== self.node
    }
    this.counters.outdated++
    return false
  }

  /** Whoever named the cluster knows only now whether others are in it: the verdict may change. */
  private meetForeign(cluster: NamedCluster, from: Address | undefined): void {
    this.counters.foreign++
    const yields = this.yieldsTo(cluster)
    const known = this.foreign.get(cluster.id)
    if (known === yields || (known === undefined && this.foreign.size >= FOREIGN_MAX)) return
    this.foreign.set(cluster.id, yields)
    this.emit({ kind: 'foreign-cluster', cluster, from, yields })
  }

  /** A cluster of one yields to one that others have joined, and of two such the younger. Clocks alone are no judges: a founder's may be wrong. */
  private yieldsTo(other: NamedCluster): boolean {
    const own = this.namedCluster
    if (own === undefined || !own.lone) return false
    if (!other.lone) return true
    const age = other.foundedMs - own.foundedMs
    return age < 0 || (age === 0 && other.id < own.id)
  }

  get namedCluster(): NamedCluster | undefined {
    const { cluster, options, table } = this
    return cluster && { ...cluster, lone: options.peers.length === 0 && table.isAlone }
  }

  private learnHint(hint: ShardHint): void {
    if (hint.shard >= SHARDS_MAX) return
    const known = this.hints.get(hint.shard)
    if (known !== undefined && known.term >= hint.term) return
    this.hints.set(hint.shard, hint)
    this.gossip.tellHint(hint)
    this.emit({ kind: 'hint', hint })
  }

  // Syncs.

  /** Another broker asks, over a stream: the answer goes back on it. */
  answerSync(request: SyncRequest, now: number): SyncAnswer {
    this.arrive(now)
    const { namedCluster: cluster } = this
    const { self } = this.table
    const refusal = { kind: 'sync-refused' } as const
    if (this.isOwn(request)) return { ...refusal, reason: 'itself' }
    if (this.silent || cluster === undefined || self.state === 'left') {
      return { ...refusal, reason: 'no-member' }
    }
    if (request.cluster !== undefined && request.cluster.id !== cluster.id) {
      this.meetForeign(request.cluster, undefined)
      return { ...refusal, reason: 'other-cluster', cluster }
    }
    if (!this.admits(request)) {
      const boot = this.memberOf(request.from)?.boot ?? request.boot
      return { ...refusal, reason: 'old-life', boot }
    }
    this.merge(request)
    return this.syncing.answer(cluster)
  }

  syncAnswered(to: Address, answer: SyncAnswer, now: number): void {
    this.arrive(now)
    this.syncing.ended(to)
    if (this.silent) return
    if (answer.kind === 'sync-refused') {
      if (answer.reason === 'old-life') this.refuse(answer.boot)
      else if (answer.reason === 'other-cluster') this.meetForeign(answer.cluster, to)
      else if (answer.reason === 'itself') {
        this.syncing.wasItself(to)
        if (!this.joined && !this.syncing.hasCandidates) this.withoutSeeds()
      }
      return
    }
    if (this.cluster === undefined) {
      const { id, foundedMs, shards } = answer.cluster
      this.cluster = { id, foundedMs, shards }
      this.emit({ kind: 'cluster', cluster: this.cluster })
    }
    if (answer.cluster.id !== this.cluster.id) return this.meetForeign(answer.cluster, to)
    if (this.admits(answer)) this.merge(answer)
  }

  syncFailed(to: Address, now: number): void {
    this.arrive(now)
    this.syncing.failed(to)
  }

  private merge({ from, updates, hints }: SyncState): void {
    for (const update of updates) this.membership.learn(update, from)
    for (const hint of hints) this.learnHint(hint)
    this.hasJoined()
  }

  // For the parts.

  send(to: Address, node: NodeId | undefined, body: PacketBody): void {
    const { namedCluster: cluster, table, gossip } = this
    if (cluster === undefined) return
    const { self } = table
    const { updates, hints } = gossip.load(body, table.liveCount, this.firstNews(node))
    const { boot, nonce } = self
    const packet: Packet = { cluster, from: self.node, boot, nonce, body, updates, hints }
    this.packets.push({ to, packet })
  }

  /** Whoever is thought ill of must hear it, to contradict; and of a farewell everyone. */
  private firstNews(node: NodeId | undefined): Update | undefined {
    const { self } = this.table
    if (self.state === 'left') return { member: self, suspectedBy: [] }
    const known = node === undefined ? undefined : this.table.get(node)
    if (known === undefined) return undefined
    const { member, suspectedBy } = known
    return member.state === 'suspect' || member.state === 'dead'
      ? { member, suspectedBy }
      : undefined
  }

  sync(to: Address, request: SyncRequest): void {
    this.syncs.push({ to, request })
  }

  emit(event: SwimEvent): void {
    this.events.push(event)
  }

  below(below: number): number {
    return Math.floor(this.options.chance() * below)
  }

  take(): Effects {
    const { packets, syncs, events } = this
    this.packets = []
    this.syncs = []
    this.events = []
    return { packets, syncs, events }
  }
}
