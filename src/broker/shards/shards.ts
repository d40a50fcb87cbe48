// The metadata of a cluster, as this broker takes part in it: a copy of every shard, and of some of them a member of the Raft
// group that owns it.
//
//   propose ─> Proposals ──offer──> the shard's leader: Memberships, here or elsewhere ─> the shard's log
//                  ^                                                                           │
//                  └──its own result── ShardCopy <──committed entries──────────────────────────┤
//                                          ^                                                   v
//   a broker that is no member:            └────────────── FeedFollower <── a member's FeedSource
//
// Who is a member is decided elsewhere and comes in through `change`.

import { assert } from '../../base/assert.ts'
import { toHex } from '../../base/bytes.ts'
import { EastGuardError } from '../../base/errors.ts'
import type { Result } from '../../core/metadata/commands.ts'
import { isMember } from '../../core/raft/members.ts'
import type { MembersChange } from '../../core/raft/types.ts'
import type { NodeId, TopicId } from '../../model/ids.ts'
import type { Entry, Refusal } from '../../model/raft.ts'
import type { Timer } from '../../ports/clock.ts'
import type {
  PeerMessage,
  Propose,
  ProposeAnswer,
  ShardLeader,
  ShardMessage,
} from '../../wire/peer/types.ts'
import { afterInput } from '../after-input.ts'
import { ShardCopy } from './copy.ts'
import { FeedFollower } from './feed-follower.ts'
import { Leaderless } from './leaderless.ts'
import { LeaderBook } from './leaders.ts'
import { Memberships } from './memberships.ts'
import { type Offer, Proposals, proposalId } from './proposals.ts'
import { Reads } from './reads.ts'
import type { ShardsOptions, ShardView } from './types.ts'

const TICKS_PER_HEARTBEAT = 2
/** What is under way when it closes has so long to be answered. */
const CLOSE_MS = 2000
const HAND_OVER_POLL_MS = 50
/** Where the numbers of what a start asks may begin. */
const NUMBERS = 2 ** 40

export class Shards {
  private readonly options: ShardsOptions
  private readonly copies: readonly ShardCopy[]
  private readonly memberships: Memberships
  private readonly leaders: LeaderBook
  private readonly proposals: Proposals
  private readonly reads: Reads
  private readonly feedFollower: FeedFollower
  /** Of this start. */
  private readonly proposer: string
  private readonly leaderless: Leaderless
  private ticker: Timer | undefined
  private asked = 0
  private changes = 0
  private closing = false
  private ended: EastGuardError | undefined

  /**
   * `onChange` is told of changed topics, before whoever asked for the change is answered. Throws DAMAGED when what the journal
   * holds cannot be understood.
   */
  constructor(
    options: ShardsOptions,
    onChange: (copy: ShardCopy, topics: readonly TopicId[]) => void,
  ) {
    this.options = options
    const { clock, random } = options.ports
    this.proposer = toHex(random.bytes(8))
    this.leaders = new LeaderBook(options.shards, (shard) => this.leaderChanged(shard))
    this.memberships = new Memberships(options, {
      copyOf: (shard) => this.copyOf(shard),
      led: (shard, node, term) => this.leaders.note(shard, { node, term }),
      index: (asker, shard, id, index) => this.sayIndex(asker, shard, id, index),
      failed: (error) => this.fail(error),
    })
    const asking = {
      clock,
      timeoutMs: options.timeoutMs,
      leaderOf: (shard: number) => this.leaderOf(shard),
      anyone: () => this.anyone(),
      // An answer to an earlier start of this broker may come late, and must not be taken for one to this.
      asked: Math.floor(random.float() * NUMBERS),
    }
    this.proposals = new Proposals({
      ...asking,
      proposer: this.proposer,
      offer: (to, offer) => this.offer(to, offer),
    })
    this.reads = new Reads({
      ...asking,
      copyOf: (shard) => this.copyOf(shard),
      ask: (node, shard, id) => this.askIndex(node, shard, id),
    })
    this.feedFollower = new FeedFollower({
      ...asking,
      send: (to, message) => this.memberships.turns.send(to, message),
    })
    const watcher = {
      changed: onChange,
      applied: (_: ShardCopy, id: string, result: Result) => this.proposals.applied(id, result),
      advanced: (copy: ShardCopy, jumped: boolean) => {
        this.proposals.advanced(copy, jumped)
        this.reads.advanced(copy)
      },
    }
    this.copies = Array.from(
      { length: options.shards },
      (_, shard) => new ShardCopy(shard, watcher),
    )
    this.memberships.restore()
    this.leaderless = this.measure()
    // A lone member leads at once.
    this.memberships.tick()
    this.tick()
  }

