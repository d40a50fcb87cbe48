// This broker's part in the membership: core/swim, which decides, driven by packets, connections and time.
//
//   UDP ──> receive ─┐                         ┌─> packets ──> UDP
//   TCP <── answer ──┤                         ├─> syncs ────> TCP, one connection each; outcomes go back in
//   timer ── tick ───┼──> Swim ── take() ──────┤
//   the broker ──────┘                         ├─> events ───> hooks, log
//                                              └─> view ─────> who listens, when it has changed
//
// All effects leave in one place, `perform`, after each call. Only one of them waits for a disk: the cluster that a new broker
// belongs to. Until that is written down nothing goes out, since a broker that forgot it would join, or found, a second time.
//
// A member that is called late takes itself to have slept, so the timer is set anew, to the very moment, whenever that moves.

import { sameAddress } from '../../base/address.ts'
import { assert } from '../../base/assert.ts'
import { getU32, toHex } from '../../base/bytes.ts'
import { Truncated } from '../../base/cursor.ts'
import { EastGuardError } from '../../base/errors.ts'
import { Swim } from '../../core/swim/swim.ts'
import {
  type Effects,
  type PacketSizes,
  SWIM_SETTINGS,
  type SwimEvent,
  type View,
} from '../../core/swim/types.ts'
import { clusterId, type NodeId } from '../../model/ids.ts'
import type { ClusterIdentity, Profile, ShardHint } from '../../model/swim.ts'
import type { Timer } from '../../ports/clock.ts'
import type { Address, Streams } from '../../ports/streams.ts'
import { HINT_BYTES, updateBytes } from '../../wire/swim/fields.ts'
import { packetRoom, readPacket, writePacket } from '../../wire/swim/packet.ts'
import { readSyncRequest, writeSyncAnswer } from '../../wire/swim/sync.ts'
import type { Neighbour } from '../options.ts'
import { type PacketSeal, packetSeal } from '../seal/packets.ts'
import { KeyRefusals } from '../seal/refusals.ts'
import { sealedStreams } from '../seal/sealed-streams.ts'
import { type ClusterPort, openClusterPort } from './cluster-port.ts'
import { MembersMetrics } from './counters.ts'
import { refusedAsOld, SeedNews, tellFounded, tellHeld, tellMember } from './news.ts'
import { Syncs } from './syncs.ts'
import type { MembersOptions, ViewListener } from './types.ts'

const SIZES: PacketSizes = { room: packetRoom, update: updateBytes, hint: HINT_BYTES }
const ID_BYTES = 16
const NONCE_BYTES = 4

interface Joining {
  resolve(cluster: ClusterIdentity): void
  reject(error: unknown): void
}

export class Members {
  private readonly options: MembersOptions
  private readonly swim: Swim
  private readonly metrics: MembersMetrics
  private readonly syncs: Syncs
  private readonly packets: PacketSeal
  private readonly keyRefusals: KeyRefusals
  private readonly seedNews: SeedNews
  private readonly listeners: ViewListener[] = []
  private profile: Profile
  private port: ClusterPort | undefined
  private timer: Timer | undefined
  private timerDue = Number.POSITIVE_INFINITY
  private joining: Joining | undefined
  private seeds: readonly Address[] = []
  private departed: (() => void) | undefined
  private leaving: Promise<void> | undefined
  private performing = false
  /** The cluster is being written down: effects wait, these and those that core/swim still has. */
  private writing = false
  private held: Effects | undefined
  /** The view that listeners were told of last. */
  private toldVersion = 0
  private toldStable: number | undefined
  private viewMayDiffer = true
  private stopped = false

