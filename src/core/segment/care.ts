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
import { Blame } from './blame.ts'
import type {
  CancelEffect,
  Candidates,
  CareEffect,
  CareView,
  ProposalOutcome,
  RollEffect,
} from './care-types.ts'
import { Asking, type AskReason, reasonToAsk } from './ends.ts'
import { OpenSegment } from './open-segment.ts'
import { planEnd } from './planning.ts'
import { Proposal } from './proposing.ts'
import { isDamaged, Report, tellForced } from './report.ts'
import { Staging } from './staging.ts'
import type { Plan } from './successor.ts'
import type {
  EndReason,
  FenceAnswer,
  Forceable,
  LeadersEnd,
  SegmentTiming,
  StageReport,
} from './types.ts'

const RETRY_LEAST_MS = 100
const REFUSE_AGAIN_MS = 500

export interface RangeCareOptions {
  readonly view: CareView
  readonly timing: SegmentTiming
  /** Since when the leader may hold a lease, as the desk counts it. */
  readonly confirmedMs: number
  readonly token: () => string
  /** Whether a staging may begin now; otherwise it is asked for again, and nothing is lost. Default: any. */
  readonly mayStage?: () => boolean
  /** One was done, or given up, after so long. */
  readonly stagingTook?: (ms: number) => void
}

export class RangeCare {
  private view: CareView
  private readonly timing: SegmentTiming
  private readonly options: RangeCareOptions
  private candidates: Candidates | undefined
  private readonly boots = new Map<NodeId, number>()
  private readonly avoided = new Avoided()
  private readonly report: Report

  // Of the open segment; all of it begins anew with the next one.
  private open: OpenSegment
  private staging: Staging | undefined
  private proposal: Proposal | undefined
  private refusedMs: number | undefined
  private asking = new Asking()
  private failures = 0
  /** Stagings of this segment that stood still. */
  private silences = 0
  private nextTryMs = 0

  private readonly blame = new Blame()
  private quiet = false

  constructor(options: RangeCareOptions) {
    this.options = options
    this.view = options.view
    this.timing = options.timing
    this.report = new Report(() => this.about())
    this.open = new OpenSegment(options.view, this.boots, options.confirmedMs)
  }

  /** A fence was sent: no lease of this segment is confirmed any more. */
  get withholds(): boolean {
    return this.open.fencing !== undefined
  }

  /** There is nothing to do, and nothing to remember. */
  get idle(): boolean {
    return this.quiet
  }

  /** Something is being staged. What has moved for long already is much: others need not wait until all of it has. */
  get stages(): boolean {
    const { staging, timing } = this
    if (staging === undefined || staging.staged !== undefined) return false
    return staging.movedMs - staging.sinceMs < timing.stageTimeoutMs
  }

  /** Unavailable, under-replicated, damaged: for people. */
  get trouble(): string | undefined {
    return this.report.trouble
  }

  // ---- what is heard

  /** The shard's log, as far as it is applied here. */
  applied(view: CareView, nowMs: number): void {
    this.quiet = false
    const before = this.view
    this.view = view
    if (view.segment.segment !== before.segment.segment) this.opened(nowMs)
    else if (view.segment.attempt !== before.segment.attempt) this.cancelled(nowMs)
  }

  brokers(candidates: Candidates): void {
    this.quiet = false
    this.candidates = candidates
    for (const node of this.open.replicas) this.open.see(node, candidates.boot(node))
    for (const node of this.staging?.members() ?? []) this.open.see(node, candidates.boot(node))
  }

  /** From a frozen leader. */
  gave(from: NodeId, boot: number, end: LeadersEnd, nowMs: number): void {
    this.quiet = false
    const { open } = this
    if (from !== open.leader || !open.gave(boot, end, nowMs)) return
    this.asking.done()
    for (const { node } of end.failed) {
      const unfit = open.unfits.get(node)
      // Such a one is well, and may be given the next segment.
      if (unfit !== 'restarted' && unfit !== 'fenced') this.avoided.failed(node, nowMs)
    }
    const text = `the leader of a segment ends it: ${end.why}`
    this.report.say('info', text, { end: end.end, failed: end.failed })
  }

