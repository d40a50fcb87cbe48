// The coordinator's care of one active range: it brings the open segment to its end when its replicas cannot go on, or should
// not, and its successor into being (PROTOCOLS §5).
//
//   watching ──ask-end──> the leader gives an end ─────────────┐
//      │                                                       ├──> staging ──all stored──> RollSegment ──applied──> watching
//      └──fence──> a sure answer, and time for the others ─────┘        │                       │
//                                                                       └── fails: other brokers, another token
//
// What it knows beyond the log (answers, tokens, leases) it knows for itself alone: another coordinator asks again. So nothing here
// is kept on disk, and nothing that it does needs to be right but these:
//
//   an end is the leader's own, or the greatest sure answer    never below a high watermark that anyone reported
//   RollSegment names the attempt under which the end was found, and is proposed when every broker of the successor has stored state and tail
//   the successor of a failed leader waits until that one can accept nothing more (`cleared`)
//   once a fence was sent, the lease is withheld: the leader cannot go on
//
// Events only note what they say; `tick` decides. It is made when something happens to a range, and may be dropped when `idle`.

import type { NodeId } from '../../model/ids.ts'
import { Avoided, pauseMs } from './avoided.ts'
import type {
  Candidates,
  CareEffect,
  CareView,
  LogEffect,
  ProposalOutcome,
  RollEffect,
} from './care-types.ts'
import { Asking, type AskReason, reasonToAsk } from './ends.ts'
import { Fencing } from './fencing.ts'
import { Proposal } from './proposing.ts'
import { Staging } from './staging.ts'
import { type Plan, planSuccessor } from './successor.ts'
import type { EndReason, FenceAnswer, LeadersEnd, SegmentTiming, StageOutcome } from './types.ts'

/** A frozen leader repeats the end that it gave: silent for longer, it is not relied on. */
const GIVEN_FRESH_MS = 1000
/** A successor that fails so soon was no better than what it came after. */
const SHORT_LIVED_MS = 10_000
/** Of a holder with whom staging failed so often, another one is taken if there is one. */
const HOLDER_FAILURES = 2
const RETRY_LEAST_MS = 100
const REFUSE_AGAIN_MS = 500

export interface RangeCareOptions {
  readonly view: CareView
  readonly timing: SegmentTiming
  readonly nowMs: number
  /** A new coordinator counts as if it had confirmed everyone's lease then. */
  readonly electedAtMs: number
  /** When the leader's lease was last confirmed, by the desk. Left out: as if now, which is always safe. */
  readonly confirmedMs?: number
  readonly token: () => string
}

interface Given {
  readonly end: LeadersEnd
  heardMs: number
}

export class RangeCare {
  private view: CareView
  private readonly timing: SegmentTiming
  private readonly token: () => string
  private candidates: Candidates | undefined
  private readonly boots = new Map<NodeId, number>()
  private readonly avoided = new Avoided()
  private readonly pending: LogEffect[] = []

  // Of the open segment; all of it begins anew with the next one.
  private openedMs: number | undefined
  private confirmedMs: number
  private leaderBoot: number | undefined
  private leaderStopped = false
  private gaveAttempt: number | undefined
  private readonly unfits = new Map<NodeId, EndReason>()
  private given: Given | undefined
  private fencing: Fencing | undefined
  private fencedWhy: EndReason = 'leader-failed'
  private staging: Staging | undefined
  private proposal: Proposal | undefined
  private reportedHighWatermark = 0
  private readonly holderFailures = new Map<NodeId, number>()
  private refusedMs: number | undefined
  private asking = new Asking()
  private failures = 0
  private nextTryMs = 0

  /** Successors in a row that failed soon after this leader had opened them. */
  private blame: { leader: NodeId; count: number } | undefined
  private quiet = false
  private problem: string | undefined

  constructor(options: RangeCareOptions) {
    this.view = options.view
    this.timing = options.timing
    this.token = options.token
    this.confirmedMs = Math.max(options.electedAtMs, options.confirmedMs ?? options.nowMs)
  }

  /** A fence was sent: no lease of this segment is confirmed any more. */
  get withholds(): boolean {
    return this.fencing !== undefined
  }

  /** There is nothing to do, and nothing to remember. */
  get idle(): boolean {
    return this.quiet
  }

  /** Unavailable, under-replicated, damaged: for people. */
  get trouble(): string | undefined {
    return this.problem
  }

  private get leader(): NodeId {
    return this.view.segment.replicas[0] as NodeId
  }

  // ---- what is heard

