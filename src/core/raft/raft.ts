// One member of one Raft group: events in, effects out, no IO.
//
//   tick(now)   receive(message, now)   propose / change / read / handOver
//        └──────────────┴───────────────────┘
//                       v
//                 take() ──> Effects: send, write and sync, send, apply         persisted(mark) <── the disk
//
//   follower ──no leader for an election time-out──> pre-candidate ──quorum would──> candidate ──quorum does──> leader
//      ^                                                  |                              |                         |
//      └───────────────── another leads, a higher term, no quorum ────────────────────────┴─────────────────────────┘
//
// What leading is stands in leading.ts. Here: terms, votes, and what a follower does with what it is sent.
//
// A member answers for its disk only after a sync: its vote and its acknowledgements wait in `messagesAfterSync`. A member
// that has just started gives no vote for an election time-out, for it may have promised its leader not to.

import { assert } from '../../base/assert.ts'
import { concatBytes } from '../../base/bytes.ts'
import type { NodeId } from '../../model/ids.ts'
import type {
  Append,
  AppendAnswer,
  Entry,
  HardState,
  Members,
  Message,
  ProposalId,
  Refusal,
  SnapshotPart,
  VoteAnswer,
  VoteRequest,
} from '../../model/raft.ts'
import { Leading, type LeadingHost } from './leading.ts'
import { RaftLog } from './log.ts'
import { hasQuorum, isVoter } from './members.ts'
import { Outbox } from './outbox.ts'
import type {
  Effects,
  MembersChange,
  RaftOptions,
  ReadAnswer,
  Restored,
  Role,
  SyncMark,
} from './types.ts'

/**
 * Time-outs are drawn from one to one and a half: wide enough for an exchange of votes, many times over, before another member
 * is due, and no wider, since whoever waits for a leader waits for all of it.
 */
const ELECTION_SPREAD = 0.5

interface PartialSnapshot {
  readonly index: number
  readonly term: number
  readonly parts: Uint8Array[]
  bytes: number
}

export class Raft implements LeadingHost {
  readonly options: RaftOptions
  readonly log: RaftLog
  now: number
  role: Role = 'follower'
  term: number
  leader: NodeId | undefined
  commit: number
  synced: number
  private vote: NodeId | undefined
  private leading: Leading | undefined
  private applied: number
  private electionDue = 0
  /** When a leader was last heard, or this member started: until an election time-out later it votes for no other. */
  private heardAt: number
  private votes = new Map<NodeId, boolean>()
  private incoming: PartialSnapshot | undefined
  private readonly outbox = new Outbox()

  constructor(options: RaftOptions, restored: Restored, now: number) {
    this.options = options
    this.log = new RaftLog(restored)
    this.term = restored.hardState.term
    this.vote = restored.hardState.vote
    this.synced = this.log.lastIndex
    this.commit = restored.snapshot?.index ?? 0
    this.applied = this.commit
    this.now = now
    this.heardAt = now
    this.waitForLeader()
    // Nobody else could be led: a lone voter need not wait.
    if (this.isLone()) this.electionDue = now
  }

  get id(): NodeId {
    return this.options.id
  }

  /** How far the state machine was given entries. */
  get appliedIndex(): number {
    return this.applied
  }

  /** Who could take over soonest, as far as a leader knows. */
  get successor(): NodeId | undefined {
    return this.leading?.successor
  }

  /** Whether the node could take over at once, as far as a leader knows. */
  hasCaughtUp(node: NodeId): boolean {
    return this.leading?.caughtUp(node) ?? false
  }

  /** It leads, and nobody else can at this moment. */
  holdsLease(now: number): boolean {
    return this.leading?.holdsLease(now) ?? false
  }

  get members(): Members {
    return this.log.members
  }

  /** When `tick` has something to do, at the latest. */
  get nextTick(): number {
    return this.leading?.nextTick ?? this.electionDue
  }

  // Events.