  /** A replica that cannot go on with the open segment says so itself. */
  unfit(from: NodeId, boot: number, why: EndReason): void {
    this.quiet = false
    this.open.unfit(from, boot, why)
  }

  /** The leader's lease is confirmed now, to this start of it. */
  confirmed(leader: NodeId, nowMs: number, boot?: number): void {
    if (leader === this.open.leader && !this.withholds) this.open.confirmed(boot, nowMs)
  }

  fenceAnswered(from: NodeId, answer: FenceAnswer, nowMs: number): void {
    this.open.fenceAnswered(from, answer, nowMs)
  }

  staged(from: NodeId, token: string, report: StageReport, nowMs: number): void {
    const { staging } = this
    if (staging === undefined || staging.token !== token || staging.plan.holder !== from) return
    if (staging.staged !== undefined || this.proposal !== undefined) return
    if ('moved' in report) staging.movesOn(report.moved, nowMs)
    else if ('failed' in report) this.stagingFailed(report.failed, nowMs)
    else {
      staging.staged = report
      this.options.stagingTook?.(nowMs - staging.sinceMs)
    }
  }

  /** What became of `effect`: that of an earlier proposal is no news any more. */
  proposed(outcome: ProposalOutcome, nowMs: number, effect?: RollEffect | CancelEffect): void {
    if (this.proposal === undefined) return
    if (effect !== undefined && effect !== this.proposal.effect) return
    if (outcome !== 'refused') {
      this.proposal.settled(outcome, nowMs)
      return
    }
    this.proposal = undefined
    this.staging = undefined
    this.failed(nowMs)
  }

  /** What an operator who forces an end has to know. Undefined: no end has to be forced. */
  get forceable(): Forceable | undefined {
    return this.candidates === undefined ? undefined : this.open.forceable(this.candidates)
  }

  /** An operator gives up what lies at or above `end`. Answers why not, if it is not to be. */
  force(end: number): string | undefined {
    const known = this.forceable
    if (known === undefined) return 'its end can be found without that'
    const held = known.answers.some((one) => one.end >= end)
    if (!held) return `no replica that is there has ${end} entries`
    this.open.forcedEnd = end
    tellForced(this.report, this.open, end)
    return undefined
  }

  // ---- what is done

  tick(nowMs: number): readonly CareEffect[] {
    const out: CareEffect[] = [...this.report.take()]
    const { candidates } = this
    if (candidates === undefined) return out
    this.brokers(candidates)
    const gone = this.withholds ? undefined : this.open.leaderGone(candidates, nowMs, this.timing)
    if (gone !== undefined) this.fence(gone, nowMs)
    const to = this.open.fencing?.due(nowMs, this.timing) ?? []
    if (to.length > 0) out.push({ kind: 'fence', to })
    if (this.proposal !== undefined) this.repeat(this.proposal, candidates, nowMs, out)
    else if (this.staging !== undefined) this.carryOn(this.staging, candidates, nowMs, out)
    else if (this.open.given !== undefined || this.withholds) {
      this.end(candidates, nowMs, out)
    } else this.watch(candidates, nowMs, out)
    out.push(...this.report.take())
    return out
  }

  private fence(why: EndReason, nowMs: number): void {
    const { leader, replicas } = this.open
    if (this.open.setAside(leader)) {
      // Who cannot hand on what it has to anyone said of others what is true of itself. Those that are ill do not answer the fence.
      for (const node of replicas) this.avoided.forgive(node)
      this.avoided.failed(leader, nowMs)
    }
    this.open.fence(why, nowMs)
    this.asking.done()
    const text = `fences a segment, whose leader cannot go on: ${why}`
    // After a restart that is how every range goes on.
    this.report.say(why === 'restarted' ? 'info' : 'warn', text, { leader, replicas })
  }