  private measure(): Leaderless {
    const { metrics, log } = this.options.ports
    const count = (counts: (view: ShardView, copy: ShardCopy) => boolean) => (): number =>
      this.copies.filter((copy) => {
        const view = this.memberships.view(copy.shard)
        return view !== undefined && counts(view, copy)
      }).length
    metrics.gauge(
      'eastguard_shards_led',
      'Metadata shards that this broker leads',
      count(({ role }) => role === 'leader'),
    )
    // A member that was removed has no leader any more, and its group may be well.
    const withoutLeader = count(
      ({ leader }, { members }) =>
        leader === undefined && members !== undefined && isMember(members, this.options.nodeId),
    )
    metrics.gauge(
      'eastguard_shards_without_leader',
      'Metadata shards of this broker that nobody is known to lead',
      withoutLeader,
    )
    metrics.gauge(
      'eastguard_metadata_proposals',
      'Metadata changes under way',
      () => this.proposals.size,
    )
    return new Leaderless(log, withoutLeader)
  }

  // For the rest of the broker.

  get count(): number {
    return this.options.shards
  }

  copyOf(shard: number): ShardCopy {
    const copy = this.copies[shard]
    if (copy === undefined) assert(false, `there is a shard ${shard}`)
    return copy
  }

  /** Its own result. Rejects as Proposals.propose does, and with BROKER_STOPPED or DISK_FAILED. */
  propose(shard: number, command: Uint8Array, term?: number): Promise<Result> {
    if (this.ended !== undefined) return Promise.reject(this.ended)
    if (this.closing) return Promise.reject(stopped())
    return this.proposals.propose(shard, command, term)
  }

  /** The term in which this broker leads the shard, once it knows all that anybody was ever answered by it. */
  leads(shard: number): number | undefined {
    return this.memberships.leads(shard)
  }

  /** This broker leads the shard, and nobody else can at this moment. */
  holdsLease(shard: number): boolean {
    return this.memberships.holdsLease(shard)
  }

  /** Resolves when this broker's copy holds all that anybody was answered before. Rejects as Reads.fresh does. */
  fresh(shard: number): Promise<void> {
    if (this.ended !== undefined) return Promise.reject(this.ended)
    return this.reads.fresh(shard)
  }

  /** A step of membership, begun when this broker leads the shard. It is done when `view` shows it, settled. */
  change(shard: number, change: MembersChange): Refusal | undefined {
    return this.memberships.change(shard, proposalId(this.proposer, -++this.changes), change)
  }

  handOver(shard: number, to: NodeId): Refusal | undefined {
    return this.memberships.handOver(shard, to)
  }

  /** Somebody says who leads a shard. */
  hear(shard: number, node: NodeId, term: number): void {
    if (shard < this.options.shards) this.leaders.note(shard, { node, term })
  }

  /** Hands over what this broker leads, to whoever takes it within the time. */
  async handAllOver(withinMs: number): Promise<void> {
    const { clock } = this.options.ports
    const deadline = clock.monotonic() + withinMs
    while (this.ended === undefined && this.memberships.handAllOver()) {
      if (clock.monotonic() >= deadline) return
      await new Promise<void>((resolve) => {
        clock.after(HAND_OVER_POLL_MS, resolve)
      })
    }
  }

  /** Undefined: this broker has never been a member. */
  view(shard: number): ShardView | undefined {
    return this.memberships.view(shard)
  }

  /** What this broker, as a member, holds of the committed log of a shard, from an index on: for whoever judges. */
  committed(shard: number, from: number): readonly Entry[] {
    return this.memberships.committed(shard, from)
  }

  /**
   * Of every shard, who keeps it and who is said to lead. By the committed log: a member that was removed hears no more from its
   * group, and its own Raft says for ever that it is one.
   */
  places(): readonly {
    readonly members: readonly NodeId[]
    readonly leader: NodeId | undefined
  }[] {
    return this.copies.map(({ shard, members }) => ({
      members: members?.voters ?? [],
      leader: this.leaderOf(shard)?.node,
    }))
  }

  /**
   * Who is said to lead; nobody whose term is over as far as this broker knows. A member that hears no leader of its own term
   * believes others who do: they may be cut from one another, or it has been removed meanwhile.
   */
  leaderOf(shard: number): ShardLeader | undefined {
    const view = this.memberships.view(shard)
    const told = this.leaders.get(shard)
    const { appliedTerm } = this.copyOf(shard)
    if (view?.leader !== undefined && view.term >= Math.max(told?.term ?? 0, appliedTerm)) {
      return { node: view.leader, term: view.term }
    }
    const over = Math.max(appliedTerm, view?.term ?? 0)
    // Of itself a member knows better.
    const itself = view !== undefined && told?.node === this.options.nodeId
    return told === undefined || itself || told.term < over ? undefined : told
  }