  tick(now: number): void {
    this.now = now
    if (this.leading !== undefined) this.leading.tick()
    else if (now >= this.electionDue) {
      if (this.mayLead()) this.campaign('pre-candidate', false)
      else {
        // It may have been removed, which nobody tells it: whoever asks must not be sent to a leader of long ago.
        this.leader = undefined
        this.waitForLeader()
      }
    }
  }

  receive(message: Message, now: number): void {
    this.now = now
    if (message.kind === 'vote') return this.onVote(message)
    if (message.kind === 'vote-answer') return this.onVoteAnswer(message)
    if (message.term > this.term) this.follow(message.term, undefined)
    switch (message.kind) {
      case 'append':
      case 'heartbeat':
      case 'snapshot':
        if (message.term < this.term) return this.tellTerm(message)
        this.heard(message.from)
        if (message.kind === 'append') this.onAppend(message)
        else if (message.kind === 'snapshot') this.onSnapshotPart(message)
        else {
          this.commitTo(Math.min(message.commit, this.log.lastIndex))
          this.answer(message.from, message.round, { ok: true })
        }
        return
      case 'append-answer':
        if (message.term === this.term) this.leading?.onAppendAnswer(message)
        return
      case 'snapshot-answer':
        if (message.term === this.term) this.leading?.onSnapshotAnswer(message)
        return
      case 'timeout-now':
        if (message.term === this.term && this.mayLead()) {
          this.campaign('candidate', true)
        }
        return
    }
  }

  /** The index that the command has if it commits in this term. */
  propose(id: ProposalId, data: Uint8Array): number | Refusal {
    return this.leading?.propose({ kind: 'command', id, data }) ?? 'not-leader'
  }

  change(id: ProposalId, change: MembersChange, now: number): number | Refusal {
    this.now = now
    return this.leading?.change(id, change) ?? 'not-leader'
  }

  /** `take` brings the answer; at once when this member does not lead. */
  read(id: string, now: number): void {
    this.now = now
    if (this.leading === undefined) this.outbox.answerRead({ id, index: undefined })
    else this.leading.read(id)
  }

  handOver(to: NodeId, now: number): Refusal | undefined {
    this.now = now
    if (this.leading === undefined) return 'not-leader'
    return this.leading.handOver(to)
  }

  /** The state machine's data after `index`, which was applied: entries before it may go. */
  compact(index: number, data: Uint8Array): void {
    assert(index <= this.applied, 'a snapshot holds what was applied')
    if (index <= (this.log.snapshot?.index ?? 0)) return
    this.log.compact(index, data, this.options.entriesKept)
    this.outbox.compact()
  }

  /** All effects up to those with this mark are durable. */
  persisted(mark: SyncMark): void {
    // Entries that others have taken the place of since are not what is there now.
    if (this.log.term(mark.index) !== mark.term) return
    this.synced = Math.max(this.synced, mark.index)
    this.leading?.advance()
  }

  // Effects.

  /** Whether `take` has anything to give: whoever has many groups asks first. */
  get hasWork(): boolean {
    return !this.outbox.isEmpty || Math.min(this.commit, this.synced) > this.applied
  }

  take(): Effects {
    return this.outbox.take(this.log, this.hardState, this.takeCommitted())
  }

  get hardState(): HardState {
    const { term, vote } = this
    const { deletedUpTo } = this.log
    return deletedUpTo === undefined ? { term, vote } : { term, vote, deletedUpTo }
  }

  /** What has to stay when this member was removed and all else of the group is deleted here. */
  get remains(): HardState {
    const { term, vote } = this
    return { term, vote, deletedUpTo: this.log.end }
  }

  private takeCommitted(): readonly Entry[] {
    const to = Math.min(this.commit, this.synced)
    if (to <= this.applied) return []
    const entries = this.log.slice(this.applied + 1, to, Number.POSITIVE_INFINITY)
    this.applied = to
    return entries
  }

  // For leading.

  send(message: Message): void {
    this.outbox.send(message)
  }

  persist(index: number): void {
    this.outbox.append(index)
  }