  /** Nothing is wrong, or an end is asked for. */
  private watch(candidates: Candidates, nowMs: number, out: CareEffect[]): void {
    const { view, avoided, timing } = this
    const { unfits } = this.open
    const found = reasonToAsk({ view, candidates, unfits, without: avoided.at(nowMs) })
    this.report.trouble = found.trouble
    const ask = this.asking.next(found, nowMs, timing)
    this.quiet = found.calm
    if (ask === undefined) return
    if (ask === 'unanswered') {
      this.unanswered(found.reason, nowMs)
      return
    }
    out.push({ kind: 'ask-end', to: this.open.leader, attempt: view.segment.attempt, why: ask })
  }

  private unanswered(reason: AskReason | undefined, nowMs: number): void {
    const text = 'a leader has given no end, though it was asked for one'
    this.report.say('warn', text, { leader: this.open.leader, why: reason?.why })
    if (reason?.urgent === true) this.fence('leader-failed', nowMs)
  }

  /** An end is given, or being found by the fence: who gets the successor? */
  private end(candidates: Candidates, nowMs: number, out: CareEffect[]): void {
    if (nowMs < this.nextTryMs) return
    const { view, open, avoided, blame, report, timing } = this
    const plan = planEnd({ view, open, avoided, blame, report, timing, candidates }, nowMs)
    if (plan === undefined) return
    if ('tooFew' in plan) this.tooFew(plan.tooFew, candidates, nowMs, out)
    else if (this.options.mayStage?.() !== false) this.stage(plan, candidates, nowMs, out)
  }

  private tooFew(healthy: number, candidates: Candidates, nowMs: number, out: CareEffect[]): void {
    const { minInsyncReplicas: least } = this.view.policy
    const stopped = this.open.replicas.filter((node) => candidates.stopping?.(node) === true).length
    const few = `too few brokers: ${healthy} can hold a segment that needs ${least}`
    // Whoever stops brokers in order means that: nothing has failed.
    const meant = healthy + stopped >= least
    const text = meant ? `${few}, while ${stopped} of its brokers stop or are stopped` : few
    this.report.shortage(meant ? 'warn' : 'error', text)
    if (!this.withholds && this.open.given?.end.failed.length === 0) {
      // All of its replicas are well: it goes on as before.
      this.propose({ kind: 'cancel', attempt: this.open.given.end.attempt }, nowMs, out)
      return
    }
    if (this.refusedMs !== undefined && nowMs - this.refusedMs < REFUSE_AGAIN_MS) return
    this.refusedMs = nowMs
    out.push({ kind: 'end-refused', to: this.open.leader, code: 'NOT_ENOUGH_REPLICAS', text })
  }

  private stage(
    plan: Exclude<Plan, { tooFew: number }>,
    candidates: Candidates,
    nowMs: number,
    out: CareEffect[],
  ): void {
    this.report.trouble = undefined
    const { attempt } = this.view.segment
    this.staging = new Staging({ ...plan, attempt }, this.options.token(), nowMs)
    for (const node of this.staging.members()) {
      this.open.see(node, candidates.boot(node))
      const boot = this.boots.get(node)
      if (boot !== undefined) this.staging.bootOf(node, boot)
    }
    const { holder, end, replicas, why } = plan
    this.report.say('info', 'stages the successor of a segment', { why, end, holder, replicas })
    this.carryOn(this.staging, candidates, nowMs, out)
  }

  private carryOn(
    staging: Staging,
    candidates: Candidates,
    nowMs: number,
    out: CareEffect[],
  ): void {
    const { plan, token } = staging
    const broken = this.broken(staging, candidates)
    if (broken !== undefined) {
      this.report.say('warn', `gives up a staging: ${broken}`, { token })
      this.staging = undefined
      this.failed(nowMs)
      return
    }
    if (staging.staged !== undefined) {
      if (this.open.cleared(nowMs, this.timing)) this.roll(staging, nowMs, out)
      return
    }
    // What a holder needs before anything moves may take longer than that: then twice, and twice again.
    const patience = 2 ** Math.min(3, Math.max(0, this.silences - 1))
    if (staging.stands(nowMs, this.timing.stageTimeoutMs * patience)) {
      this.silences++
      this.stagingFailed([], nowMs)
      return
    }
    if (!staging.due(nowMs, this.timing.retryMs)) return
    const { holder, end, tailFrom, replicas } = plan
    out.push({ kind: 'stage', to: holder, token, end, tailFrom, replicas })
  }