  /** The shard's log, as far as it is applied here. */
  applied(view: CareView, nowMs: number): void {
    this.quiet = false
    const before = this.view
    this.view = view
    if (view.segment.segment !== before.segment.segment) this.opened(before, nowMs)
    else if (view.segment.attempt !== before.segment.attempt) this.cancelled()
  }

  brokers(candidates: Candidates, _nowMs: number): void {
    this.quiet = false
    this.candidates = candidates
    for (const node of this.view.segment.replicas) this.see(node, candidates.boot(node))
    for (const node of this.staging?.members() ?? []) this.see(node, candidates.boot(node))
  }

  /** From a frozen leader. */
  gave(from: NodeId, boot: number, end: LeadersEnd, nowMs: number): void {
    if (from !== this.leader || !this.see(from, boot)) return
    this.quiet = false
    this.leaderBoot ??= boot
    if (this.leaderStopped || end.attempt !== this.view.segment.attempt) return
    this.reported(end.highWatermark)
    this.gaveAttempt = end.attempt
    if (this.given !== undefined) {
      this.given.heardMs = nowMs
      return
    }
    this.given = { end, heardMs: nowMs }
    this.asking.done()
    for (const { node } of end.failed) if (!this.restarted(node)) this.avoided.failed(node, nowMs)
    this.say('info', `the leader of a segment ends it: ${end.why}`, {
      end: end.end,
      failed: end.failed,
    })
  }

  /** A replica that cannot go on with the open segment says so itself. */
  unfit(from: NodeId, boot: number, why: EndReason, _nowMs: number): void {
    if (!this.view.segment.replicas.includes(from) || !this.see(from, boot)) return
    if (this.unfits.get(from) !== why) this.quiet = false
    this.unfits.set(from, why)
    // Either way it holds the segment fenced. One whose disk is stuck or damaged may still lead.
    if (from === this.leader && (why === 'restarted' || why === 'fenced')) this.leaderStops()
  }

  /** The leader's lease is confirmed now, to this start of it. */
  confirmed(leader: NodeId, nowMs: number, boot?: number): void {
    if (leader !== this.leader || this.withholds) return
    this.confirmedMs = Math.max(this.confirmedMs, nowMs)
    if (boot !== undefined && this.see(leader, boot)) this.leaderBoot ??= boot
  }

  fenceAnswered(from: NodeId, answer: FenceAnswer, nowMs: number): void {
    if (this.fencing === undefined || !this.see(from, answer.boot)) return
    if (!this.fencing.answered(from, answer, nowMs)) return
    this.reported(answer.highWatermark)
    if (from === this.leader) this.leaderStops()
  }

  staged(from: NodeId, token: string, outcome: StageOutcome, nowMs: number): void {
    const { staging } = this
    if (staging === undefined || staging.token !== token || staging.plan.holder !== from) return
    if (staging.staged !== undefined || this.proposal !== undefined) return
    if ('failed' in outcome) this.stagingFailed(outcome.failed, nowMs)
    else staging.staged = outcome
  }

  proposed(outcome: ProposalOutcome, nowMs: number): void {
    if (this.proposal === undefined) return
    if (outcome !== 'refused') {
      this.proposal.settled(outcome, nowMs)
      return
    }
    this.proposal = undefined
    this.staging = undefined
    this.failed(nowMs)
  }

  /** Someone asks for a roll. It is planned: nobody is in a hurry. */
  want(why: EndReason, _nowMs: number): void {
    this.quiet = false
    this.asking.want(why)
  }

  // ---- what is done

  tick(nowMs: number): readonly CareEffect[] {
    const out: CareEffect[] = this.pending.splice(0)
    const { candidates } = this
    if (candidates === undefined) return out
    this.brokers(candidates, nowMs)
    const gone = this.fencing === undefined ? this.leaderGone(candidates, nowMs) : undefined
    if (gone !== undefined) this.fence(gone, nowMs)
    if (this.fencing !== undefined) {
      const to = this.fencing.due(nowMs, this.timing)
      if (to.length > 0) out.push({ kind: 'fence', to })
    }
    if (this.proposal !== undefined) this.repeat(this.proposal, candidates, nowMs, out)
    else if (this.staging !== undefined) this.carryOn(this.staging, candidates, nowMs, out)
    else if (this.given !== undefined || this.fencing !== undefined) {
      this.end(candidates, nowMs, out)
    } else this.watch(candidates, nowMs, out)
    out.push(...this.pending.splice(0))
    return out
  }