  commitTo(index: number): void {
    if (index <= this.commit) return
    this.commit = index
    // Whoever has committed its own removal has done its work.
    if (this.leading?.removed === true) this.stepDown()
  }

  answerRead(answer: ReadAnswer): void {
    this.outbox.answerRead(answer)
  }

  stepDown(): void {
    this.follow(this.term, undefined)
  }

  // Roles and terms.

  private follow(term: number, leader: NodeId | undefined): void {
    if (term > this.term) {
      this.term = term
      this.vote = undefined
      this.outbox.changeHardState()
    }
    this.leading?.end()
    this.leading = undefined
    this.role = 'follower'
    this.leader = leader
    this.incoming = undefined
    this.waitForLeader()
  }

  private waitForLeader(): void {
    const { electionTimeoutMs, chance } = this.options
    this.electionDue = this.now + electionTimeoutMs * (1 + ELECTION_SPREAD * chance())
  }

  private heard(leader: NodeId): void {
    assert(this.leading === undefined, 'a term has one leader')
    if (this.role !== 'follower' || this.leader !== leader) this.follow(this.term, leader)
    this.heardAt = this.now
    this.waitForLeader()
  }

  private isLone(): boolean {
    const { voters } = this.members
    return voters.length === 1 && voters[0] === this.id
  }

  /**
   * A voter, or one whose removal may not have committed: perhaps only it has the entry, and no vote for a log without it
   * (thesis, 4.2.2).
   */
  private mayLead(): boolean {
    const { log, id } = this
    if (!log.isWhole) return false
    if (isVoter(log.members, id)) return true
    return log.membersIndex > this.commit && isVoter(log.membersAt(log.membersIndex - 1), id)
  }

  private campaign(role: 'pre-candidate' | 'candidate', transfer: boolean): void {
    this.leader = undefined
    this.role = role
    this.votes = new Map([[this.id, true]])
    this.waitForLeader()
    if (role === 'candidate') {
      this.term++
      this.vote = this.id
      this.outbox.changeHardState()
    }
    if (this.won()) return
    const pre = role === 'pre-candidate'
    for (const to of this.members.voters) {
      if (to === this.id) continue
      const { lastIndex, lastTerm } = this.log
      // The vote for itself is one, and must not be forgotten either.
      this.outbox.sendAfterSync({
        kind: 'vote',
        from: this.id,
        to,
        term: pre ? this.term + 1 : this.term,
        pre,
        transfer,
        lastIndex,
        lastTerm,
      })
    }
  }

  /** With a quorum of the votes it goes on to the next role. */
  private won(): boolean {
    if (!hasQuorum(this.members, (voter) => this.votes.get(voter) === true)) return false
    if (this.role === 'pre-candidate') this.campaign('candidate', false)
    else {
      this.role = 'leader'
      this.leader = this.id
      this.leading = new Leading(this)
    }
    return true
  }

  /** Nobody but the leader's own successor gets a vote while the leader may count on this member. */
  private holdsTo(): boolean {
    if (this.leading !== undefined) return true
    return this.now - this.heardAt < this.options.electionTimeoutMs && !this.isLone()
  }

  private onVote(message: VoteRequest): void {
    const { from, pre, term, transfer, lastIndex, lastTerm } = message
    if (!transfer && term > this.term && this.holdsTo()) return
    if (!pre && term > this.term) this.follow(term, undefined)
    const upToDate = this.log.isUpToDate({ index: lastIndex, term: lastTerm })
    const free = pre ? term > this.term : this.vote === undefined || this.vote === from
    // It may have come to this term without a vote, and still be bound to the leader of an older one.
    const bound = this.leader !== undefined || (!transfer && this.holdsTo())
    const granted = term >= this.term && free && upToDate && (pre || !bound)
    if (granted && !pre) {
      if (this.vote !== from) this.outbox.changeHardState()
      this.vote = from
      this.waitForLeader()
    }
    this.outbox.sendAfterSync({
      kind: 'vote-answer',
      from: this.id,
      to: from,
      term: granted ? term : this.term,
      pre,
      granted,
    })
  }

