// What a member does while it leads: replication, the commit index, rounds, reads, membership and handing over.
//
// A round is a number that every message of the leader bears and every answer repeats. When a quorum has answered round r,
// the leader led when r began: that is what reads without a log entry rest on, and what check-quorum asks for. And since
// whoever answered votes for no other for an election time-out, the leader even knows that it will lead a little longer:
//
//      r begins                 quorum has answered r
//   ───┼────────────────────────┼──────────────────────────> its own clock
//      |<-- lease: LEASE_SHARE of the election time-out -->|    reads are answered at once
//      |<-- check-quorum: the election time-out ---------------->| then it steps down
//
// The share leaves room for clocks that run 5 % apart, either way.

import { assert } from '../../base/assert.ts'
import type { NodeId } from '../../model/ids.ts'
import type {
  AppendAnswer,
  Message,
  Payload,
  ProposalId,
  Refusal,
  SnapshotAnswer,
} from '../../model/raft.ts'
import { entryBytes, type RaftLog } from './log.ts'
import { changed, isMember, isVoter, quorumValue } from './members.ts'
import { Progress } from './progress.ts'
import type { MembersChange, RaftOptions, ReadAnswer } from './types.ts'

/** A follower that has answered none of so many rounds may be gone. */
const ROUNDS_RECENT = 3
const LEASE_SHARE = 0.85

/** What leading needs of the member that leads. */
export interface LeadingHost {
  readonly options: RaftOptions
  readonly log: RaftLog
  /** In ms, on this member's clock. */
  readonly now: number
  readonly term: number
  readonly commit: number
  /** The end of what is durable here. */
  readonly synced: number
  send(message: Message): void
  persist(index: number): void
  commitTo(index: number): void
  answerRead(answer: ReadAnswer): void
  /** Leads no more; with a successor it was asked to. */
  stepDown(): void
}

interface PendingRead {
  readonly id: string
  readonly index: number
  readonly round: number
}

export class Leading {
  private readonly host: LeadingHost
  private readonly peers = new Map<NodeId, Progress>()
  /** The index of the empty entry that began this term. */
  private readonly termIndex: number
  private round = 0
  /** When each round began that a quorum has not answered, and the last that it has: [round, ms], oldest first. */
  private rounds: (readonly [number, number])[]
  private heartbeatDue: number
  private reads: PendingRead[] = []
  private transfer: { readonly to: NodeId; readonly due: number } | undefined
  private uncommittedBytes = 0

  constructor(host: LeadingHost) {
    this.host = host
    this.rounds = [[0, host.now]]
    this.heartbeatDue = host.now
    this.updatePeers()
    this.termIndex = this.append({ kind: 'empty' })
    this.feedAll()
    this.tick()
  }

  /** Members come and go with the log. */
  updatePeers(): void {
    const { log, options } = this.host
    const { voters, learners } = log.members
    for (const node of [...voters, ...learners]) {
      if (node === options.id || this.peers.has(node)) continue
      this.peers.set(node, new Progress(log.lastIndex + 1))
    }
    for (const node of this.peers.keys()) {
      if (!isMember(log.members, node)) this.peers.delete(node)
    }
  }

  get termBegun(): boolean {
    return this.host.commit >= this.termIndex
  }

  // Proposals.

  propose(payload: Payload): number | Refusal {
    if (this.transfer !== undefined) return 'leadership-is-leaving'
    const bytes = payload.kind === 'command' ? payload.data.length : 0
    if (this.uncommittedBytes > 0) {
      if (this.uncommittedBytes + bytes > this.host.options.uncommittedBytesMax) {
        return 'too-much-under-way'
      }
    }
    const index = this.append(payload)
    this.feedAll()
    return index
  }

  change(id: ProposalId, change: MembersChange): number | Refusal {
    const { log, commit } = this.host
    // Else a leader of an older term could commit by members that this one does not know of.
    if (!this.termBegun) return 'term-not-begun'
    if (log.membersIndex > commit) return 'change-under-way'
    const members = changed(log.members, change)
    if (members === undefined) return 'no-such-member'
    if (change.kind === 'promote' && !this.mayPromote(change.node)) return 'not-caught-up'
    return this.propose({ kind: 'members', id, members })
  }

  /** Of two voters both are needed: a lone one takes the first with it only when the second can follow at once. */
  private mayPromote(node: NodeId): boolean {
    const { voters, learners } = this.host.log.members
    if (!this.caughtUp(node)) return false
    return voters.length > 1 || learners.some((other) => other !== node && this.caughtUp(other))
  }

  /** It has all that is committed, and answers as a quorum does. */
  caughtUp(node: NodeId): boolean {
    const progress = this.peers.get(node)
    if (progress === undefined || progress.match < this.host.commit) return false
    const oldest = this.rounds[0]?.[0] ?? 0
    return progress.round > 0 && progress.round >= oldest
  }

