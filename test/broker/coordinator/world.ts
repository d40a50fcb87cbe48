// Some brokers as far as the control of segments goes, in virtual time: each has a Control, toy replicas that hold numbers of
// entries instead of entries, and the one metadata that all of them see. Messages take a few milliseconds; who is cut off loses them.

import { EastGuardError } from '../../../src/base/errors.ts'
import { prng } from '../../../src/base/prng.ts'
import { Control } from '../../../src/broker/coordinator/control.ts'
import type { MetadataListener, MetadataLog } from '../../../src/broker/metadata/types.ts'
import type { Replicas } from '../../../src/broker/replica/types.ts'
import type { Command, ResultOf } from '../../../src/core/metadata/commands.ts'
import { apply, emptyState } from '../../../src/core/metadata/machine.ts'
import type { MetadataState, Segment, Topic } from '../../../src/core/metadata/types.ts'
import { SEGMENT_TIMING } from '../../../src/core/segment/types.ts'
import type { NodeId, TopicId } from '../../../src/model/ids.ts'
import type { EndReason } from '../../../src/model/segment-ends.ts'
import { keyText, type SegmentKey } from '../../../src/model/segment-key.ts'
import { newTopicId, shardOfTopic } from '../../../src/model/shards.ts'
import type { Clock } from '../../../src/ports/clock.ts'
import { SimClock } from '../../../src/sim/ports/clock.ts'
import { simMetrics } from '../../../src/sim/ports/metrics.ts'
import { simRandom } from '../../../src/sim/ports/random.ts'
import type { SegmentMessage, UnfitSegment } from '../../../src/wire/peer/segments.ts'
import { createTopic, node, policy } from '../../core/metadata/support.ts'
import { settle } from '../../ports/support.ts'
import { keptLog } from '../../storage/support/ports.ts'

const SHARDS = 4
const LINK_MS = 2
const STAGE_MS = 3
const PROPOSE_MS = 5

export class Machine {
  readonly node: NodeId
  readonly log: ReturnType<typeof keptLog> = keptLog()
  boot: number = 0
  control: Control | undefined
  oldestSyncMs: number = 0
  diskFull: boolean = false
  paused: boolean = false
  /** For each staging, which are done one after the other; 0: in no time. */
  stageMs: number = 0
  private stagedMs: number = 0
  /** Off, until it goes on. */
  readonly put: (() => void)[] = []
  /** What it said. */
  readonly sent: { readonly to: NodeId; readonly message: SegmentMessage }[] = []
  /** Entries of open segments, by key; those of an earlier start cannot go on. */
  readonly entries: Map<string, number> = new Map()
  readonly earlier: Set<string> = new Set()
  readonly ended: Set<string> = new Set()
  /** What it is not sure to have all of, and why. */
  readonly doubts: Map<string, string> = new Map()
  /** The tokens of what it was to stage. */
  readonly ordered: Set<string> = new Set()
  /** A producer waits for these. */
  readonly waited: Set<string> = new Set()
  /** Sealed segments that it does not have all of. */
  readonly lacks: Set<string> = new Set()
  private readonly world: World

  constructor(world: World, number: number) {
    this.world = world
    this.node = node(number)
  }

  /** Segments that it leads, by the metadata. */
  led(): readonly SegmentKey[] {
    return this.world.openSegments().flatMap(({ key, segment }) => {
      return segment.replicas[0] === this.node ? [key] : []
    })
  }

  replicas(): Replicas {
    const { world } = this
    const { boot } = this
    return {
      fence: (key) => {
        const text = keyText(key)
        this.ended.add(text)
        const end = this.entries.get(text) ?? 0
        const unsure = this.doubts.get(text)
        return Promise.resolve({ boot, end, highWatermark: end, unsure })
      },
      giveEndAsked: (key, attempt, why) => this.giveEnd(key, attempt, why),
      endRefused: () => {},
      stage: ({ key, token }) => {
        if (this.ordered.has(token)) return
        this.ordered.add(token)
        const nowMs = world.clock.monotonic()
        this.stagedMs = Math.max(nowMs, this.stagedMs) + this.stageMs
        world.clock.after(this.stagedMs - nowMs + STAGE_MS, () => {
          if (this.boot !== boot) return
          const segment = world.open(key)
          const end = this.entries.get(keyText(key)) ?? 0
          const nextOffsets = (segment?.firstOffsets ?? []).map((offset) => offset + end)
          this.control?.hooks.staged(key, token, { nextOffsets, stateDigest: 'digest' })
        })
      },
      inspect: (key) => {
        const lacks = this.lacks.has(keyText(key))
        return Promise.resolve(lacks ? { kind: 'part', end: 0 } : { kind: 'whole', digest: 'd' })
      },
      unfit: () => this.unfit(),
      ledShards: () => {
        const shards = new Set(this.led().map(({ topicId }) => shardOfTopic(topicId, SHARDS)))
        return [...shards].map((shard) => ({ shard, index: world.state.appliedIndex }))
      },
    }
  }