  /** Why the leader is taken to have failed. */
  private leaderGone(candidates: Candidates, nowMs: number): EndReason | undefined {
    const unfit = this.unfits.get(this.leader)
    if (unfit !== undefined) return unfit
    if (this.leaderStopped) return 'restarted'
    const unheardMs = this.given === undefined ? 0 : nowMs - this.given.heardMs
    if (unheardMs >= this.timing.frozenTimeoutMs) return 'leader-failed'
    if (this.given !== undefined && this.isSetAside(this.leader)) return 'leader-failed'
    if (this.freshlyGiven(nowMs) !== undefined) return undefined
    const silentMs = nowMs - this.confirmedMs
    if (silentMs >= this.timing.leaseGraceMs) return 'leader-failed'
    const dead = !candidates.alive(this.leader)
    return dead && silentMs >= this.timing.replicaAckTimeoutMs ? 'leader-failed' : undefined
  }

  private fence(why: EndReason, nowMs: number): void {
    this.fencing = new Fencing(this.view.segment.replicas, nowMs)
    this.fencedWhy = why
    this.asking.done()
    const text = `fences a segment, whose leader cannot go on: ${why}`
    this.say('warn', text, { leader: this.leader, replicas: this.view.segment.replicas })
  }

  /** Nothing is wrong, or an end is asked for. */
  private watch(candidates: Candidates, nowMs: number, out: CareEffect[]): void {
    const { view, avoided, unfits, timing } = this
    const found = reasonToAsk({ view, candidates, unfits, without: avoided.at(nowMs) })
    this.problem = found.trouble
    const ask = this.asking.next(found, nowMs, timing)
    this.quiet = found.calm && this.asking.idle
    if (ask === undefined) return
    if (ask === 'unanswered') {
      this.unanswered(found.reason, nowMs)
      return
    }
    out.push({ kind: 'ask-end', to: this.leader, attempt: view.segment.attempt, why: ask })
  }

  private unanswered(reason: AskReason | undefined, nowMs: number): void {
    const text = 'a leader has given no end, though it was asked for one'
    this.say('warn', text, { leader: this.leader, why: reason?.why })
    if (reason?.urgent === true) this.fence('leader-failed', nowMs)
  }

  /** An end is given, or being found by the fence: who gets the successor? */
  private end(candidates: Candidates, nowMs: number, out: CareEffect[]): void {
    if (nowMs < this.nextTryMs) return
    const plan = this.plan(candidates, nowMs)
    if (plan === undefined) return
    if ('tooFew' in plan) this.tooFew(plan.tooFew, nowMs, out)
    else this.stage(plan, candidates, nowMs, out)
  }

  private plan(candidates: Candidates, nowMs: number): Plan | undefined {
    const found = this.findEnd(candidates, nowMs)
    if (found === undefined) return undefined
    if (this.reportedHighWatermark > found.end) {
      this.alarm(found.end)
      return undefined
    }
    return planSuccessor({
      view: this.view,
      candidates,
      ...found,
      tailFrom: this.reportedHighWatermark,
      without: this.avoided.at(nowMs),
      distrusted: this.distrusted(nowMs),
      failedHolder: (node) => this.isSetAside(node),
    })
  }

  private findEnd(
    candidates: Candidates,
    nowMs: number,
  ): { end: number; holders: readonly NodeId[]; why: EndReason } | undefined {
    const given = this.freshlyGiven(nowMs)
    if (given !== undefined && !this.isSetAside(this.leader)) {
      return { end: given.end, holders: [this.leader], why: given.why }
    }
    const { fencing } = this
    if (fencing === undefined) return undefined
    const alive = (node: NodeId): boolean => candidates.alive(node)
    // A holder that can hand on nothing to anyone is as good as lost, if there is another.
    const useful = (node: NodeId): boolean => alive(node) && !this.isSetAside(node)
    const found = fencing.end(useful) ?? fencing.end(alive)
    if (found === undefined && nowMs - fencing.sinceMs >= this.timing.fenceWaitMs) {
      this.unavailable(fencing)
    }
    if (found === undefined || !fencing.waited(alive, nowMs, this.timing)) return undefined
    return { ...found, why: this.fencedWhy }
  }

  private unavailable(fencing: Fencing): void {
    this.trouble_(
      'unavailable: no replica of the open segment is there that surely has all of it',
      {
        answers: fencing.told(),
      },
    )
  }

  private alarm(end: number): void {
    this.trouble_('damaged: entries of the open segment were readable that no replica has now', {
      end,
      highWatermark: this.reportedHighWatermark,
      answers: this.fencing?.told(),
    })
  }

