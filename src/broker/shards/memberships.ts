// This broker as a member of shards' groups: it takes what other members send, and as a leader what anybody proposes, asks or
// wants to follow.
//
//   raft messages, offers, reads ─> raft ─> Turns ─> journal, peers
//                                             └────> committed entries ─> the shard's copy ─> FeedSource

import { isMember, isVoter } from '../../core/raft/members.ts'
import type { Effects, MembersChange, RaftOptions } from '../../core/raft/types.ts'
import { type NodeId, nodeId } from '../../model/ids.ts'
import type { Entry, Members, Message, Refusal } from '../../model/raft.ts'
import type { FeedRequest, Propose } from '../../wire/peer/types.ts'
import { Accepted } from './accepted.ts'
import { Checkpoints } from './checkpoints.ts'
import type { ShardCopy } from './copy.ts'
import { FeedSource } from './feed-source.ts'
import { proposalId } from './proposals.ts'
import { Replica } from './replica.ts'
import { Turns } from './turns.ts'
import type { ShardsOptions, ShardView } from './types.ts'

/** A little early, so that a beat that is due at a tick is not put off to the next. */
const HEARTBEAT_SHARE = 0.9
const APPEND_BYTES = 256 * 1024
const APPENDS_IN_FLIGHT = 64
const UNCOMMITTED_BYTES_MAX = 16 * 1024 * 1024
const NODE_ID_DIGITS = 32
/** What a message takes in the journal beside its data. */
const MESSAGE_OVERHEAD_BYTES = 1024

export interface MembershipsHost {
  copyOf(shard: number): ShardCopy
  /** A member has a leader. */
  led(shard: number, node: NodeId, term: number): void
  /** The answer to a read; undefined: ask the leader again. */
  index(asker: NodeId, shard: number, id: number, index: number | undefined): void
  failed(error: Error): void
}

export class Memberships {
  readonly turns: Turns
  private readonly options: ShardsOptions
  private readonly host: MembershipsHost
  private readonly replicas = new Map<number, Replica>()
  private readonly accepted = new Map<number, Accepted>()
  private readonly feedSource: FeedSource
  private readonly checkpoints: Checkpoints

  constructor(options: ShardsOptions, host: MembershipsHost) {
    this.options = options
    this.host = host
    const { journal, snapshotBytesLeast, ports } = options
    this.turns = new Turns({
      clock: ports.clock,
      journal,
      send: (to, messages) => options.send(to, messages),
      took: (replica, effects) => this.took(replica, effects),
      failed: (error) => host.failed(error),
    })
    this.feedSource = new FeedSource((to, message) => this.turns.send(to, message))
    this.checkpoints = new Checkpoints({
      journal,
      clock: ports.clock,
      log: ports.log,
      snapshotBytesLeast,
      replica: (shard) => this.replicas.get(shard),
      copyOf: (shard) => host.copyOf(shard),
      failed: (error) => host.failed(error),
    })
  }

  /** What the journal holds; a founder begins what it does not hold. Throws DAMAGED. */
  restore(): void {
    const { shards, founder, nodeId: own, journal } = this.options
    const alone: Members | undefined = founder ? { voters: [own], learners: [] } : undefined
    for (let shard = 0; shard < shards; shard++) {
      if (alone !== undefined || journal.recovered.has(shard)) this.add(shard, alone)
    }
  }

  private add(shard: number, founder: Members | undefined): Replica {
    const { journal, ports } = this.options
    const host = { journal, clock: ports.clock, log: ports.log }
    const replica = new Replica(shard, host, this.raftOptions(), founder, this.now)
    this.replicas.set(shard, replica)
    const { snapshot } = replica.raft.log
    const copy = this.host.copyOf(shard)
    if (snapshot !== undefined) copy.install(snapshot)
    // Who founds a group is named by no entry.
    if (replica.raft.members.voters.length > 0) copy.members ??= replica.raft.members
    this.turns.mark(replica)
    return replica
  }