  private unfit(): readonly UnfitSegment[] {
    const unfit = this.world.openSegments().flatMap(({ key, segment }): UnfitSegment[] => {
      if (!segment.replicas.includes(this.node) || !this.earlier.has(keyText(key))) return []
      return [{ key, why: 'restarted', waited: this.waited.has(keyText(key)) }]
    })
    return unfit.toSorted((a, b) => Number(b.waited) - Number(a.waited))
  }

  giveEnd(key: SegmentKey, attempt: number, why: EndReason): void {
    const text = keyText(key)
    if (this.ended.has(text) || this.earlier.has(text)) return
    const end = this.entries.get(text) ?? 0
    this.control?.hooks.gave(key, { attempt, end, highWatermark: end, failed: [], why })
  }
}

export class World {
  readonly clock: SimClock = new SimClock()
  readonly state: MetadataState = emptyState()
  readonly machines: readonly Machine[]
  /** Who leads each shard, and in which term. */
  readonly leaders: { node: NodeId; term: number }[]
  /** Nodes that hear and reach nobody. */
  readonly cut: Set<NodeId> = new Set()
  /** Nodes whose Raft leases have run out: another may lead by now. */
  readonly unsure: Set<NodeId> = new Set()
  /** SWIM has noticed. */
  readonly dead: Set<NodeId> = new Set()
  readonly rolls: { readonly key: SegmentKey; readonly atMs: number; readonly by: NodeId }[] = []
  private readonly listeners = new Map<NodeId, Set<MetadataListener>>()
  private readonly chance = prng(1)

  constructor(count: number) {
    this.machines = Array.from({ length: count }, (_, i) => new Machine(this, i + 1))
    const [first] = this.machines as [Machine]
    this.leaders = Array.from({ length: SHARDS }, () => ({ node: first.node, term: 1 }))
    for (const { node: nodeId } of this.machines) {
      this.command({ kind: 'AddNode', nodeId })
    }
    for (const machine of this.machines) this.start(machine)
  }

  machine(number: number): Machine {
    return this.machines[number - 1] as Machine
  }

  async run(ms: number): Promise<void> {
    await this.clock.advance(ms, settle)
  }

  // Topics.

  command<C extends Command>(command: C): ResultOf<C['kind']> {
    const { result, changed } = apply(this.state, command, this.state.appliedIndex + 1)
    for (const topicId of changed) {
      const shard = shardOfTopic(topicId, SHARDS)
      for (const listeners of this.listeners.values()) {
        for (const listener of listeners) listener([topicId], shard)
      }
    }
    return result as ResultOf<C['kind']>
  }

  create(name: string, replicas: readonly number[], least: number = 1): TopicId {
    const topicId = newTopicId(name, this.chance.bytes(12))
    const chosen = policy({
      partitions: 2,
      replicationFactor: replicas.length,
      minInsyncReplicas: least,
    })
    const nodes = replicas.map((number) => node(number))
    const placement = [{ replicas: nodes, token: '', stateDigest: '' }]
    this.command(createTopic({ name, topicId, policy: chosen, placement }))
    return topicId
  }

  openSegments(): readonly { readonly key: SegmentKey; readonly segment: Segment }[] {
    const open: { key: SegmentKey; segment: Segment }[] = []
    for (const { topicId, active } of this.state.topics.values()) {
      for (const { range, segments } of active) {
        const segment = segments.at(-1)
        if (segment?.state !== 'open') continue
        open.push({ key: { topicId, range, segment: segment.segment }, segment })
      }
    }
    return open
  }

  open({ topicId }: { readonly topicId: TopicId }): Segment | undefined {
    return this.state.topics.get(topicId)?.active[0]?.segments.at(-1)
  }

  /** The first segment. */
  sealed(topicId: TopicId): Segment | undefined {
    return this.state.topics.get(topicId)?.ranges[0]?.segments[0]
  }

  replicasOf(topicId: TopicId): readonly number[] {
    return (this.open({ topicId })?.replicas ?? []).map(Number)
  }

  /** Segments that a broker has told others to fence, each as often as it has. */
  fenced(number: number): readonly string[] {
    return this.machine(number).sent.flatMap(({ message }) => {
      return message.kind === 'fence' ? [keyText(message.key)] : []
    })
  }

  // Machines.

