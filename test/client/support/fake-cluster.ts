// Several fake brokers that share one truth: each partition's log, and the segments that it is made of, each with its
// replicas. What a broker does follows from what it has heard of that truth, as in a real cluster:
//
//   truth    segment 0: [A B]   1: [B C]   2: [C A]
//   A knows  segment 0: [A B]                          says that A leads, and takes nothing (it is fenced), until it hears
//   C knows  all                                       leads
//   B knows  segment 0, 1                              sends producers to itself, readers of segment 2 nowhere yet
//
// Logs are committed as they are stored: what a real cluster does for that is not the client's matter.

import assert from 'node:assert/strict'
import { type NodeId, nodeId, topicId } from '../../../src/model/ids.ts'
import type { RangeView, SegmentView, TopicView } from '../../../src/model/metadata.ts'
import { POLICY_DEFAULTS } from '../../../src/model/policy.ts'
import { type Redirect, SEGMENT_UNKNOWN } from '../../../src/model/redirect.ts'
import type { Clock } from '../../../src/ports/clock.ts'
import type { Address } from '../../../src/ports/streams.ts'
import type { SimNetwork } from '../../../src/sim/ports/network.ts'
import { FakeBroker } from './fake-broker.ts'
import { FakePartition, type FakeTopic } from './fake-log.ts'
import {
  brokerView,
  type FakeBrokerView,
  type Refused,
  type Ruling,
  viewOf,
} from './fake-ruling.ts'
import type { FakeStreams } from './fake-streams.ts'

const PORT = 2921

interface FakeSegment {
  /** By index of the broker; the first leads while the segment is the last. */
  readonly replicas: readonly number[]
  readonly firstOffset: number
}

class Member implements Ruling {
  readonly index: number
  readonly node: NodeId
  readonly address: Address
  readonly topics: Map<string, FakeTopic>
  readonly broker: FakeBroker
  up = true
  /** It hears of nothing new. */
  lags = false
  /** It has not heard of the topic. */
  stranger = false
  /** Answers, wrongly, as only a leader may. */
  lies = false
  /** What it has heard: segments and end of each partition. */
  heard: { segments: number; end: number }[] = []
  private readonly cluster: FakeCluster

  constructor(cluster: FakeCluster, index: number, clock: Clock) {
    this.cluster = cluster
    this.index = index
    this.node = nodeId((index + 1).toString(16).padStart(32, '0'))
    this.address = { host: `b${index}`, port: PORT }
    this.topics = cluster.topics
    this.broker = new FakeBroker(clock, this.address, this)
  }

  nextProducerId(): number {
    return this.cluster.nextProducerId++
  }

  knows(partition: number): readonly FakeSegment[] {
    const { segments = 1 } = this.heard[partition] ?? {}
    return this.cluster.segmentsOf(partition).slice(0, segments)
  }

  view(topic: FakeTopic): TopicView {
    let version = 0
    const ranges = topic.partitions.map((_, partition): RangeView => {
      const known = this.knows(partition)
      version += known.length
      const segments = known.map(
        ({ replicas, firstOffset }, segment): SegmentView => ({
          segment,
          state: segment === known.length - 1 ? 'open' : 'sealed',
          replicas: replicas.map((index) => this.cluster.member(index).node),
          firstOffsets: [firstOffset],
          openedAtMs: 0,
        }),
      )
      return {
        range: partition,
        state: 'active',
        firstPartition: partition,
        endPartition: partition + 1,
        parents: [],
        children: [],
        segments: segments.slice(-1),
      }
    })
    return viewOf(topic, version, ranges)
  }

  brokers(): readonly FakeBrokerView[] {
    return this.cluster.members.map(({ node, address, up, index }) =>
      brokerView(node, address, {
        nodeNumber: index + 1,
        state: up ? 'alive' : 'dead',
        hostLabel: `host ${index}`,
        rackLabel: `rack ${index % 2}`,
      }),
    )
  }

  private redirect(partition: number, replicas: readonly number[]): Redirect {
    const brokers = replicas.map((index) => {
      const { node, address } = this.cluster.member(index)
      return { nodeId: node, address }
    })
    const segment = this.cluster.vague ? SEGMENT_UNKNOWN : this.knows(partition).length - 1
    return { segment, brokers }
  }

