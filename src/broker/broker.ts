// One broker: the topics it runs, what doors may ask of it, and its upkeep. It owns no protocol and no port number; a
// composition root gives it its parts, doors call it.
//
//   door ── produce / openStream / fetch ──> leader, cursor ──> LogStore
//   door ── topics.create / delete / ... ──> MetadataLog ──applied──> onChange ──> what runs here
//
// What runs here follows the applied metadata only, so that a restart arrives at the same state.

import { EastGuardError } from '../base/errors.ts'
import type { NodeId, TopicId } from '../model/ids.ts'
import type { NodeRole, TopicView } from '../model/metadata.ts'
import { redirectError, redirectIn } from '../model/redirect.ts'
import type { SegmentKey } from '../model/segment-key.ts'
import type { DataMessage } from '../wire/data/types.ts'
import type { DescribeClusterResponse } from '../wire/native/describe-cluster.ts'
import type { ForceEndRequest, ForceEndResponse } from '../wire/native/force-end.ts'
import type { ShardAt } from '../wire/peer/segments.ts'
import { makeContext } from './context.ts'
import { brokenHere, describeCluster, reachable } from './describe.ts'
import { toEastGuardError } from './errors.ts'
import { forceEnd } from './forcing.ts'
import type { TopicRef } from './metadata/types.ts'
import type { BrokerOptions, BrokerParts } from './options.ts'
import type { RangeContext } from './range/context.ts'
import { RangeLeader } from './range/leader.ts'
import { Cursor } from './read/cursor.ts'
import { earliestOffset, type FoundOffset, latestOffset, offsetByTime } from './read/offsets.ts'
import { StaleWatch } from './read/staleness.ts'
import { Channels } from './replica/channels.ts'
import { DataPlane } from './replica/data-plane.ts'
import { Leftovers } from './replica/leftovers.ts'
import { Repairs } from './replica/repairs.ts'
import { LocalReplicas } from './replica/replicas.ts'
import { NO_SENDINGS } from './replica/sending.ts'
import { Stager, storeHere } from './replica/stager.ts'
import type { Control, Replicas } from './replica/types.ts'
import type { ProduceSink } from './sinks.ts'
import { withHeld } from './topics/held.ts'
import { TopicRuntime } from './topics/runtime.ts'
import { TopicRuntimes } from './topics/runtimes.ts'
import { TopicService } from './topics/service.ts'
import { Upkeep } from './upkeep.ts'

export class Broker {
  readonly options: BrokerOptions
  readonly parts: BrokerParts
  readonly topics: TopicService
  readonly runtimes: TopicRuntimes = new TopicRuntimes()
  readonly replicas: Replicas
  private readonly control: Control
  private readonly context: RangeContext
  private readonly stager: Stager
  private readonly leftovers: Leftovers
  private readonly staleWatch: StaleWatch
  private readonly data: DataPlane | undefined
  private readonly repairs: Repairs
  private readonly upkeep: Upkeep
  private readonly unlisten: () => void
  /** Deletions whose disk space is not free yet. */
  private readonly dropping = new Map<TopicId, Promise<void>>()
  private stopped = false