  private onVoteAnswer({ from, pre, term, granted }: VoteAnswer): void {
    if (!granted && term > this.term) return this.follow(term, undefined)
    const asked = pre ? this.role === 'pre-candidate' : this.role === 'candidate'
    // A vote of an earlier election is none in this one.
    if (!asked || (granted && term !== (pre ? this.term + 1 : this.term))) return
    this.votes.set(from, granted)
    if (this.won()) return
    const refused = hasQuorum(this.members, (voter) => this.votes.get(voter) === false)
    if (refused) this.follow(this.term, undefined)
  }

  // A follower's log.

  private onAppend(message: Append): void {
    const { from, round, prevIndex, prevTerm, entries, commit } = message
    const { log } = this
    if (prevIndex < this.commit) {
      // Old news: all up to the commit index agrees anyway.
      return this.answerAfterSync(from, round, { ok: true, match: this.commit })
    }
    if (log.term(prevIndex) !== prevTerm) {
      const hintIndex = log.agreement(prevIndex, prevTerm)
      const hintTerm = log.term(hintIndex) ?? 0
      this.answer(from, round, { ok: false, prevIndex, hintIndex, hintTerm })
      return
    }
    for (const entry of entries) {
      const known = log.term(entry.index)
      if (known === entry.term) continue
      if (known !== undefined) this.cutOff(entry.index)
      log.append(entry)
      this.persist(entry.index)
    }
    const match = prevIndex + entries.length
    this.commitTo(Math.min(commit, match))
    this.answerAfterSync(from, round, { ok: true, match })
  }

  private cutOff(index: number): void {
    assert(index > this.commit, 'what is committed is never replaced')
    this.log.truncate(index)
    this.outbox.cutOff(index)
    this.synced = Math.min(this.synced, index - 1)
  }

  private onSnapshotPart(part: SnapshotPart): void {
    const { from, index, snapshotTerm, totalBytes, offset, bytes, round } = part
    // Entries that follow it here were acknowledged, perhaps: they stay.
    if (this.log.term(index) === snapshotTerm) this.commitTo(index)
    if (index <= this.commit) {
      const match = this.commit
      return this.answerAfterSync(from, round, { ok: true, match })
    }
    let { incoming } = this
    if (incoming?.index !== index || incoming.term !== snapshotTerm || offset === 0) {
      incoming = { index, term: snapshotTerm, parts: [], bytes: 0 }
      this.incoming = incoming
    }
    if (offset === incoming.bytes) {
      incoming.parts.push(bytes)
      incoming.bytes += bytes.length
    }
    if (incoming.bytes < totalBytes) {
      this.outbox.send({
        kind: 'snapshot-answer',
        from: this.id,
        to: from,
        term: this.term,
        index,
        offset: incoming.bytes,
        round,
      })
      return
    }
    this.install(part, concatBytes(incoming.parts))
    this.answerAfterSync(from, round, { ok: true, match: index })
  }

  private install({ index, snapshotTerm, members }: SnapshotPart, data: Uint8Array): void {
    this.incoming = undefined
    this.log.reset({ index, term: snapshotTerm, members, data })
    this.outbox.install(index)
    this.synced = index
    this.commit = index
    this.applied = index
  }

  private answer(to: NodeId, round: number, result: AppendAnswer['result']): void {
    this.outbox.send(this.answerTo(to, round, result))
  }

  private answerAfterSync(to: NodeId, round: number, result: AppendAnswer['result']): void {
    this.outbox.sendAfterSync(this.answerTo(to, round, result))
  }

  private answerTo(to: NodeId, round: number, result: AppendAnswer['result']): Message {
    return { kind: 'append-answer', from: this.id, to, term: this.term, round, result }
  }

  /** A leader of an older term learns that it leads no more. */
  private tellTerm({ from }: Message): void {
    this.answer(from, 0, { ok: true })
  }
}
