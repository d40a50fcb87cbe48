// The proposals of this broker, from asking to their own result. A proposal is offered to its shard's leader, here or over a
// link, under the leader's term, and is answered when this broker's copy of the shard applies the entry that bears its id:
// never by its place in the log, and never by whom it was offered to.
//
//   waiting ──a leader is known──> offered in term T ──the copy applies its id────────────────> its own result
//      ^                                 |
//      |                                 ├─ no word for a while ──> offered again, in term T only
//      └── not taken: its only offer ────┤
//          was refused, or the copy has  └─ the time is over ──> TIMEOUT: nobody knows
//          applied an entry of a later term
//
// A leader takes it in term T or never, and takes it once (accepted.ts). Terms only grow along a log, so when an entry of a
// later term has been applied, what was offered in T has been applied before it or is not in the log: it may be offered anew.

import { EMPTY } from '../../base/bytes.ts'
import { EastGuardError } from '../../base/errors.ts'
import type { Result } from '../../core/metadata/commands.ts'
import type { NodeId } from '../../model/ids.ts'
import type { ProposalId } from '../../model/raft.ts'
import type { Clock } from '../../ports/clock.ts'
import type { ProposeAnswer, ShardLeader } from '../../wire/peer/types.ts'
import type { ShardCopy } from './copy.ts'

const OFFER_AGAIN_MS = 500
const RETRY_MS = 50
/** Nobody known leads: every so often somebody else is asked who does. */
const ASK_MS = 200
const PROPOSALS_MAX = 10_000

export interface Offer {
  readonly shard: number
  /** 0: only asks who leads, without the command. */
  readonly term: number
  readonly proposer: string
  readonly number: number
  /** The outcome of every proposal below this number is known to the proposer. */
  readonly below: number
  readonly command: Uint8Array
}

export interface ProposalsHost {
  readonly clock: Clock
  /** Of this start of this broker. */
  readonly proposer: string
  readonly timeoutMs: number
  /** The number before the first. */
  readonly asked: number
  /** Not one of a term older than what this broker's copy has applied. */
  leaderOf(shard: number): ShardLeader | undefined
  /** Somebody who may know who leads; another each time. */
  anyone(): NodeId | undefined
  /** Undefined: it went out, and the answer comes later. */
  offer(to: NodeId, offer: Offer): ProposeAnswer | undefined
}

interface Pending {
  readonly shard: number
  readonly number: number
  readonly command: Uint8Array
  /** It is offered in this one only. */
  readonly onlyTerm: number | undefined
  readonly deadlineMs: number
  offered: { readonly term: number; times: number; taken: boolean } | undefined
  dueMs: number
  /** Why it has not been taken, as far as known. */
  why: string
  resolve(result: Result): void
  reject(error: EastGuardError): void
}

export class Proposals {
  private readonly host: ProposalsHost
  private readonly pending = new Map<ProposalId, Pending>()
  /** Of each shard, the term that was last looked at. */
  private readonly terms = new Map<number, number>()
  private last: number
  private onEmpty: () => void = () => {}

  constructor(host: ProposalsHost) {
    this.host = host
    this.last = host.asked
  }

  get size(): number {
    return this.pending.size
  }

  /**
   * Rejects with METADATA_UNAVAILABLE, STORAGE_FULL, TOO_MANY_REQUESTS, or TIMEOUT when nobody knows what became of it. With a
   * term it is taken in that one or never: what a leader has decided must not reach the log behind what another has.
   */
  propose(shard: number, command: Uint8Array, onlyTerm?: number): Promise<Result> {
    if (this.pending.size >= PROPOSALS_MAX) {
      const message = `${PROPOSALS_MAX} metadata changes are under way already`
      return Promise.reject(new EastGuardError('TOO_MANY_REQUESTS', message))
    }
    const { clock, timeoutMs, proposer } = this.host
    const now = clock.monotonic()
    const number = ++this.last
    return new Promise((resolve, reject) => {
      const pending: Pending = {
        shard,
        number,
        command,
        onlyTerm,
        deadlineMs: now + timeoutMs,
        offered: undefined,
        dueMs: now,
        why: 'nobody is known to lead it',
        resolve,
        reject,
      }
      this.pending.set(proposalId(proposer, number), pending)
      this.attempt(pending, now)
    })
  }

  tick(): void {
    const now = this.host.clock.monotonic()
    for (const [id, pending] of this.pending) {
      // While nobody has it, whoever asked loses nothing by asking again, another broker perhaps.
      const patienceMs = pending.offered === undefined ? this.host.timeoutMs / 2 : 0
      if (now >= pending.deadlineMs - patienceMs) this.giveUp(id, pending)
      else if (now >= pending.dueMs) this.attempt(pending, now)
    }
  }

  /** A leader of a newer term is known. */
  leaderChanged(shard: number): void {
    const now = this.host.clock.monotonic()
    for (const pending of this.pending.values()) {
      if (pending.shard === shard) this.attempt(pending, now)
    }
  }