  /** The metadata is complete and the store has recovered; `settleRecovered` of topics/recovered.ts has run. */
  constructor(options: BrokerOptions, parts: BrokerParts) {
    this.options = options
    this.parts = parts
    this.topics = new TopicService(options, parts)
    const { metrics } = parts.ports
    const { boot } = options
    const { data } = parts
    const { clock } = parts.ports
    const channels = data === undefined ? undefined : new Channels(data, clock, options.hwStaleMs)
    this.context = makeContext(options, parts, {
      control: () => this.control,
      sendings: channels ?? NO_SENDINGS,
      over: (key) => this.stager.forget(key),
      damaged: (key) => this.damaged(key),
      stored: (key, token) => this.leftovers.staged(key, token),
    })
    const { context, runtimes } = this
    this.data = channels === undefined ? undefined : new DataPlane(context, runtimes, channels)
    this.stager = new Stager(context, this.data?.packages ?? storeHere(context))
    this.repairs = new Repairs(context, this.data?.fetches)
    this.leftovers = new Leftovers(context)
    this.staleWatch = new StaleWatch(clock, context.watched, options.hwStaleMs)
    context.seals.onSealed = (key) => this.repairs.lookAt(key)
    const { stager, repairs } = this
    const shardAt = (shard: number): ShardAt => {
      return { shard, index: parts.metadata.appliedOf(shard) }
    }
    this.replicas = new LocalReplicas({ context, runtimes, stager, repairs, boot, shardAt })
    this.control = parts.control(this.replicas)
    for (const topic of parts.metadata.state.topics.values()) {
      this.runtimes.add(new TopicRuntime(this.context, topic, true))
      this.repairs.topicChanged(topic, undefined)
    }
    this.unlisten = parts.metadata.onChange((changed) => {
      for (const topicId of changed) this.changed(topicId)
    })
    this.upkeep = new Upkeep(this, this.context)
    metrics.gauge('eastguard_topics', 'Topics', () => parts.metadata.state.topics.size)
    metrics.gauge(
      'eastguard_produce_waiting_bytes',
      'Bytes of produces that wait for their range or for room',
      () => this.context.held.bytes,
    )
    metrics.gauge(
      'eastguard_segments_under_repair',
      'Copies of sealed segments here that lack entries',
      () => this.repairs.underWay,
    )
    metrics.gauge(
      'eastguard_segments_unfit',
      'Open segments with a replica here that cannot go on',
      () => this.context.census.unfit.size,
    )
    metrics.gauge('eastguard_disk_free_bytes', 'Free bytes of the disk', () => {
      return parts.store.freeBytes
    })
    metrics.gauge('eastguard_disk_full', '1: records are refused for want of space', () => {
      return Number(parts.store.isFull)
    })
    const { totals } = this.context
    metrics.gauge('eastguard_produced_batches', 'Batches appended', () => totals.batches)
    metrics.gauge('eastguard_produced_bytes', 'Bytes of batches appended', () => totals.bytes)
    this.upkeep.start()
    if (data !== undefined) this.staleWatch.start()
    this.leftovers.look().catch((error: unknown) => {
      parts.ports.log.warn('what earlier starts have left could not be looked through', {
        err: error,
      })
    })
  }

  private changed(topicId: TopicId): void {
    const topic = this.parts.metadata.state.topics.get(topicId)
    const runtime = this.runtimes.get(topicId)
    const before = runtime?.topic
    if (topic === undefined) {
      this.leftovers.topicGone(topicId)
      if (runtime !== undefined) this.forget(runtime)
    } else if (runtime === undefined) {
      this.runtimes.add(new TopicRuntime(this.context, topic, false))
    } else runtime.update(topic)
    if (topic === undefined) return
    this.repairs.topicChanged(topic, before)
    this.leftovers.topicChanged(topic, before)
  }

  /** A sealed segment is copied anew; an open one that others have too is ended, and then it is one that is sealed. */
  private damaged(key: SegmentKey): void {
    this.repairs.lookAt(key)
    const copy = this.runtimes.get(key.topicId)?.copyOfRange(key.range)
    const { damage } = this.parts.store.find(key) ?? {}
    if (copy?.key.segment !== key.segment || copy.open.replicas.length === 1) return
    if (copy.role instanceof RangeLeader) copy.role.roll('damaged')
    else if (copy.status === 'live' && damage !== undefined) copy.break(damage)
  }

  private forget(runtime: TopicRuntime): void {
    const { topicId, name } = runtime.topic
    this.runtimes.remove(runtime)
    runtime.delete()
    const dropped = this.parts.store.dropTopic(topicId, name).then(
      () => {
        this.dropping.delete(topicId)
      },
      (error: unknown) => {
        this.parts.ports.log.error('the data of a deleted topic could not be removed', {
          topic: name,
          topicId,
          err: error,
        })
        throw error
      },
    )
    // Whoever deletes the topic waits for it and is told; the next start tries again.
    dropped.catch(() => {})
    this.dropping.set(topicId, dropped)
  }

  /** Resolves when the topic is gone for everyone and its disk space is free. */
  async deleteTopic(ref: TopicRef): Promise<void> {
    const { topicId } = await this.topics.delete(ref)
    await this.dropping.get(topicId)
  }

  /**
   * One batch for one partition; the topic's id lies at `idAt` in `id`. Answered through the sink, at once or in a later
   * turn. `commit` must follow in the same turn.
   */
  produce(
    id: Uint8Array,
    idAt: number,
    partition: number,
    leastKeyHash: number,
    greatestKeyHash: number,
    batch: Uint8Array,
    acks: number,
    timeoutMs: number,
    sink: ProduceSink,
    slot: number,
  ): void {
    const runtime = this.runtimes.find(id, idAt)
    if (runtime === undefined) {
      sink.refused(
        slot,
        'UNKNOWN_TOPIC',
        'there is no topic with this id; it may have been deleted',
      )
      return
    }
    if (runtime.system) {
      const message = `the topic ${runtime.topic.name} is written by the cluster itself`
      sink.refused(slot, 'TOPIC_PROTECTED', message)
      return
    }
    const leader = runtime.leaderOf(partition)
    if (leader === undefined) {
      const error = this.notHere(runtime, partition)
      sink.refused(slot, error.code, error.message, redirectIn(error))
      return
    }
    leader.produce(partition, batch, leastKeyHash, greatestKeyHash, acks, timeoutMs, sink, slot)
  }