  constructor(options: MembersOptions) {
    const { ports, nodeId, bootCount, cluster, peers, profile } = options
    const settings = { ...SWIM_SETTINGS, ...options.settings }
    this.options = options
    this.swim = new Swim(
      {
        node: nodeId,
        boot: bootCount,
        nonce: getU32(ports.random.bytes(NONCE_BYTES), 0),
        cluster,
        peers,
        profile,
        settings,
        sizes: SIZES,
        chance: () => ports.random.float(),
      },
      ports.clock.monotonic(),
    )
    this.profile = profile
    this.seedNews = new SeedNews(ports.log)
    this.metrics = new MembersMetrics(ports.metrics, this.swim)
    this.packets = packetSeal(options.clusterKeys)
    this.keyRefusals = new KeyRefusals(ports)
    this.syncs = new Syncs({
      clock: ports.clock,
      streams: () => this.streams,
      timeoutMs: settings.syncTimeoutMs,
      malformed: this.metrics.malformed,
      answered: (to, answer) => {
        if (this.awaits(to)) this.seedNews.answered(to, answer)
        this.step((now) => this.swim.syncAnswered(to, answer, now))
      },
      failed: (to, why) => {
        if (this.awaits(to)) this.seedNews.silent(to, why)
        this.step((now) => this.swim.syncFailed(to, now))
      },
    })
  }

  // Coming and going.

  /** Opens the cluster port, UDP and TCP under one number. Rejects with an Error that names the address. */
  async listen(address: Address): Promise<Address> {
    assert(this.port === undefined, 'a member has one cluster port')
    const { ports, settings, clusterKeys } = this.options
    const { syncTimeoutMs } = { ...SWIM_SETTINGS, ...settings }
    const port = await openClusterPort(
      {
        ports,
        clusterKeys,
        keyRefusals: this.keyRefusals,
        syncTimeoutMs,
        onPacket: (packet, from) => this.onPacket(packet, from),
        onSync: (request) => this.onSync(request),
      },
      address,
    )
    this.port = port
    if (this.stopped) await port.close()
    const bound = port.address ?? address
    const { cluster } = this.profile
    if (cluster.port === 0) this.setProfile({ cluster: { ...cluster, port: bound.port } })
    return bound
  }

  /** For broker/peers: what comes to the cluster port and is neither a packet nor a sync. After `listen`. */
  get streams(): Streams {
    const { port } = this
    assert(port !== undefined, 'the cluster port is open')
    return port.streams
  }

  /**
   * Resolves when the cluster is known and the state of others was learned; a broker that has no seeds but itself founds a
   * cluster, or goes on in its own and waits to be found. Waits for seeds as long as it takes. Rejects with what `onCluster`
   * rejects with, with DATA_DIR_MISMATCH when others know a later life of this node, and with BROKER_STOPPED.
   */
  join(seeds: readonly Address[]): Promise<ClusterIdentity> {
    assert(
      this.port !== undefined && this.joining === undefined,
      'a member listens, and joins once',
    )
    this.seeds = seeds
    return new Promise((resolve, reject) => {
      this.joining = { resolve, reject }
      if (this.stopped) reject(stopped())
      this.step((now) => this.swim.join(seeds, now))
    })
  }

  /** For good: others do not count on this broker until its next start. Resolves when they have been told. */
  leave(): Promise<void> {
    this.leaving ??= new Promise((resolve) => {
      this.departed = resolve
      this.step((now) => this.swim.leave(now))
      // Of one that takes no part nobody need be told.
      if (this.stopped || this.swim.nextTick === Number.POSITIVE_INFINITY) resolve()
    })
    return this.leaving
  }

  /** Without a word: others find out, as after a crash. Links that broker/peers has are its own. */
  async stop(): Promise<void> {
    this.stopped = true
    this.timer?.cancel()
    this.joining?.reject(stopped())
    this.departed?.()
    this.syncs.stop()
    await this.port?.close()
  }

  // What this broker says.

  setProfile(change: Partial<Profile>): void {
    this.profile = { ...this.profile, ...change }
    this.step((now) => this.swim.setProfile(this.profile, now))
  }