  notLeader(_topic: FakeTopic, partition: number): Refused | undefined {
    if (this.stranger) return { error: 'UNKNOWN_TOPIC' }
    const known = this.knows(partition)
    const [leader = 0] = known.at(-1)?.replicas ?? []
    const newest = known.length === this.cluster.segmentsOf(partition).length
    if (leader === this.index && newest) return undefined
    return { error: 'NOT_LEADER', redirect: this.redirect(partition, [leader]) }
  }

  reads(topic: FakeTopic, partition: number, offset: number): { readonly end: number } | Refused {
    const log = topic.partitions[partition]
    const known = this.knows(partition)
    if (log === undefined) return { error: 'UNKNOWN_PARTITION' }
    if (this.stranger) return { error: 'UNKNOWN_TOPIC' }
    const leads = this.notLeader(topic, partition) === undefined
    if ((leads || this.lies) && (offset < log.start || offset > this.endHere(partition, log))) {
      return { error: 'OFFSET_OUT_OF_RANGE' }
    }
    const at = Math.max(
      0,
      known.findLastIndex(({ firstOffset }) => firstOffset <= offset),
    )
    const { replicas } = known[at] as FakeSegment
    if (!replicas.includes(this.index)) {
      return { error: 'NOT_REPLICA', redirect: this.redirect(partition, replicas) }
    }
    const next = this.cluster.segmentsOf(partition)[at + 1]?.firstOffset ?? Infinity
    return { end: Math.min(next, this.endHere(partition, log)) }
  }

  private endHere(partition: number, log: FakePartition): number {
    const leader = this.cluster.leaderOf(partition) === this.index
    return leader && !this.lags ? log.end : (this.heard[partition]?.end ?? 0)
  }

  hear(): void {
    if (this.lags) return
    this.heard = this.cluster.topic.partitions.map(({ end }, partition) => ({
      segments: this.cluster.segmentsOf(partition).length,
      end,
    }))
    this.broker.streams.pump()
  }

  stored(own: FakeStreams): void {
    own.pump()
  }
}

export class FakeCluster {
  readonly topics: Map<string, FakeTopic> = new Map()
  readonly members: Member[]
  readonly topic: FakeTopic
  nextProducerId = 1
  /** Redirects do not say of which segment they speak. */
  vague = false
  private readonly segments: FakeSegment[][]
  private readonly network: SimNetwork

  /** One topic, 't'; partition p is led by broker p, round and round. */
  constructor(
    clock: Clock,
    network: SimNetwork,
    brokers: number,
    partitions: number,
    replicationFactor: number,
  ) {
    this.network = network
    this.topic = {
      name: 't',
      id: topicId('f'.repeat(32)),
      policy: { ...POLICY_DEFAULTS, replicationFactor, minInsyncReplicas: 1, partitions },
      partitions: Array.from({ length: partitions }, () => new FakePartition()),
    }
    this.topics.set('t', this.topic)
    this.segments = Array.from({ length: partitions }, (_, partition) => {
      const replicas = Array.from(
        { length: replicationFactor },
        (__, i) => (partition + i) % brokers,
      )
      return [{ replicas, firstOffset: 0 }]
    })
    this.members = Array.from({ length: brokers }, (_, index) => new Member(this, index, clock))
    this.spread()
  }

  async start(): Promise<void> {
    for (const { index } of this.members) await this.up(index)
  }

  member(index: number): Member {
    const member = this.members[index]
    assert.ok(member)
    return member
  }

  segmentsOf(partition: number): readonly FakeSegment[] {
    return this.segments[partition] ?? []
  }

  leaderOf(partition: number): number {
    return this.segmentsOf(partition).at(-1)?.replicas[0] ?? 0
  }

  async up(index: number): Promise<void> {
    const member = this.member(index)
    member.up = true
    await member.broker.start(this.network.streams(member.address.host))
  }

  async down(index: number): Promise<void> {
    this.member(index).up = false
    await this.member(index).broker.stop()
  }

  /** The partition goes on in a new segment, whose first replica leads. Who hears of it, and when, is another matter. */
  move(partition: number, replicas: readonly number[]): void {
    const firstOffset = this.topic.partitions[partition]?.end ?? 0
    this.segments[partition]?.push({ replicas, firstOffset })
  }

  /** Everybody hears of everything, but those that lag. */
  spread(): void {
    for (const member of this.members) member.hear()
  }

  values(partition: number): string[] {
    return this.member(0).broker.values(this.topic, partition)
  }
}