  /** Says it once, as long as it is so. */
  private trouble_(text: string, detail: Readonly<Record<string, unknown>>): void {
    if (this.problem === text) return
    this.problem = text
    this.say('error', text, detail)
  }

  private tooFew(healthy: number, nowMs: number, out: CareEffect[]): void {
    const { minInsyncReplicas: least } = this.view.policy
    const text = `too few brokers: ${healthy} can hold a segment that needs ${least}`
    this.trouble_(text, {})
    if (this.fencing === undefined && this.given?.end.failed.length === 0) {
      // All of its replicas are well: it goes on as before.
      this.propose({ kind: 'cancel', attempt: this.given.end.attempt }, nowMs, out)
      return
    }
    if (this.refusedMs !== undefined && nowMs - this.refusedMs < REFUSE_AGAIN_MS) return
    this.refusedMs = nowMs
    out.push({ kind: 'end-refused', to: this.leader, code: 'NOT_ENOUGH_REPLICAS', text })
  }

  private stage(
    plan: Exclude<Plan, { tooFew: number }>,
    candidates: Candidates,
    nowMs: number,
    out: CareEffect[],
  ): void {
    this.problem = undefined
    const { attempt } = this.view.segment
    this.staging = new Staging({ ...plan, attempt }, this.token(), nowMs)
    for (const node of this.staging.members()) {
      this.see(node, candidates.boot(node))
      const boot = this.boots.get(node)
      if (boot !== undefined) this.staging.bootOf(node, boot)
    }
    const { holder, end, replicas, why } = plan
    this.say('info', 'stages the successor of a segment', { why, end, holder, replicas })
    this.carryOn(this.staging, candidates, nowMs, out)
  }

  private carryOn(
    staging: Staging,
    candidates: Candidates,
    nowMs: number,
    out: CareEffect[],
  ): void {
    const { plan, token } = staging
    const broken = staging.broken(candidates, (node) => this.boots.get(node))
    if (broken !== undefined) {
      this.say('warn', `gives up a staging: ${broken}`, { token })
      this.staging = undefined
      this.failed(nowMs)
      return
    }
    if (staging.staged !== undefined) {
      if (this.cleared(nowMs)) this.roll(staging, nowMs, out)
      return
    }
    if (nowMs - staging.sinceMs >= this.timing.stageTimeoutMs) {
      this.stagingFailed([], nowMs)
      return
    }
    if (!staging.due(nowMs, this.timing.retryMs)) return
    const { holder, end, tailFrom, replicas } = plan
    out.push({ kind: 'stage', to: holder, token, end, tailFrom, replicas })
  }

  private roll(staging: Staging, nowMs: number, out: CareEffect[]): void {
    const { plan, token, staged } = staging
    // A replica may have reported more since the end was found.
    if (this.reportedHighWatermark > plan.end) {
      this.staging = undefined
      this.alarm(plan.end)
      return
    }
    if (staged === undefined) return
    const { attempt, end, tailFrom, why, replicas } = plan
    const { nextOffsets, stateDigest } = staged
    const placement = { replicas, token, stateDigest }
    this.propose({ kind: 'roll', attempt, end, tailFrom, nextOffsets, placement, why }, nowMs, out)
  }

  /** The old leader accepts nothing more under any lease. */
  private cleared(nowMs: number): boolean {
    if (this.gaveAttempt === this.view.segment.attempt) return true
    if (this.leaderStopped) return true
    return nowMs - this.confirmedMs >= this.timing.leaseGraceMs
  }

  private propose(
    effect: RollEffect | Extract<CareEffect, { kind: 'cancel' }>,
    nowMs: number,
    out: CareEffect[],
  ): void {
    this.proposal = new Proposal(effect, nowMs)
    out.push(effect)
  }

  private repeat(
    proposal: Proposal,
    candidates: Candidates,
    nowMs: number,
    out: CareEffect[],
  ): void {
    if (!proposal.due(nowMs)) return
    const { effect } = proposal
    const broken = this.staging?.broken(candidates, (node) => this.boots.get(node))
    // It may have come to nothing, and is not worth repeating; but as long as it may yet be applied, nothing else is proposed.
    if (effect.kind === 'roll' && broken !== undefined) {
      this.say('warn', `cancels a roll of unknown outcome: ${broken}`, {})
      this.propose({ kind: 'cancel', attempt: effect.attempt }, nowMs, out)
    } else out.push(effect)
  }

  // ---- what goes wrong