  /** This broker leads the shard: others are told. */
  lead(shard: number, term: number): void {
    const { nodeId } = this.options
    this.step((now) => this.swim.lead({ shard, term, leader: nodeId }, now))
  }

  // Who is there.

  /** Undefined until this broker has joined one, or founded one. */
  get cluster(): ClusterIdentity | undefined {
    return this.swim.cluster
  }

  /** Of the dead, too: they may only be out of reach. */
  addressOf(node: NodeId): Address | undefined {
    return this.swim.memberOf(node)?.profile.cluster
  }

  dataAddressOf(node: NodeId): Address | undefined {
    return this.swim.memberOf(node)?.profile.data
  }

  /** Connections of another port than the cluster port, sealed if those are. */
  sealed(streams: Streams): Streams {
    const { clusterKeys } = this.options
    return clusterKeys === undefined
      ? streams
      : sealedStreams(streams, clusterKeys, this.keyRefusals)
  }

  leaderOf(shard: number): ShardHint | undefined {
    return this.swim.leaderOf(shard)
  }

  /** All that are known and have not left, this broker left out. */
  neighbours(): readonly Neighbour[] {
    return this.known().filter(({ state }) => state !== 'left')
  }

  /** All that are known, this broker left out. */
  known(): readonly Neighbour[] {
    const all: Neighbour[] = []
    for (const { member } of this.swim.table.all()) {
      const { node: nodeId, state, boot } = member
      const { name: displayName, hostLabel, rackLabel, cluster, client, data } = member.profile
      all.push({
        nodeId,
        displayName,
        hostLabel,
        rackLabel,
        state,
        boot,
        cluster,
        client,
        data,
      })
    }
    return all
  }

  view(): View {
    return this.swim.view()
  }

  /** `listener` is told the view whenever its version, or since when it is stable, has changed. */
  onView(listener: ViewListener): void {
    this.listeners.push(listener)
  }

  // What comes from the network.

  private onPacket(bytes: Uint8Array, from: Address): void {
    // What cannot be answered yet is lost, as packets may be.
    if (this.writing) return
    const plain = this.packets.open(bytes)
    if (plain === undefined) return this.metrics.unopened.add(1)
    const packet = this.readable(() => readPacket(plain))
    if (packet !== undefined) this.step((now) => this.swim.receive(packet, from, now))
  }

  private onSync(bytes: Uint8Array): Uint8Array | undefined {
    if (this.writing || this.stopped) return undefined
    const request = this.readable(() => readSyncRequest(bytes))
    if (request === undefined) return undefined
    const answer = this.swim.answerSync(request, this.options.ports.clock.monotonic())
    this.perform()
    return writeSyncAnswer(answer)
  }

  private readable<T>(read: () => T): T | undefined {
    try {
      return read()
    } catch (error) {
      if (!(error instanceof Truncated)) throw error
      this.metrics.malformed.add(1)
      return undefined
    }
  }

  // Calls in, effects out.

  private step(act: (now: number) => void): void {
    if (this.stopped) return
    act(this.options.ports.clock.monotonic())
    this.perform()
  }

  private perform(): void {
    // A hook that calls in again is served by the loop that called it.
    if (this.performing) return
    this.performing = true
    try {
      while (!this.writing && !this.stopped) {
        const effects = this.held ?? this.swim.take()
        this.held = undefined
        if (isEmpty(effects)) break
        this.carryOut(effects)
      }
    } finally {
      this.performing = false
    }
    this.metrics.update()
    this.arm()
    this.tellView()
  }

  private carryOut(effects: Effects): void {
    for (const event of effects.events) {
      if (event.kind !== 'cluster') continue
      const events = effects.events.filter((one) => one !== event)
      this.write(event.cluster, false, () => {
        this.held = { ...effects, events }
      })
      return
    }
    for (const { to, packet } of effects.packets) {
      this.port?.send(this.packets.seal(writePacket(packet)), to)
    }
    for (const { to, request } of effects.syncs) this.syncs.ask(to, request)
    for (const event of effects.events) this.tell(event)
    if (effects.events.length > 0) this.viewMayDiffer = true
  }