  /** Why a staging leads to nothing any more. */
  private broken(staging: Staging, candidates: Candidates): string | undefined {
    const needless = staging.plan.why === 'forced' && this.open.forceable(candidates) === undefined
    if (needless) return 'a replica is back that surely has all, and no end has to be forced'
    return staging.broken(candidates, (node) => this.boots.get(node))
  }

  private roll(staging: Staging, nowMs: number, out: CareEffect[]): void {
    const { plan, token, staged } = staging
    // A replica may have reported more since the end was found.
    if (isDamaged(this.report, this.open, plan)) {
      this.staging = undefined
      return
    }
    if (staged === undefined) return
    const { attempt, end, tailFrom, why, replicas } = plan
    const { nextOffsets, stateDigest } = staged
    const placement = { replicas, token, stateDigest }
    this.propose({ kind: 'roll', attempt, end, tailFrom, nextOffsets, placement, why }, nowMs, out)
  }

  private propose(effect: RollEffect | CancelEffect, nowMs: number, out: CareEffect[]): void {
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
    const broken = this.staging === undefined ? undefined : this.broken(this.staging, candidates)
    // It may have come to nothing, and is not worth repeating; but as long as it may yet be applied, nothing else is proposed.
    if (
      effect.kind === 'roll' &&
      (broken !== undefined || isDamaged(this.report, this.open, effect))
    ) {
      const why = broken ?? 'it would hide what was readable'
      this.report.say('warn', `cancels a roll of unknown outcome: ${why}`)
      this.propose({ kind: 'cancel', attempt: effect.attempt }, nowMs, out)
    } else out.push(effect)
  }

  // ---- what goes wrong

  private stagingFailed(failed: readonly { node: NodeId; why: string }[], nowMs: number): void {
    const { staging } = this
    if (staging === undefined) return
    const { holder, replicas } = staging.plan
    const tookMs = nowMs - staging.sinceMs
    // What fails at once says nothing of how long others take.
    if (tookMs >= this.timing.stageTimeoutMs) this.options.stagingTook?.(tookMs)
    this.staging = undefined
    const others = replicas.filter((node) => node !== holder)
    const text = failed.length === 0 ? 'nothing of it moves any more' : 'not all have it'
    this.report.say('warn', `a staging failed: ${text}`, { holder, replicas, failed })
    if (failed.length === 0 || failed.length >= others.length) this.open.holderFailed(holder)
    for (const { node } of failed) this.avoided.failed(node, nowMs)
    this.failed(nowMs)
  }

  /** The first failure costs no time. */
  private failed(nowMs: number): void {
    this.failures++
    this.nextTryMs = this.failures === 1 ? nowMs : nowMs + pauseMs(this.failures, RETRY_LEAST_MS)
  }

  /** CancelEnd was applied: what was found under the attempt before can never commit. */
  private cancelled(nowMs: number): void {
    const { staging, open } = this
    open.attemptIs(this.view.segment.attempt)
    // The holder may be the leader itself, which waited for its own staging: were that not counted, it would do so for ever.
    const longMs = Math.min(this.timing.stageTimeoutMs, this.timing.frozenTimeoutMs) / 2
    if (
      staging !== undefined &&
      staging.staged === undefined &&
      nowMs - staging.movedMs >= longMs
    ) {
      open.holderFailed(staging.plan.holder)
    }
    this.staging = undefined
    this.proposal = undefined
    this.asking.done()
  }

  private opened(nowMs: number): void {
    this.blame.ended(this.open, nowMs)
    this.open = new OpenSegment(this.view, this.boots, nowMs, nowMs)
    this.staging = undefined
    this.proposal = undefined
    this.refusedMs = undefined
    this.asking = new Asking()
    this.failures = 0
    this.silences = 0
    this.nextTryMs = 0
    this.report.trouble = undefined
  }

  private about(): Readonly<Record<string, unknown>> {
    const { topicId, range, segment } = this.view
    return { topicId, range, segment: segment.segment, attempt: segment.attempt }
  }
}