  private append(payload: Payload): number {
    const { log, term } = this.host
    const entry = { index: log.lastIndex + 1, term, payload }
    log.append(entry)
    this.uncommittedBytes += entryBytes(entry)
    this.host.persist(entry.index)
    if (payload.kind === 'members') this.updatePeers()
    return entry.index
  }

  // Time.

  tick(): void {
    const { now, options } = this.host
    const { electionTimeoutMs, heartbeatMs } = options
    if (this.transfer !== undefined && now >= this.transfer.due) this.transfer = undefined
    if (now - this.quorumRoundBegan() >= electionTimeoutMs && !this.alone()) {
      this.host.stepDown()
      return
    }
    if (now < this.heartbeatDue) return
    this.heartbeatDue = now + heartbeatMs
    this.beginRound()
  }

  get nextTick(): number {
    return this.heartbeatDue
  }

  private beginRound(): void {
    const { options, term, commit, now } = this.host
    this.rounds.push([++this.round, now])
    for (const [to, progress] of this.peers) {
      // A follower knows of entries only what it has: its log may end before the commit index, or differ above `match`.
      const known = Math.min(commit, progress.match)
      const { round } = this
      this.host.send({ kind: 'heartbeat', from: options.id, to, term, commit: known, round })
    }
    this.roundAnswered()
  }

  private alone(): boolean {
    const { voters } = this.host.log.members
    return voters.length === 1 && voters[0] === this.host.options.id
  }

  private quorumRoundBegan(): number {
    return this.rounds[0]?.[1] ?? 0
  }

  /** Forgets the rounds before the newest that a quorum has answered; reads of it are answered. */
  private roundAnswered(): void {
    const { log, options } = this.host
    const answered = quorumValue(log.members, (voter) =>
      voter === options.id ? this.round : (this.peers.get(voter)?.round ?? 0),
    )
    while ((this.rounds[1]?.[0] ?? Number.POSITIVE_INFINITY) <= answered) this.rounds.shift()
    this.answerReads()
    if (answered === this.round && this.reads.some(({ round }) => round > answered)) {
      this.beginRound()
    }
  }

  // Reads.

  /** Answered when nothing that was answered elsewhere before can be missed. */
  read(id: string): void {
    const { commit } = this.host
    if (this.termBegun && this.holdsLease(this.host.now)) {
      this.host.answerRead({ id, index: commit })
      return
    }
    // Only a round that begins from now on tells that nobody else leads now; all reads until then share it.
    this.reads.push({ id, index: Math.max(commit, this.termIndex), round: this.round + 1 })
    this.roundAnswered()
  }

  holdsLease(now: number): boolean {
    const { log, options } = this.host
    if (this.transfer !== undefined) return false
    if (this.alone()) return true
    // Whoever stays may be alone without this member, and a lone voter waits for nobody.
    if (!isVoter(log.members, options.id)) return false
    const lease = options.electionTimeoutMs * LEASE_SHARE
    return now - this.quorumRoundBegan() < lease
  }

  private answerReads(): void {
    const answered = this.rounds[0]?.[0] ?? 0
    const left: PendingRead[] = []
    for (const read of this.reads) {
      if (read.round <= answered && this.termBegun) {
        this.host.answerRead({ id: read.id, index: read.index })
      } else left.push(read)
    }
    this.reads = left
  }

  /** Whoever waits for a read asks again. */
  end(): void {
    for (const { id } of this.reads) this.host.answerRead({ id, index: undefined })
    this.reads = []
  }

  // Replication.

  onAppendAnswer({ from, round, result }: AppendAnswer): void {
    const progress = this.peers.get(from)
    if (progress === undefined) return
    progress.answered(round)
    if (!result.ok) {
      const { log } = this.host
      const agreement = log.agreement(result.hintIndex, result.hintTerm)
      progress.refused(result.prevIndex, agreement)
    } else if (result.match !== undefined) {
      progress.accepted(result.match)
      this.advance()
      // Its own answer may come when the others' have made the quorum already.
      this.tellCommit(from, progress)
    }
    this.roundAnswered()
    this.feed(from, progress)
    this.transferWhenReady()
  }

  onSnapshotAnswer({ from, index, offset, round }: SnapshotAnswer): void {
    const progress = this.peers.get(from)
    if (progress === undefined) return
    progress.answered(round)
    this.roundAnswered()
    if (progress.snapshot?.index === index) {
      progress.snapshotOffset = offset
      progress.waiting = false
    }
    this.feed(from, progress)
  }