  /** Holds all effects until the cluster is written down. */
  private write(cluster: ClusterIdentity, founder: boolean, then: () => void): void {
    this.writing = true
    this.options.hooks.onCluster(cluster, founder).then(
      () => {
        this.writing = false
        if (this.stopped) return
        then()
        this.perform()
      },
      (error: unknown) => {
        // Nothing was said, and nothing will be.
        this.joining?.reject(error)
        void this.stop()
      },
    )
  }

  private found(): void {
    const { ports, metadataShards: shards } = this.options
    const id = clusterId(toHex(ports.random.bytes(ID_BYTES)))
    const cluster = { id, foundedMs: ports.clock.wall(), shards }
    this.write(cluster, true, () => {
      tellFounded(ports.log, cluster, this.seeds.length > 0)
      this.swim.found(cluster, ports.clock.monotonic())
    })
  }

  private tell(event: SwimEvent): void {
    const { hooks, ports, nodeId, bootCount } = this.options
    const { log } = ports
    switch (event.kind) {
      case 'cluster':
        return
      case 'no-seeds':
        return this.found()
      case 'joined':
        return this.tellJoined()
      case 'member':
        tellMember(log, event)
        return hooks.onMember?.(event.member, event.was, event.restarted)
      case 'held':
        return tellHeld(log, event)
      case 'forgotten':
        return log.info('a broker is forgotten: it was gone for long', { node: event.node })
      case 'hint':
        return hooks.onHint?.(event.hint)
      case 'foreign-cluster': {
        const { cluster, from, yields } = event
        log.warn('brokers of another cluster are there', { cluster: cluster.id, yields, from })
        return hooks.onForeign(cluster, yields, from)
      }
      case 'refused': {
        const error = refusedAsOld(nodeId, bootCount, event.boot)
        log.error(error.message, { hint: error.hint })
        this.joining?.reject(error)
        return hooks.onRefused(event.boot)
      }
      case 'departed':
        return this.departed?.()
    }
  }

  /** Nobody need be told of peers of an earlier start that are not there yet. */
  private awaits(to: Address): boolean {
    return !this.swim.joined && this.seeds.some((seed) => sameAddress(seed, to))
  }

  private tellJoined(): void {
    const { cluster } = this.swim
    assert(cluster !== undefined, 'whoever has joined belongs to a cluster')
    const brokers = this.swim.table.liveCount
    this.options.ports.log.info('the broker is in its cluster', { cluster: cluster.id, brokers })
    this.joining?.resolve(cluster)
  }

  private tellView(): void {
    const { table, cluster } = this.swim
    if (this.writing || cluster === undefined) return
    // To put a view together takes a look at every member; packets that bring no news are many.
    if (!this.viewMayDiffer && table.version === this.toldVersion) return
    this.viewMayDiffer = false
    const view = this.swim.view()
    if (view.version === this.toldVersion && view.stableSince === this.toldStable) return
    this.toldVersion = view.version
    this.toldStable = view.stableSince
    for (const listener of this.listeners) listener(view)
  }

  private arm(): void {
    const due = this.writing || this.stopped ? Number.POSITIVE_INFINITY : this.swim.nextTick
    if (due === this.timerDue) return
    this.timer?.cancel()
    this.timer = undefined
    this.timerDue = due
    if (due === Number.POSITIVE_INFINITY) return
    const { clock } = this.options.ports
    this.timer = clock.after(due - clock.monotonic(), () => {
      this.timerDue = Number.POSITIVE_INFINITY
      this.step((now) => this.swim.tick(now))
    })
  }
}

function isEmpty({ packets, syncs, events }: Effects): boolean {
  return packets.length === 0 && syncs.length === 0 && events.length === 0
}

function stopped(): EastGuardError {
  return new EastGuardError('BROKER_STOPPED', 'the broker stops')
}