  private attempt(pending: Pending, now: number): void {
    const { host } = this
    const { shard, offered, onlyTerm } = pending
    const leader = host.leaderOf(shard)
    const over = offered === undefined && onlyTerm !== undefined && leader?.term !== onlyTerm
    if (over) return this.refuse(pending, 'the term of whoever wants the change is over')
    if (leader === undefined) {
      pending.dueMs = now + ASK_MS
      this.askWhoLeads(pending)
      return
    }
    pending.dueMs = now + OFFER_AGAIN_MS
    if (offered === undefined) pending.offered = { term: leader.term, times: 1, taken: false }
    else {
      // There is no word of what became of it: whoever is said to lead may be gone.
      this.askWhoLeads(pending)
      if (offered.term !== leader.term || offered.taken) return
      offered.times++
    }
    const answer = host.offer(leader.node, this.offerOf(pending, leader.term, pending.command))
    if (answer !== undefined) this.answered(answer)
  }

  private askWhoLeads(pending: Pending): void {
    const someone = this.host.anyone()
    if (someone !== undefined) this.host.offer(someone, this.offerOf(pending, 0, EMPTY))
  }

  private offerOf({ shard, number }: Pending, term: number, command: Uint8Array): Offer {
    const { proposer } = this.host
    const [first] = this.pending.values()
    return { shard, term, proposer, number, below: first?.number ?? number, command }
  }

  answered({ number, term, refusal }: ProposeAnswer): void {
    const id = proposalId(this.host.proposer, number)
    const pending = this.pending.get(id)
    const offered = pending?.offered
    if (pending === undefined || offered?.term !== term) return
    if (refusal === undefined) {
      offered.taken = true
      return
    }
    pending.why = REASONS[refusal]
    // Of several offers another may be on its way still, or have been taken: nobody says which of them this one answers.
    if (offered.times > 1 || offered.taken) return
    pending.offered = undefined
    pending.dueMs = this.host.clock.monotonic() + RETRY_MS
    if (refusal !== 'storage-full') return
    this.forget(id)
    pending.reject(new EastGuardError('STORAGE_FULL', 'there is no space for more metadata'))
  }

  applied(id: ProposalId, result: Result): void {
    const pending = this.pending.get(id)
    if (pending === undefined) return
    this.forget(id)
    pending.resolve(result)
  }

  /** The copy has come further. `jumped`: nobody saw what lay between. */
  advanced(copy: ShardCopy, jumped: boolean): void {
    if (!jumped && this.terms.get(copy.shard) === copy.appliedTerm) return
    this.terms.set(copy.shard, copy.appliedTerm)
    const now = this.host.clock.monotonic()
    for (const [id, pending] of this.pending) {
      const { shard, offered } = pending
      if (shard !== copy.shard || offered === undefined) continue
      if (jumped && copy.appliedTerm >= offered.term) this.lose(id, pending)
      else if (copy.appliedTerm > offered.term) {
        pending.offered = undefined
        this.attempt(pending, now)
      }
    }
  }

  /** Resolves when none is under way, or the time is over. */
  settled(withinMs: number): Promise<void> {
    if (this.pending.size === 0) return Promise.resolve()
    return new Promise((resolve) => {
      const timer = this.host.clock.after(withinMs, resolve)
      this.onEmpty = () => {
        timer.cancel()
        resolve()
      }
    })
  }

  private forget(id: ProposalId): void {
    this.pending.delete(id)
    if (this.pending.size === 0) this.onEmpty()
  }

  /** Everybody who waits is told. */
  close(error: EastGuardError): void {
    for (const pending of this.pending.values()) pending.reject(error)
    this.pending.clear()
  }

  private giveUp(id: ProposalId, pending: Pending): void {
    if (pending.offered !== undefined) return this.lose(id, pending)
    this.refuse(pending, pending.why)
  }

  private refuse(pending: Pending, why: string): void {
    this.forget(proposalId(this.host.proposer, pending.number))
    pending.reject(unavailable(pending.shard, why))
  }

  private lose(id: ProposalId, pending: Pending): void {
    this.forget(id)
    const message = `nobody knows whether a change of metadata shard ${pending.shard} has taken effect: its leader was lost meanwhile`
    pending.reject(new EastGuardError('TIMEOUT', message, { detail: { shard: pending.shard } }))
  }
}

const REASONS: Readonly<Record<NonNullable<ProposeAnswer['refusal']>, string>> = {
  'not-leader': 'whoever was asked does not lead it',
  'term-not-begun': 'its leader has just been elected',
  'change-under-way': 'its members are changing',
  'no-such-member': 'its members have changed',
  'not-caught-up': 'its members have not caught up',
  'leadership-is-leaving': 'its leader hands over',
  'too-much-under-way': 'its leader has too much under way',
  'storage-full': 'there is no space for more metadata',
}

export function unavailable(shard: number, why: string): EastGuardError {
  const message = `metadata shard ${shard} cannot be asked: ${why}`
  return new EastGuardError('METADATA_UNAVAILABLE', message, { detail: { shard } })
}

export function proposalId(proposer: string, number: number): ProposalId {
  return `${proposer}.${number.toString(36)}`
}