  /** Waits a little for what is under way; whoever waits then is told BROKER_STOPPED. What was promised to others is on the disk. The journal stays open. */
  async close(): Promise<void> {
    this.closing = true
    await this.proposals.settled(CLOSE_MS)
    this.end(stopped())
    await this.memberships.close()
  }

  private end(error: EastGuardError): void {
    this.ended ??= error
    this.ticker?.cancel()
    this.memberships.turns.stop()
    this.proposals.close(error)
    this.reads.close(error)
  }

  private fail(error: Error): void {
    if (this.ended !== undefined) return
    const message = `the metadata journal failed: ${error.message}`
    const failure = new EastGuardError('DISK_FAILED', message, { cause: error })
    this.end(failure)
    this.options.onFailed(failure)
  }

  // Events.

  receive(from: NodeId, messages: readonly PeerMessage[]): void {
    for (const message of messages) {
      if (this.ended !== undefined) return
      // A shard that this cluster does not have: nothing can be meant by it.
      if ('shard' in message && message.shard < this.options.shards) this.one(from, message)
    }
  }

  private one(from: NodeId, message: ShardMessage): void {
    const { shard } = message
    const { turns } = this.memberships
    switch (message.kind) {
      case 'raft':
        return this.memberships.raftMessage(shard, message.message)
      case 'propose':
        return turns.send(from, this.proposed(message))
      case 'propose-answer':
        this.leaders.note(shard, message.leader)
        return this.proposals.answered(message)
      case 'read':
        return this.memberships.read(from, shard, message.id)
      case 'read-answer':
        this.leaders.note(shard, message.leader)
        return this.reads.answered(message.id, message.index)
      case 'feed-request':
        if (this.memberships.feed(from, message)) return undefined
        return turns.send(from, { kind: 'feed-end', shard, leader: this.leaderOf(shard) })
      case 'feed':
        return this.guarded(() => this.feedFollower.told(from, this.copyOf(shard), message))
      case 'feed-snapshot':
        return this.guarded(() => this.feedFollower.toldSnapshot(from, this.copyOf(shard), message))
      case 'feed-end':
        this.leaders.note(shard, message.leader)
        return this.feedFollower.ended(from, shard)
    }
  }

  private guarded(run: () => void): void {
    try {
      run()
    } catch (error) {
      this.fail(error as Error)
    }
  }

  private tick(): void {
    const { heartbeatMs, ports } = this.options
    this.ticker = afterInput(ports.clock, heartbeatMs / TICKS_PER_HEARTBEAT, () => {
      this.tick()
      this.memberships.tick()
      for (const copy of this.copies) {
        if (this.memberships.hears(copy.shard)) this.feedFollower.stop(copy.shard)
        else this.feedFollower.tick(copy)
      }
      this.proposals.tick()
      this.reads.tick()
      this.leaderless.tick(ports.clock.monotonic())
    })
  }

  private leaderChanged(shard: number): void {
    const leader = this.leaders.get(shard)
    if (leader?.node === this.options.nodeId) this.options.onLead(shard, leader.term)
    this.proposals.leaderChanged(shard)
    this.reads.leaderChanged(shard)
    this.feedFollower.leaderChanged(shard)
  }

  // What is asked of others, who may be this broker itself.

  private offer(to: NodeId, offer: Offer): ProposeAnswer | undefined {
    const message: Propose = { kind: 'propose', ...offer }
    if (to === this.options.nodeId) return this.proposed(message)
    this.memberships.turns.send(to, message)
    return undefined
  }

  private proposed(offer: Propose): ProposeAnswer {
    const { shard, term, number } = offer
    const refusal = this.memberships.take(offer)
    return {
      kind: 'propose-answer',
      shard,
      term,
      number,
      refusal,
      leader: refusal === undefined ? undefined : this.leaderOf(shard),
    }
  }

  private askIndex(node: NodeId, shard: number, id: number): void {
    const { nodeId } = this.options
    if (node === nodeId) this.memberships.read(nodeId, shard, id)
    else this.memberships.turns.send(node, { kind: 'read', shard, id })
  }

  private sayIndex(to: NodeId, shard: number, id: number, index: number | undefined): void {
    if (to === this.options.nodeId) {
      this.reads.answered(id, index)
      return
    }
    const leader = this.leaderOf(shard)
    this.memberships.turns.send(to, { kind: 'read-answer', shard, id, index, leader })
  }

  private anyone(): NodeId | undefined {
    const others = this.options.others()
    return others[this.asked++ % others.length]
  }
}

function stopped(): EastGuardError {
  return new EastGuardError('BROKER_STOPPED', 'the broker stops')
}