  /** Starts a group commit of what was produced, unless one runs. Once per received chunk. */
  commit(): void {
    this.parts.store.commit()
  }

  /** A place to read from, or why there is none. */
  cursor(topicId: TopicId, partition: number, offset: number): Cursor | EastGuardError {
    if (this.stopped) return new EastGuardError('BROKER_STOPPED', 'the broker is stopping')
    const runtime = this.runtimes.get(topicId)
    if (runtime === undefined) {
      return new EastGuardError('UNKNOWN_TOPIC', `there is no topic with the id ${topicId}`)
    }
    if (runtime.openSegment(partition) === undefined) return this.notHere(runtime, partition)
    return new Cursor(this.context, runtime, partition, offset)
  }

  /** `at`: 'earliest', 'latest' or a timestamp in milliseconds. Rejects with an EastGuardError. */
  async findOffset(
    topicId: TopicId,
    partition: number,
    at: 'earliest' | 'latest' | number,
  ): Promise<FoundOffset> {
    const cursor = this.cursor(topicId, partition, 0)
    if (cursor instanceof EastGuardError) throw cursor
    try {
      if (at === 'earliest') return await earliestOffset(cursor)
      if (at === 'latest') return await latestOffset(cursor)
      return await offsetByTime(this.parts.ports.compute, cursor, at)
    } catch (error) {
      throw toEastGuardError(error)
    }
  }

  /** Rejects with UNKNOWN_TOPIC or METADATA_UNAVAILABLE. */
  async describeTopic(ref: TopicRef): Promise<TopicView> {
    return withHeld(await this.topics.findFresh(ref), this.parts.store)
  }

  async describeCluster(): Promise<DescribeClusterResponse> {
    const { metadata, store } = this.parts
    const space = await this.parts.space()
    const troubles = [...(this.control.troubles?.() ?? []), ...brokenHere(this.context.census)]
    return describeCluster(this.options, metadata.state, space, troubles, (node) =>
      node === this.options.nodeId ? store.isFull : this.control.diskFull?.(node) === true,
    )
  }

  /** Drains a broker, ends that, or removes it for good. Rejects with UNKNOWN_BROKER or METADATA_CONFLICT. */
  async setRole(nodeId: NodeId, role: NodeRole): Promise<NodeRole> {
    const result = await this.parts.metadata.propose({ kind: 'SetNodeRole', nodeId, role })
    if (result.ok) return result.answer.role
    const { code, message, detail } = result
    throw new EastGuardError(code, message, { detail })
  }

  /** See Control. Rejects with END_NOT_FORCED, UNKNOWN_TOPIC, METADATA_UNAVAILABLE, or NOT_LEADER and who decides. */
  async forceEnd(request: ForceEndRequest): Promise<ForceEndResponse> {
    const topic = await this.topics.findFresh({ name: request.topic })
    return forceEnd(topic, request, this.control, (node) => reachable(this.options, [node]))
  }

  private notHere(runtime: TopicRuntime, partition: number): EastGuardError {
    const { name, policy } = runtime.topic
    const open = runtime.openSegment(partition)
    if (open === undefined) {
      const message = `the topic ${name} has ${policy.partitions} partitions and no partition ${partition}`
      return new EastGuardError('UNKNOWN_PARTITION', message)
    }
    const [leader] = open.replicas
    const message = `partition ${partition} of topic ${name} is led by node ${leader ?? 'none'}`
    const brokers = leader === undefined ? [] : reachable(this.options, [leader])
    return redirectError('NOT_LEADER', message, { segment: open.segment, brokers })
  }

  /** From another broker, over the data port. */
  received(from: NodeId, boot: number, message: DataMessage): void {
    if (!this.stopped) this.data?.receive(from, boot, message)
  }

  /** The store has room again: produces that waited for it go on. */
  roomAgain(): void {
    const { parked } = this.context
    for (const follower of Array.from(parked)) {
      parked.delete(follower)
      follower.resume()
    }
    for (const leader of this.context.holding.all()) leader.resumeHeld()
  }

  /** Everybody who waits is told BROKER_STOPPED. The parts stay open; their owner closes them. */
  async stop(): Promise<void> {
    if (this.stopped) return
    this.stopped = true
    this.unlisten()
    await this.upkeep.stop()
    this.control.stop()
    this.repairs.stop()
    this.staleWatch.stop()
    this.data?.stop()
    this.context.ticking.stop()
    for (const runtime of this.runtimes.all()) runtime.stop()
    await this.context.seals.stop()
    await Promise.allSettled(this.dropping.values())
  }
}
