// Three brokers of one process: each with its own store in memory, links that can be cut, and one metadata log that all see at
// once. The coordinator is the test's: it rolls an end as soon as a leader gives one, or when the test says so. Time passes with what
// happens, a millisecond with so many turns of the event loop: however slow the machine is, a message takes no longer.

import { fromHex } from '../../../src/base/bytes.ts'
import { EastGuardError } from '../../../src/base/errors.ts'
import { Broker } from '../../../src/broker/broker.ts'
import { REPLICATION_DEFAULTS } from '../../../src/broker/options.ts'
import { RangeFollower } from '../../../src/broker/range/follower.ts'
import type { Control, Replicas } from '../../../src/broker/replica/types.ts'
import { ACKS_ALL, type ProduceSink } from '../../../src/broker/sinks.ts'
import { rangeByNumber } from '../../../src/core/metadata/lookup.ts'
import { emptyState } from '../../../src/core/metadata/machine.ts'
import type { Segment, Topic } from '../../../src/core/metadata/types.ts'
import { type NodeId, nodeId, topicId } from '../../../src/model/ids.ts'
import { POLICY_DEFAULTS, type TopicPolicy } from '../../../src/model/policy.ts'
import type { LeadersEnd, StageOutcome, StageReport } from '../../../src/model/segment-ends.ts'
import type { SegmentKey } from '../../../src/model/segment-key.ts'
import { simCompute } from '../../../src/sim/ports/compute.ts'
import { simLog } from '../../../src/sim/ports/log.ts'
import { simMetrics } from '../../../src/sim/ports/metrics.ts'
import { type ManualClock, manualClock, seededRandom } from '../../storage/support/ports.ts'
import { MemoryMetadata } from '../support/harness.ts'
import { MemoryStore } from '../support/memory-store.ts'
import { batchOf } from '../support/raw-client.ts'
import { MemoryNet } from './net.ts'

export const A: NodeId = nodeId('aa'.repeat(16))
export const B: NodeId = nodeId('bb'.repeat(16))
export const C: NodeId = nodeId('cc'.repeat(16))
const TOPIC = topicId('00'.repeat(16))
const WITHIN_MS = 5000
/** A message and its answer take two. */
const TURNS_PER_MS = 4

export interface Node {
  readonly id: NodeId
  readonly store: MemoryStore
  readonly broker: Broker
  readonly replicas: Replicas
}

interface Answer {
  readonly offset: number
  readonly code: string | undefined
}

export class Rig {
  readonly clock: ManualClock = manualClock()
  readonly net: MemoryNet = new MemoryNet()
  readonly metadata: MemoryMetadata = new MemoryMetadata(emptyState())
  readonly nodes: Map<NodeId, Node> = new Map()
  /** Who gets the next segment, leader first. Ends are left alone while it is empty. */
  placement: readonly NodeId[] = [A, B, C]
  /** Those who have no lease. */
  readonly unleased: Set<NodeId> = new Set()
  readonly given: LeadersEnd[] = []
  private readonly rolling = new Map<string, { key: SegmentKey; end: number; tailFrom: number }>()
  private tokens = 0
  private over = false

  static async make(policy: Partial<TopicPolicy> = {}): Promise<Rig> {
    const rig = new Rig()
    void rig.passTime()
    for (const id of [A, B, C]) rig.start(id)
    await rig.metadata.propose({
      kind: 'CreateTopic',
      name: 't',
      topicId: TOPIC,
      policy: {
        ...POLICY_DEFAULTS,
        partitions: 2,
        replicationFactor: 3,
        minInsyncReplicas: 2,
        ...policy,
      },
      placement: [{ replicas: [A, B, C], token: '', stateDigest: '' }],
      creationToken: '',
      ifNotExists: false,
      system: false,
      timeMs: 1,
    })
    return rig
  }

  private async passTime(): Promise<void> {
    while (!this.over) {
      for (let i = 0; i < TURNS_PER_MS; i++) await turn()
      this.clock.advance(1)
    }
  }

  /** Again: on what its store holds, as another start. */
  start(id: NodeId, store: MemoryStore = new MemoryStore(this.clock), boot: number = 1): Node {
    let broker: Broker | undefined
    const metadata = new MemoryMetadata(this.metadata.state)
    // One log, of which each broker has its own view of changes.
    metadata.propose = (command) => this.metadata.propose(command)
    metadata.onChange = (listener) => this.metadata.onChange(listener)
    const data = this.net.join(id, boot, (from, of, message) => broker?.received(from, of, message))
    const ports = {
      clock: this.clock,
      random: seededRandom(1000 * boot + this.nodes.size),
      compute: simCompute,
      log: simLog(),
      metrics: simMetrics(),
    }
    broker = new Broker(
      {
        nodeId: id,
        clusterId: 'cd'.repeat(16),
        displayName: id.slice(0, 2),
        version: '0',
        advertised: { host: '127.0.0.1', port: 1 },
        others: () => [],
        hostLabel: id,
        rackLabel: '',
        shards: () => [],
        defaultPolicy: (replicationFactor) => ({
          ...POLICY_DEFAULTS,
          replicationFactor,
          minInsyncReplicas: 1,
        }),
        defaultReplicationFactor: 3,
        retentionCheckMs: 1000,
        producerIdExpiryMs: 3_600_000,
        heldBytesMax: 1024 * 1024,
        boot,
        ...REPLICATION_DEFAULTS,
        segmentTiming: { ...REPLICATION_DEFAULTS.segmentTiming, replicaAckTimeoutMs: 300 },
      },
      {
        ports,
        metadata,
        store,
        space: async () => ({ totalBytes: 1, freeBytes: 1 }),
        data,
        control: () => this.controlOf(id),
      },
    )
    const node = { id, store, broker, replicas: broker.replicas }
    this.nodes.set(id, node)
    return node
  }