  /** What is durable here counts as any other member's. */
  advance(): void {
    const { log, options, synced, term } = this.host
    const index = quorumValue(log.members, (voter) =>
      voter === options.id ? synced : (this.peers.get(voter)?.match ?? 0),
    )
    // Of an older term nothing is committed by counting (the paper, 5.4.2).
    if (index <= this.host.commit || log.term(index) !== term) return
    const before = this.host.commit
    for (const entry of log.slice(before + 1, index, Number.POSITIVE_INFINITY)) {
      this.uncommittedBytes = Math.max(0, this.uncommittedBytes - entryBytes(entry))
    }
    this.host.commitTo(index)
    this.answerReads()
    for (const [node, progress] of this.peers) this.tellCommit(node, progress)
  }

  /** Followers hear of the commit index with the next append, or at once when nothing is on its way. */
  private tellCommit(to: NodeId, progress: Progress): void {
    if (progress.state !== 'replicate' || progress.match < this.host.log.lastIndex) return
    if (progress.toldCommit >= Math.min(this.host.commit, progress.match)) return
    this.sendAppend(to, progress)
  }

  private feedAll(): void {
    for (const [node, progress] of this.peers) this.feed(node, progress)
  }

  /** Sends what there is, as far as the follower may be sent to. */
  private feed(to: NodeId, progress: Progress): void {
    const { log, options } = this.host
    while (progress.maySend(options.appendsInFlightMax)) {
      if (progress.state === 'snapshot') {
        this.sendSnapshotPart(to, progress)
        return
      }
      if (progress.next < log.firstIndex && log.snapshot !== undefined) {
        progress.beginSnapshot(log.snapshot)
        continue
      }
      if (progress.state === 'replicate' && progress.next > log.lastIndex) return
      if (progress.state === 'probe' && progress.match >= log.lastIndex) return
      this.sendAppend(to, progress)
    }
  }

  private sendAppend(to: NodeId, progress: Progress): void {
    const { log, options, term, commit } = this.host
    const prevIndex = progress.next - 1
    const prevTerm = log.term(prevIndex)
    assert(prevTerm !== undefined, 'what is sent follows an entry that is here')
    const entries = log.slice(progress.next, log.lastIndex, options.appendBytesMax)
    const { round } = this
    this.host.send({
      kind: 'append',
      from: options.id,
      to,
      term,
      prevIndex,
      prevTerm,
      entries,
      commit,
      round,
    })
    const last = prevIndex + entries.length
    progress.toldCommit = Math.min(commit, last)
    progress.sent(last, round)
  }

  private sendSnapshotPart(to: NodeId, progress: Progress): void {
    const { snapshot, snapshotOffset: offset } = progress
    const { options, term } = this.host
    if (snapshot === undefined) return
    const bytes = snapshot.data.subarray(offset, offset + options.snapshotPartBytes)
    this.host.send({
      kind: 'snapshot',
      from: options.id,
      to,
      term,
      index: snapshot.index,
      snapshotTerm: snapshot.term,
      members: snapshot.members,
      totalBytes: snapshot.data.length,
      offset,
      bytes,
      round: this.round,
    })
    progress.sent(0, this.round)
  }

  // Handing over.

  /**
   * The node takes over when it has the whole log; nothing is proposed meanwhile. Given up after an election time-out, which
   * asking again does not put off.
   */
  handOver(to: NodeId): Refusal | undefined {
    const { log, options, now } = this.host
    if (to === options.id || !isVoter(log.members, to)) return 'no-such-member'
    this.transfer ??= { to, due: now + options.electionTimeoutMs }
    if (this.transfer.to !== to) return 'leadership-is-leaving'
    this.transferWhenReady()
    return undefined
  }

  private transferWhenReady(): void {
    const { transfer } = this
    const { log, options, term } = this.host
    if (transfer === undefined) return
    if ((this.peers.get(transfer.to)?.match ?? 0) < log.lastIndex) return
    this.host.send({ kind: 'timeout-now', from: options.id, to: transfer.to, term })
    // From here on another may lead: nothing more is answered from here.
    this.host.stepDown()
  }

  /** The voter that has most of the log, of those that answered the newest rounds. */
  get successor(): NodeId | undefined {
    const { log, options } = this.host
    let best: NodeId | undefined
    let most = -1
    for (const node of log.members.voters) {
      const progress = this.peers.get(node)
      if (node === options.id || progress === undefined) continue
      if (progress.round + ROUNDS_RECENT < this.round || progress.match <= most) continue
      best = node
      most = progress.match
    }
    return best
  }

  /** Its own removal has committed: its work is done. */
  get removed(): boolean {
    const { log, options, commit } = this.host
    return log.membersIndex <= commit && !isVoter(log.members, options.id)
  }
}