  start(machine: Machine): void {
    const { node: nodeId } = machine
    const boot = ++machine.boot
    for (const { key, segment } of this.openSegments()) {
      if (segment.replicas.includes(nodeId) && boot > 1) machine.earlier.add(keyText(key))
    }
    this.listeners.set(nodeId, new Set())
    machine.control = new Control({
      ports: {
        clock: this.clockOf(machine),
        random: simRandom(prng(machine.boot * 100 + Number(nodeId))),
        log: machine.log,
        metrics: simMetrics(),
      },
      nodeId,
      boot,
      metadata: this.metadataOf(machine),
      shards: {
        count: SHARDS,
        leads: (shard) => {
          const leader = this.leaders[shard]
          return leader?.node === nodeId ? leader.term : undefined
        },
        holdsLease: (shard) => this.leaders[shard]?.node === nodeId && !this.unsure.has(nodeId),
        copyOf: (shard) => this.copyOf(shard),
        leaderOf: (shard) => this.leaders[shard],
      },
      timing: SEGMENT_TIMING,
      leaseSyncMs: 100,
      brokers: () => this.seen(),
      oldestSyncMs: () => machine.oldestSyncMs,
      diskFull: () => machine.diskFull,
      send: (to, messages) => this.send(machine, to, messages),
      replicas: machine.replicas(),
    })
  }

  /** What it has to do while it is paused it does afterwards. */
  private clockOf(machine: Machine): Clock {
    const { clock } = this
    const after: Clock['after'] = (ms, run) =>
      clock.after(ms, () => {
        if (machine.paused) machine.put.push(run)
        else run()
      })
    return {
      monotonic: () => clock.monotonic(),
      wall: () => clock.wall(),
      after,
      nextTurn: (run) => void after(0, run),
    }
  }

  resume(machine: Machine): void {
    machine.paused = false
    for (const run of machine.put.splice(0)) run()
  }

  stop(machine: Machine): void {
    machine.control?.stop()
    machine.control = undefined
    this.listeners.delete(machine.node)
  }

  private seen(): readonly {
    node: NodeId
    hostLabel: string
    rackLabel: string
    alive: boolean
    boot: number
  }[] {
    return this.machines.map(({ node: nodeId, boot }) => ({
      node: nodeId,
      hostLabel: nodeId,
      rackLabel: '',
      alive: !this.dead.has(nodeId),
      boot,
    }))
  }

  private send(from: Machine, to: NodeId, messages: readonly SegmentMessage[]): void {
    for (const message of messages) from.sent.push({ to, message })
    const { boot } = from
    this.clock.after(LINK_MS, () => {
      if (this.cut.has(from.node) || this.cut.has(to) || from.boot !== boot) return
      const machine = this.machines.find((one) => one.node === to)
      if (machine?.paused === false) machine.control?.receive(from.node, messages)
    })
  }

  private copyOf(
    shard: number,
  ): ReturnType<ConstructorParameters<typeof Control>[0]['shards']['copyOf']> {
    const topics = new Map<TopicId, Topic>()
    for (const [topicId, topic] of this.state.topics) {
      if (shardOfTopic(topicId, SHARDS) === shard) topics.set(topicId, topic)
    }
    const state = { ...this.state, topics }
    return { appliedIndex: this.state.appliedIndex, state } as never
  }

  private metadataOf(machine: Machine): MetadataLog {
    const listeners = this.listeners.get(machine.node) ?? new Set()
    return {
      state: this.state,
      propose: (command, term) => this.propose(machine, command, term),
      fresh: () => Promise.resolve(),
      shardOf: (topicId) => shardOfTopic(topicId, SHARDS),
      appliedOf: () => this.state.appliedIndex,
      onChange: (listener) => {
        listeners.add(listener)
        return () => listeners.delete(listener)
      },
      close: () => Promise.resolve(),
    }
  }

  private propose<C extends Command>(
    { node: by }: Machine,
    command: C,
    term: number | undefined,
  ): Promise<ResultOf<C['kind']>> {
    return new Promise((resolve, reject) => {
      this.clock.after(PROPOSE_MS, () => {
        const shard = 'topicId' in command ? shardOfTopic(command.topicId, SHARDS) : 0
        if (this.cut.has(by) || (term !== undefined && term !== this.leaders[shard]?.term)) {
          reject(new EastGuardError('METADATA_UNAVAILABLE', 'another leads'))
          return
        }
        if (command.kind === 'RollSegment') {
          const { topicId, range, segment } = command
          this.rolls.push({ key: { topicId, range, segment }, atMs: this.clock.monotonic(), by })
        }
        resolve(this.command(command))
      })
    })
  }
}