  private controlOf(id: NodeId): Control {
    return {
      leased: () => !this.unleased.has(id),
      hooks: {
        gave: (key, given) => {
          this.given.push(given)
          if (this.placement.length > 0) this.roll(id, key, given.end, given.highWatermark)
        },
        staged: (key, token, outcome) => this.staged(key, token, outcome),
      },
      stop: () => {},
    }
  }

  get topic(): Topic {
    return this.metadata.state.topics.get(TOPIC) as Topic
  }

  segments(): readonly Segment[] {
    return rangeByNumber(this.topic, 0)?.segments ?? []
  }

  get key(): SegmentKey {
    return { topicId: TOPIC, range: 0, segment: this.segments().at(-1)?.segment ?? 0 }
  }

  node(id: NodeId): Node {
    const node = this.nodes.get(id)
    if (node === undefined) throw new Error(`${id} does not run`)
    return node
  }

  /** Has `holder` stage the successor, and proposes it. */
  roll(holder: NodeId, key: SegmentKey, end: number, tailFrom: number): void {
    if ([...this.rolling.values()].some((roll) => roll.key.segment === key.segment)) return
    const token = `${++this.tokens}`.padStart(32, '0')
    this.rolling.set(token, { key, end, tailFrom })
    const replicas = this.placement
    this.node(holder).replicas.stage({ key, token, end, tailFrom, replicas })
  }

  readonly failedStages: StageOutcome[] = []

  private staged(key: SegmentKey, token: string, outcome: StageReport): void {
    const roll = this.rolling.get(token)
    if (roll === undefined || 'moved' in outcome) return
    this.rolling.delete(token)
    if ('failed' in outcome) {
      this.failedStages.push(outcome)
      return
    }
    void this.metadata.propose({
      kind: 'RollSegment',
      ...key,
      attempt: this.segments().find(({ segment }) => segment === key.segment)?.attempt ?? 0,
      endEntry: roll.end,
      tailFrom: roll.tailFrom,
      nextOffsets: outcome.nextOffsets,
      placement: { replicas: this.placement, token, stateDigest: outcome.stateDigest },
      timeMs: 2,
    })
  }

  produce(at: NodeId, value: string, acks: number = ACKS_ALL): Promise<Answer> {
    return this.produceBatch(at, batchOf([value]), acks)
  }

  produceBatch(at: NodeId, batch: Uint8Array, acks: number = ACKS_ALL): Promise<Answer> {
    return new Promise((resolve) => {
      const sink: ProduceSink = {
        produced: (_slot, offset) => resolve({ offset, code: undefined }),
        refused: (_slot, code) => resolve({ offset: -1, code }),
      }
      const { broker } = this.node(at)
      broker.produce(fromHex(TOPIC), 0, 0, 0, 2 ** 32 - 1, batch, acks, 2000, sink, 0)
      broker.commit()
    })
  }

  /** Values, or the code of what went wrong. */
  async read(at: NodeId, offset: number = 0): Promise<readonly number[] | string> {
    const cursor = this.node(at).broker.cursor(TOPIC, 0, offset)
    if (cursor instanceof EastGuardError) return cursor.code
    const offsets: number[] = []
    try {
      for (;;) {
        await cursor.highWatermark()
        const entries = await cursor.next(1024)
        if (entries.length === 0) return offsets
        for (const entry of entries) offsets.push(entry.baseOffset)
        cursor.passed(entries)
      }
    } catch (error) {
      if (offsets.length > 0 && error instanceof EastGuardError) return offsets
      if (error instanceof EastGuardError) return error.code
      throw error
    }
  }

  /** Rejects when it has not come true in a while. */
  async until(what: string, holds: () => boolean | Promise<boolean>): Promise<void> {
    const deadline = this.clock.monotonic() + WITHIN_MS
    while (!(await holds())) {
      if (this.clock.monotonic() > deadline) throw new Error(`${what}: not within ${WITHIN_MS} ms`)
      await turn()
    }
  }

  /** How many entries of the segment a broker holds. */
  entriesAt(id: NodeId, segment: number): number {
    return this.node(id).store.find({ topicId: TOPIC, range: 0, segment })?.end ?? 0
  }

  /** Of the open segment. */
  followerAt(id: NodeId): RangeFollower {
    const role = this.node(id).broker.runtimes.get(TOPIC)?.copyOfRange(0)?.role
    if (!(role instanceof RangeFollower)) throw new Error(`${id} follows nobody`)
    return role
  }

  async stop(id: NodeId): Promise<void> {
    const { broker } = this.node(id)
    await broker.parts.data?.stop()
    await broker.stop()
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const id of this.nodes.keys()) await this.stop(id)
    this.over = true
  }
}

function turn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve))
}