  private raftOptions(): RaftOptions {
    const { nodeId: id, electionTimeoutMs, heartbeatMs, entriesKept, ports } = this.options
    return {
      id,
      electionTimeoutMs,
      heartbeatMs: heartbeatMs * HEARTBEAT_SHARE,
      appendBytesMax: APPEND_BYTES,
      appendsInFlightMax: APPENDS_IN_FLIGHT,
      snapshotPartBytes: APPEND_BYTES,
      uncommittedBytesMax: UNCOMMITTED_BYTES_MAX,
      entriesKept,
      chance: () => ports.random.float(),
    }
  }

  private get now(): number {
    return this.options.ports.clock.monotonic()
  }

  isMember(shard: number): boolean {
    const raft = this.replicas.get(shard)?.raft
    return raft !== undefined && isMember(raft.members, this.options.nodeId)
  }

  /**
   * It is told by a leader what has committed. One that was removed while it was away takes itself for a member still, and no
   * leader will ever tell it otherwise.
   */
  hears(shard: number): boolean {
    return this.isMember(shard) && this.replicas.get(shard)?.raft.leader !== undefined
  }

  /** Undefined: this broker has never been a member. */
  view(shard: number): ShardView | undefined {
    const raft = this.replicas.get(shard)?.raft
    if (raft === undefined) return undefined
    const { members, leader, term, role, commit, appliedIndex } = raft
    const settled = raft.log.membersIndex <= commit
    return { members, settled, leader, term, role, commit, appliedIndex }
  }

  /**
   * The term in which it leads, once the copy has applied an entry of that term: what it knows of the shard then is all that
   * anybody was ever answered.
   */
  leads(shard: number): number | undefined {
    const raft = this.replicas.get(shard)?.raft
    if (raft?.role !== 'leader') return undefined
    return this.host.copyOf(shard).appliedTerm === raft.term ? raft.term : undefined
  }

  /** Nobody else can lead at this moment. */
  holdsLease(shard: number): boolean {
    return this.replicas.get(shard)?.raft.holdsLease(this.now) ?? false
  }

  /** Of its log, from an index on: what is held and has committed. */
  committed(shard: number, from: number): readonly Entry[] {
    const raft = this.replicas.get(shard)?.raft
    if (raft === undefined) return []
    const { log, commit } = raft
    return log.slice(Math.max(from, log.firstIndex), commit, Number.POSITIVE_INFINITY)
  }

  tick(): void {
    const { now } = this
    for (const replica of this.replicas.values()) {
      if (replica.waits || replica.raft.nextTick > now) continue
      replica.raft.tick(now)
      this.turns.mark(replica)
    }
    this.checkpoints.tick()
  }

  raftMessage(shard: number, message: Message): void {
    // What the disk has no room for is lost on the way, as far as the sender knows.
    if (isLong(message) && !this.options.journal.hasRoom(bytesOf(message))) return
    const replica = this.replicas.get(shard) ?? this.add(shard, undefined)
    if (replica.waits) return
    replica.raft.receive(message, this.now)
    this.turns.mark(replica)
  }

  private took(replica: Replica, effects: Effects): void {
    const { shard, raft } = replica
    const copy = this.host.copyOf(shard)
    const before = copy.appliedIndex
    if (effects.installed && effects.snapshot !== undefined) copy.install(effects.snapshot)
    copy.apply(effects.committed)
    if (copy.appliedIndex > before) {
      this.feedSource.advanced(replica, raft.appliedIndex, this.now)
      this.checkpoints.applied(shard)
    }
    for (const { id, index } of effects.reads) {
      const asker = nodeId(id.slice(0, NODE_ID_DIGITS))
      this.host.index(asker, shard, Number(id.slice(NODE_ID_DIGITS)), index)
    }
    if (raft.leader !== undefined) this.host.led(shard, raft.leader, raft.term)
  }

  // As a leader.

