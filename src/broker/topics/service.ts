// Topics as clients manage them: every change is one command to the metadata log, and what this broker runs follows from
// what was applied, never from what was asked. So a crash between the two heals at the next start.

import { assert } from '../../base/assert.ts'
import { EastGuardError } from '../../base/errors.ts'
import type { PolicyChanges, Refusal } from '../../core/metadata/commands.ts'
import type { Placement, Topic } from '../../core/metadata/types.ts'
import type { NodeId, TopicId } from '../../model/ids.ts'
import { minInsyncDefault, type TopicPolicy } from '../../model/policy.ts'
import { checkPolicy } from '../../model/policy-check.ts'
import { newTopicId, TOPIC_ID_RANDOM_BYTES } from '../../model/shards.ts'
import { checkTopicName } from '../../model/topic-name.ts'
import type { Clock } from '../../ports/clock.ts'
import type { TopicRef } from '../metadata/types.ts'
import type { BrokerOptions, BrokerParts } from '../options.ts'
import { type NodeLoad, SegmentLoad } from './load.ts'
import { type Place, placeRanges, usablePlaces } from './placing.ts'

export interface CreateTopicRequest {
  readonly name: string
  /** What is absent is the broker's default; a replication factor of 0 is "as many as there are, at most the default". */
  readonly policy: Partial<TopicPolicy>
  /** Hexadecimal; empty: none. A retry with the same token gets the first's result. */
  readonly creationToken: string
  readonly ifNotExists: boolean
}

export interface CreatedTopic {
  readonly topic: Topic
  readonly existing: boolean
}

/** Producer ids given to one asker at a time. */
const PRODUCER_IDS_BLOCK = 1000
const ROUTE_FRESH_MS = 500
/** For those who have asked for an equal policy to count as success already. */
const OTHER_POLICY_HINT = 'use another name, the policy that it has, or change it with alter-topic'

export class TopicService {
  private readonly options: BrokerOptions
  private readonly parts: BrokerParts
  private readonly load: SegmentLoad
  /** Until something changes. */
  private sorted: readonly Topic[] | undefined
  private nextProducerId = 0
  private producerIdsLeft = 0
  private allocating: Promise<void> | undefined

  constructor(options: BrokerOptions, parts: BrokerParts) {
    this.options = options
    this.parts = parts
    this.load = new SegmentLoad(parts.metadata)
    parts.metadata.onChange(() => {
      this.sorted = undefined
    })
  }

  async create(request: CreateTopicRequest): Promise<CreatedTopic> {
    checkTopicName(request.name)
    // One that exists takes no space, and whoever asks again is told so.
    if (!this.parts.metadata.state.topicsByName.has(request.name)) this.checkSpace()
    const policy = this.policyOf(request.policy)
    const random = this.parts.ports.random.bytes(TOPIC_ID_RANDOM_BYTES)
    const topicId = newTopicId(request.name, random)
    const result = await this.parts.metadata.propose({
      kind: 'CreateTopic',
      name: request.name,
      topicId,
      policy,
      placement: this.placements(topicId, policy.ranges, policy.replicationFactor),
      creationToken: request.creationToken,
      ifNotExists: request.ifNotExists,
      system: false,
      timeMs: this.parts.ports.clock.wall(),
    })
    if (!result.ok) throw refused(result, request.ifNotExists ? OTHER_POLICY_HINT : undefined)
    return { topic: result.answer.topic, existing: result.answer.outcome === 'existing' }
  }

  private policyOf(given: Partial<TopicPolicy>): TopicPolicy {
    const asked = given.replicationFactor ?? 0
    const replicationFactor = asked > 0 ? asked : this.replicasByDefault()
    this.checkBrokers(replicationFactor)
    const ranges = given.ranges ?? 1
    const defaults = this.options.defaultPolicy(replicationFactor)
    // Who got fewer replicas than the operator meant need not stop writing with the first that is lost.
    const fewer = replicationFactor < this.options.defaultReplicationFactor
    const minInsyncMost = fewer ? minInsyncDefault(replicationFactor) : replicationFactor
    const policy: TopicPolicy = {
      ...defaults,
      ...given,
      replicationFactor,
      minInsyncReplicas:
        given.minInsyncReplicas ?? Math.min(defaults.minInsyncReplicas, minInsyncMost),
      ranges,
      rangeMode: given.rangeMode ?? (ranges > 1 ? 'fixed' : 'auto'),
    }
    checkPolicy(policy)
    return policy
  }

  private replicasByDefault(): number {
    return Math.max(1, Math.min(this.options.defaultReplicationFactor, this.places().length))
  }

  private places(): readonly Place[] {
    return usablePlaces(this.options, this.parts.metadata.state.nodes)
  }

  private checkBrokers(asked: number): void {
    const usable = this.places().length
    if (asked <= usable) return
    const alive = usable === 1 ? '1 broker is alive' : `${usable} brokers are alive`
    const message = `${asked} replicas are asked for, but ${alive} and not draining`
    throw new EastGuardError('NOT_ENOUGH_BROKERS', message, { detail: { asked, alive: usable } })
  }