  private stagingFailed(failed: readonly { node: NodeId; why: string }[], nowMs: number): void {
    const { staging } = this
    if (staging === undefined) return
    const { holder, replicas } = staging.plan
    this.staging = undefined
    const others = replicas.filter((node) => node !== holder)
    const text = failed.length === 0 ? 'the holder does not say that it is done' : 'not all have it'
    this.say('warn', `a staging failed: ${text}`, { holder, replicas, failed })
    if (failed.length === 0 || failed.length >= others.length) this.blameHolder(holder)
    for (const { node } of failed) this.avoided.failed(node, nowMs)
    this.failed(nowMs)
  }

  private blameHolder(node: NodeId): void {
    this.holderFailures.set(node, (this.holderFailures.get(node) ?? 0) + 1)
  }

  private isSetAside(node: NodeId): boolean {
    return (this.holderFailures.get(node) ?? 0) >= HOLDER_FAILURES
  }

  /** The first failure costs no time. */
  private failed(nowMs: number): void {
    this.failures++
    this.nextTryMs = this.failures === 1 ? nowMs : nowMs + pauseMs(this.failures, RETRY_LEAST_MS)
  }

  /** The leader itself is what fails: it is the common element of what failed. */
  private distrusted(nowMs: number): boolean {
    const given = this.freshlyGiven(nowMs)
    if (given === undefined || given.failed.length === 0) return false
    const { replicas } = this.view.segment
    const living = given.failed.filter(({ node }) => this.candidates?.alive(node) === true)
    if (given.failed.length * 2 >= replicas.length && living.length > 0) return true
    return this.blame?.leader === this.leader && this.blame.count >= 2
  }

  // ---- what is known

  private freshlyGiven(nowMs: number): LeadersEnd | undefined {
    if (this.given === undefined || nowMs - this.given.heardMs >= GIVEN_FRESH_MS) return undefined
    return this.given.end
  }

  private reported(highWatermark: number): void {
    this.reportedHighWatermark = Math.max(this.reportedHighWatermark, highWatermark)
  }

  private restarted(node: NodeId): boolean {
    return this.unfits.get(node) === 'restarted'
  }

  /** Notes a start of a broker. False: it is an earlier one than is known of, and nothing that it said counts. */
  private see(node: NodeId, boot: number | undefined): boolean {
    if (boot === undefined) return true
    const known = this.boots.get(node)
    if (known !== undefined && boot < known) return false
    if (known === boot) return true
    this.boots.set(node, boot)
    this.fencing?.bootIs(node, boot)
    if (node === this.leader && this.leaderBoot !== undefined && boot > this.leaderBoot) {
      this.leaderStops()
    }
    return true
  }

  /** It is fenced, by its word or by its restart; what it gave in an earlier start is not relied on. */
  private leaderStops(): void {
    const known = this.boots.get(this.leader)
    if (known !== undefined && this.leaderBoot !== undefined && known > this.leaderBoot) {
      this.given = undefined
    }
    this.leaderStopped = true
  }

  /** CancelEnd was applied: what was found under the attempt before can never commit. */
  private cancelled(): void {
    this.given = undefined
    this.staging = undefined
    this.proposal = undefined
    this.asking.done()
  }

  private opened(before: CareView, nowMs: number): void {
    this.blameLeader(before, nowMs)
    this.openedMs = nowMs
    this.confirmedMs = nowMs
    this.leaderBoot = undefined
    this.leaderStopped = false
    this.gaveAttempt = undefined
    this.unfits.clear()
    this.given = undefined
    this.fencing = undefined
    this.staging = undefined
    this.proposal = undefined
    this.reportedHighWatermark = 0
    this.holderFailures.clear()
    this.refusedMs = undefined
    this.asking = new Asking()
    this.failures = 0
    this.nextTryMs = 0
    this.problem = undefined
  }

  private blameLeader(before: CareView, nowMs: number): void {
    const failed = this.given !== undefined && this.given.end.failed.length > 0
    if (!failed) {
      this.blame = undefined
      return
    }
    const leader = before.segment.replicas[0] as NodeId
    const soon = this.openedMs !== undefined && nowMs - this.openedMs < SHORT_LIVED_MS
    const count = soon && this.blame?.leader === leader ? this.blame.count + 1 : 1
    this.blame = { leader, count }
  }

  private say(
    level: LogEffect['level'],
    text: string,
    detail: Readonly<Record<string, unknown>>,
  ): void {
    const { topicId, range, segment } = this.view
    const at = { topicId, range, segment: segment.segment, attempt: segment.attempt }
    this.pending.push({ kind: 'log', level, text, detail: { ...at, ...detail } })
  }
}