  /** Why an offer is not taken; undefined: it is. */
  take({ shard, term, proposer, number, below, command }: Propose): Refusal | undefined {
    const replica = this.replicas.get(shard)
    if (replica?.raft.role !== 'leader' || replica.raft.term !== term) return 'not-leader'
    const accepted = this.acceptedOf(shard)
    if (accepted.knows(term, proposer, number, below)) return undefined
    // What only takes more is refused before it uses up what deletions need.
    const { options } = this
    if (options.isGrowing(command) && !options.journal.hasRoom(command.length)) {
      return 'storage-full'
    }
    const result = replica.raft.propose(proposalId(proposer, number), command)
    if (typeof result !== 'number') return result
    accepted.add(proposer, number)
    this.turns.mark(replica)
    return undefined
  }

  private acceptedOf(shard: number): Accepted {
    let accepted = this.accepted.get(shard)
    if (accepted === undefined) {
      accepted = new Accepted()
      this.accepted.set(shard, accepted)
    }
    return accepted
  }

  /** `index` of the host brings the answer. */
  read(asker: NodeId, shard: number, id: number): void {
    const replica = this.replicas.get(shard)
    if (replica === undefined || replica.waits) {
      this.host.index(asker, shard, id, undefined)
      return
    }
    replica.raft.read(`${asker}${id}`, this.now)
    this.turns.mark(replica)
  }

  /** False: this broker is no member, or knows nothing new and hears of nothing: it may have been removed. */
  feed(to: NodeId, request: FeedRequest): boolean {
    const { shard, fromIndex } = request
    const replica = this.replicas.get(shard)
    if (replica === undefined || !this.isMember(shard)) return false
    if (!this.hears(shard) && replica.raft.appliedIndex < fromIndex) return false
    this.feedSource.asked(to, replica, replica.raft.appliedIndex, request, this.now)
    return true
  }

  change(shard: number, id: string, change: MembersChange): Refusal | undefined {
    const replica = this.replicas.get(shard)
    if (replica === undefined) return 'not-leader'
    const result = replica.raft.change(id, change, this.now)
    this.turns.mark(replica)
    return typeof result === 'number' ? undefined : result
  }

  /** Only to one that could follow at once: while another catches up, which it may never, nothing could be proposed. */
  handOver(shard: number, to: NodeId): Refusal | undefined {
    const replica = this.replicas.get(shard)
    if (replica?.raft.role !== 'leader') return 'not-leader'
    const { raft } = replica
    if (isVoter(raft.members, to) && !raft.hasCaughtUp(to)) return 'not-caught-up'
    return this.transfer(replica, to)
  }

  private transfer(replica: Replica, to: NodeId): Refusal | undefined {
    const refusal = replica.raft.handOver(to, this.now)
    this.turns.mark(replica)
    return refusal
  }

  /** Asks the most advanced other voter of each shard led here to take over; whether there is any shard left. */
  handAllOver(): boolean {
    let left = false
    for (const replica of this.replicas.values()) {
      const { role, successor } = replica.raft
      if (role !== 'leader' || successor === undefined) continue
      left = true
      this.transfer(replica, successor)
    }
    return left
  }

  /** No file is being written any more when it resolves. */
  async close(): Promise<void> {
    this.turns.stop()
    await Promise.all(Array.from(this.replicas.values(), (replica) => replica.close()))
  }
}

/** It brings something that is kept. Terms and votes have room of their own. */
function isLong(message: Message): boolean {
  return message.kind === 'snapshot' || (message.kind === 'append' && message.entries.length > 0)
}

function bytesOf(message: Message): number {
  let bytes = MESSAGE_OVERHEAD_BYTES
  if (message.kind === 'snapshot') bytes += message.bytes.length
  if (message.kind !== 'append') return bytes
  for (const { payload } of message.entries) {
    if (payload.kind === 'command') bytes += payload.data.length
  }
  return bytes
}