  private placements(topicId: TopicId, ranges: number, replicas: number): readonly Placement[] {
    const load = (node: NodeId): NodeLoad => this.load.of(node)
    const nodes = placeRanges(ranges, replicas, this.places(), load, topicId)
    return nodes.map((chosen) => ({ replicas: chosen, token: '', stateDigest: '' }))
  }

  async delete(ref: TopicRef): Promise<Topic> {
    const { topicId } = await this.findFresh(ref)
    const result = await this.parts.metadata.propose({ kind: 'DeleteTopic', topicId })
    if (!result.ok) throw refused(result)
    return result.answer.topic
  }

  async alter(ref: TopicRef, changes: PolicyChanges): Promise<Topic> {
    const topic = await this.findFresh(ref)
    const { replicationFactor = 0 } = changes
    if (replicationFactor > topic.policy.replicationFactor) this.checkBrokers(replicationFactor)
    checkPolicy({ ...topic.policy, ...changes })
    const result = await this.parts.metadata.propose({
      kind: 'AlterTopic',
      topicId: topic.topicId,
      changes,
    })
    if (!result.ok) throw refused(result)
    return result.answer.topic
  }

  async addPartitions(ref: TopicRef, partitions: number): Promise<Topic> {
    const { topicId, policy } = await this.findFresh(ref)
    this.checkSpace()
    const [placement] = this.placements(topicId, 1, policy.replicationFactor)
    assert(placement !== undefined, 'there is a placement for each range')
    const result = await this.parts.metadata.propose({
      kind: 'AddPartitions',
      topicId,
      partitions,
      placement,
      timeMs: this.parts.ports.clock.wall(),
    })
    if (!result.ok) throw refused(result)
    return result.answer.topic
  }

  /** What only takes more is refused on a full disk, before it uses up what deletions need. */
  private checkSpace(): void {
    if (this.parts.store.room(0) !== 'full') return
    throw new EastGuardError('STORAGE_FULL', 'the disk of the broker is full')
  }

  /** As it is after all that anybody was answered. Rejects with UNKNOWN_TOPIC or METADATA_UNAVAILABLE. */
  async findFresh(ref: TopicRef): Promise<Topic> {
    await this.parts.metadata.fresh(ref)
    return this.find(ref)
  }

  /**
   * For routing: fresh if the shard's leader says so soon, else what this broker knows. Who is cut off from the leader may
   * still read what is here, and a route that is out of date is told so. Rejects with UNKNOWN_TOPIC or METADATA_UNAVAILABLE.
   */
  async findRoute(ref: TopicRef): Promise<Topic> {
    const { metadata, ports } = this.parts
    const fresh = metadata.fresh(ref)
    await settledWithin(ports.clock, fresh, ROUTE_FRESH_MS)
    const known =
      ref.name !== undefined
        ? metadata.state.topicsByName.get(ref.name)
        : metadata.state.topics.get(ref.topicId)
    if (known !== undefined) return known
    await fresh
    return this.find(ref)
  }

  /** As far as this broker knows. Throws UNKNOWN_TOPIC. */
  find(ref: TopicRef): Topic {
    const { state } = this.parts.metadata
    const topic =
      ref.name !== undefined ? state.topicsByName.get(ref.name) : state.topics.get(ref.topicId)
    if (topic !== undefined) return topic
    const what = ref.name !== undefined ? `named '${ref.name}'` : `with the id ${ref.topicId}`
    throw new EastGuardError('UNKNOWN_TOPIC', `there is no topic ${what}`)
  }

  /** By name. */
  list(): readonly Topic[] {
    this.sorted ??= [...this.parts.metadata.state.topics.values()].sort((a, b) =>
      a.name < b.name ? -1 : 1,
    )
    return this.sorted
  }

  /** Fresh for ever: ids of a block that a crash left unused are skipped. */
  async allocateProducerId(): Promise<number> {
    while (this.producerIdsLeft === 0) {
      this.allocating ??= this.allocateBlock().finally(() => {
        this.allocating = undefined
      })
      await this.allocating
    }
    this.producerIdsLeft--
    return this.nextProducerId++
  }

  private async allocateBlock(): Promise<void> {
    const result = await this.parts.metadata.propose({
      kind: 'AllocateProducerIds',
      count: PRODUCER_IDS_BLOCK,
    })
    if (!result.ok) throw refused(result)
    this.nextProducerId = result.answer.first
    this.producerIdsLeft = result.answer.count
  }
}

function refused(refusal: Refusal, existsHint?: string): EastGuardError {
  const { code, message, detail } = refusal
  const hint = code === 'TOPIC_EXISTS' ? existsHint : undefined
  return new EastGuardError(code, message, { detail, ...(hint === undefined ? {} : { hint }) })
}

/** Resolves when the promise has settled, either way, or the time is over. */
function settledWithin(clock: Clock, promise: Promise<unknown>, ms: number): Promise<void> {
  return new Promise((resolve) => {
    const timer = clock.after(ms, resolve)
    const settled = (): void => {
      timer.cancel()
      resolve()
    }
    promise.then(settled, settled)
  })
}
