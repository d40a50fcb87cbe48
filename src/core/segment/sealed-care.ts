// The coordinator's care of one sealed segment: it is settled once, and returns to its replication factor when brokers are lost or
// drained (PROTOCOLS §5).
//
//   unsettled ──every replica is whole, all with one digest──> SettleSegment ──> settled: a replica proves itself by the digest
//               (who is gone is not waited for)
//
//   a replica is lost for repair_delay_ms, or drained ──> ReassignSegment add ──> it copies, and proves the digest ──> ReassignSegment drop
//
// A replica is proven when it is alive and has said, in its present start and not long ago, that it is whole with the digest that
// holds: the settled one, else the one on which all agree who are whole. Digests that differ are not put to a vote. Nothing is ever
// dropped before as many others are proven as there should be: so the last good copy cannot be.

import type { NodeId, TopicId } from '../../model/ids.ts'
import { pauseMs } from './avoided.ts'
import type { Candidates, LogEffect, ProposalOutcome, ReplicaPolicy } from './care-types.ts'
import { Inspections } from './inspections.ts'
import { Report } from './report.ts'
import type { InspectAnswer, SegmentTiming } from './types.ts'

/** Brokers that come and go do not change who holds a segment each time. */
const MORE_BROKERS_FOR_MS = 2000
/** An outcome, or the log entry of a proposal that was applied, comes sooner than this. */
const SILENT_MS = 5000
const AGAIN_MS = 500
const NOBODY = 'unavailable: no replica of a sealed segment is there'

export interface SealedView {
  readonly topicId: TopicId
  readonly range: number
  readonly segment: {
    readonly segment: number
    readonly replicas: readonly NodeId[]
    /** Empty: unsettled. */
    readonly digest: string
  }
  readonly policy: ReplicaPolicy
}

interface SettleEffect {
  readonly kind: 'settle'
  readonly digest: string
}

interface ReassignEffect {
  readonly kind: 'reassign'
  readonly change: 'add' | 'drop'
  readonly replica: NodeId
  /** For these replicas it is right: another proposal, whose outcome is not known, may have changed them by then. */
  readonly seen: readonly NodeId[]
}

export type SealedEffect =
  | { readonly kind: 'inspect'; readonly to: readonly NodeId[] }
  | SettleEffect
  | ReassignEffect
  | LogEffect

export class SealedCare {
  private view: SealedView
  private readonly timing: SegmentTiming
  private candidates: Candidates | undefined
  private readonly inspections: Inspections
  private readonly deadSinceMs = new Map<NodeId, number>()
  private fewSinceMs: number | undefined
  private proposal: { effect: SettleEffect | ReassignEffect; dueMs: number } | undefined
  private refusals = 0
  private pausedUntilMs = 0
  private readonly report: Report
  private quiet = false

  constructor(view: SealedView, timing: SegmentTiming) {
    this.view = view
    this.timing = timing
    this.inspections = new Inspections(timing)
    this.report = new Report(() => this.about())
  }

  /** Settled, and on as many brokers as it can be. */
  get idle(): boolean {
    return this.quiet
  }

  get trouble(): string | undefined {
    return this.report.trouble
  }

  // ---- what is heard

  applied(view: SealedView): void {
    const before = this.view.segment
    this.view = view
    this.quiet = false
    const { digest, replicas } = view.segment
    const changed = digest !== before.digest || replicas.join() !== before.replicas.join()
    if (changed) this.proposal = undefined
    this.inspections.keepOnly(replicas)
  }

  brokers(candidates: Candidates, nowMs: number): void {
    this.candidates = candidates
    this.quiet = false
    for (const node of this.view.segment.replicas) {
      this.inspections.bootIs(node, candidates.boot(node))
      if (candidates.alive(node)) this.deadSinceMs.delete(node)
      else if (!this.deadSinceMs.has(node)) {
        this.deadSinceMs.set(node, candidates.deadSince?.(node) ?? nowMs)
        this.inspections.forget(node)
      }
    }
  }

  /** Said in the start `boot`: an earlier one than is known of does not count. */
  inspected(from: NodeId, answer: InspectAnswer, nowMs: number, boot: number): void {
    if (!this.view.segment.replicas.includes(from)) return
    if (this.candidates?.alive(from) === false) return
    const known = this.candidates?.boot(from)
    if (known !== undefined && boot < known) return
    const news = this.inspections.answered(from, answer, nowMs)
    if (answer.kind !== 'damaged' || !news) return
    this.report.say(
      'warn',
      'a replica of a sealed segment is damaged, and mends itself from another',
      {
        replica: from,
        why: answer.why,
      },
    )
  }

  proposed(outcome: ProposalOutcome, nowMs: number): void {
    const { proposal } = this
    if (proposal === undefined) return
    if (outcome === 'applied') {
      proposal.dueMs = nowMs + SILENT_MS
      return
    }
    this.refusals++
    const pause = pauseMs(this.refusals, AGAIN_MS)
    if (outcome === 'unknown') proposal.dueMs = nowMs + pause
    else {
      this.proposal = undefined
      this.pausedUntilMs = nowMs + pause
    }
  }

  // ---- what is done

  tick(nowMs: number): readonly SealedEffect[] {
    const { candidates } = this
    if (candidates === undefined) return this.report.take()
    this.brokers(candidates, nowMs)
    const out: SealedEffect[] = []
    if (this.proposal !== undefined) this.repeat(this.proposal, nowMs, out)
    else if (nowMs >= this.pausedUntilMs) {
      const next = this.next(candidates, nowMs)
      if (next !== undefined) this.propose(next, nowMs, out)
    }
    const to = this.quiet ? [] : this.inspections.due(this.living(candidates), nowMs)
    if (to.length > 0) out.push({ kind: 'inspect', to })
    return [...this.report.take(), ...out]
  }

  /** The change that is due, if any. */
  private next(candidates: Candidates, nowMs: number): SettleEffect | ReassignEffect | undefined {
    const { replicas, digest } = this.view.segment
    const living = this.living(candidates)
    if (living.length === 0) this.report.wrong(NOBODY)
    else if (this.isRight(living, nowMs)) this.report.trouble = undefined
    const found = this.inspections.digests(replicas)
    if (digest === '') {
      if (found.size > 1) this.differ(found)
      const one = this.agreed(found, candidates, nowMs)
      if (one !== undefined) return { kind: 'settle', digest: one }
    } else {
      found.delete(digest)
      if (found.size > 0) this.differ(found)
    }
    const change = this.reassignment(candidates, nowMs)
    this.quiet =
      change === undefined && digest !== '' && this.atRest(candidates) && found.size === 0
    if (this.quiet) this.report.trouble = undefined
    return change
  }

  /** What was wrong is not so any more, also when it is not over: another replica may be missing still. */
  private isRight(living: readonly NodeId[], nowMs: number): boolean {
    if (this.report.trouble === NOBODY) return true
    return this.view.segment.digest !== '' && living.every((node) => this.proven(node, nowMs))
  }

  /** The digest of all that are left, if they are whole and as many as an open segment needs. */
  private agreed(
    found: ReadonlyMap<string, readonly NodeId[]>,
    candidates: Candidates,
    nowMs: number,
  ): string | undefined {
    const { segment, policy } = this.view
    const staying = segment.replicas.filter((node) => !this.gone(node, candidates, nowMs))
    const [one] = found
    if (one === undefined || found.size > 1) return undefined
    const [digest, whole] = one
    const enough = staying.length >= Math.max(1, policy.minInsyncReplicas)
    return enough && staying.every((node) => whole.includes(node)) ? digest : undefined
  }

  private reassignment(candidates: Candidates, nowMs: number): ReassignEffect | undefined {
    const { replicas } = this.view.segment
    const { replicationFactor } = this.view.policy
    const staying = replicas.filter((node) => !this.gone(node, candidates, nowMs))
    const others = new Set(replicas.filter((node) => !staying.includes(node)))
    const picked = candidates.pick(replicationFactor, staying, undefined, others)
    if (staying.length < replicationFactor) {
      const fresh = picked.find((node) => !replicas.includes(node))
      this.fewSinceMs = fresh === undefined ? undefined : (this.fewSinceMs ?? nowMs)
      const lost = staying.length < replicas.length
      const longEnough = lost || nowMs - (this.fewSinceMs ?? nowMs) >= MORE_BROKERS_FOR_MS
      if (fresh !== undefined && longEnough) {
        return { kind: 'reassign', change: 'add', replica: fresh, seen: replicas }
      }
    } else this.fewSinceMs = undefined
    return this.drop(staying, candidates, nowMs)
  }

  private drop(
    staying: readonly NodeId[],
    candidates: Candidates,
    nowMs: number,
  ): ReassignEffect | undefined {
    const { replicas, digest } = this.view.segment
    // Before it is settled the one that goes may have what the others lack.
    if (digest === '') return undefined
    const { replicationFactor, minInsyncReplicas } = this.view.policy
    const proven = staying.filter((node) => candidates.alive(node) && this.proven(node, nowMs))
    const gone = replicas.filter((node) => !staying.includes(node))
    // Who is only dead may come back, and is at home then: it goes when there are enough without it. Who leaves goes also when there
    // is nobody to take its place; but while others are away, or full, its copy may be the one that is missed.
    const leaving = gone.find((node) => candidates.leaving(node))
    const enough = Math.max(1, minInsyncReplicas, Math.min(replicationFactor, candidates.members()))
    if (leaving !== undefined && proven.length >= enough) return dropOf(leaving, replicas)
    const [lost] = gone
    if (lost !== undefined && proven.length >= replicationFactor) return dropOf(lost, replicas)
    if (gone.length > 0 || staying.length <= replicationFactor) return undefined
    const surplus = staying.findLast((node) => !proven.includes(node)) ?? staying.at(-1)
    const without = proven.filter((node) => node !== surplus)
    return surplus !== undefined && without.length >= replicationFactor
      ? dropOf(surplus, replicas)
      : undefined
  }

  private proven(node: NodeId, nowMs: number): boolean {
    const { digest, replicas } = this.view.segment
    if (digest !== '') return this.inspections.proves(node, digest, nowMs)
    const found = this.inspections.digests(replicas)
    const [one] = found.keys()
    return found.size === 1 && one !== undefined && this.inspections.proves(node, one, nowMs)
  }

  /** It is to hold nothing; or it will not come back, or not become whole, as far as this can be known. */
  private gone(node: NodeId, candidates: Candidates, nowMs: number): boolean {
    if (candidates.leaving(node)) return true
    const { repairDelayMs } = this.timing
    const since = this.deadSinceMs.get(node)
    if (since !== undefined) return nowMs - since >= repairDelayMs
    if (!this.inspections.stalled(node, nowMs, repairDelayMs)) return false
    // Without a whole one there is nothing that anyone could copy.
    const { replicas } = this.view.segment
    const others = replicas.length < 2 * this.view.policy.replicationFactor
    return others && replicas.some((one) => this.proven(one, nowMs))
  }

  /** Nothing will be wrong by the mere passing of time. */
  private atRest(candidates: Candidates): boolean {
    const { replicas } = this.view.segment
    const { replicationFactor } = this.view.policy
    if (replicas.some((node) => !candidates.alive(node) || candidates.leaving(node))) return false
    if (replicas.length === replicationFactor) return true
    const possible = candidates.pick(replicationFactor, replicas).length
    return replicas.length < replicationFactor && possible <= replicas.length
  }

  private living(candidates: Candidates): readonly NodeId[] {
    return this.view.segment.replicas.filter((node) => candidates.alive(node))
  }

  private propose(effect: SettleEffect | ReassignEffect, nowMs: number, out: SealedEffect[]): void {
    this.proposal = { effect, dueMs: nowMs + SILENT_MS }
    if (effect.kind === 'settle') this.report.trouble = undefined
    else {
      const text =
        effect.change === 'add'
          ? 'gives a sealed segment to another broker, since a replica is lost, drained or missing'
          : 'takes a sealed segment from a broker: the others are proven'
      const { replicas } = this.view.segment
      this.report.say('info', text, { broker: effect.replica, replicas })
    }
    out.push(effect)
  }

  /** It compares and sets: to make it again is safe. But what was to be dropped may be needed by now. */
  private repeat(
    proposal: { effect: SettleEffect | ReassignEffect; dueMs: number },
    nowMs: number,
    out: SealedEffect[],
  ): void {
    if (nowMs < proposal.dueMs) return
    if (proposal.effect.kind === 'settle') {
      proposal.dueMs = nowMs + SILENT_MS
      out.push(proposal.effect)
    } else this.proposal = undefined
  }

  private differ(found: ReadonlyMap<string, readonly NodeId[]>): void {
    const text =
      'replicas of a sealed segment are whole and differ: what one serves another has not'
    this.report.wrong(text, {
      settled: this.view.segment.digest,
      digests: Object.fromEntries(found),
    })
  }

  private about(): Readonly<Record<string, unknown>> {
    const { topicId, range, segment } = this.view
    return { topicId, range, segment: segment.segment }
  }
}

function dropOf(replica: NodeId, seen: readonly NodeId[]): ReassignEffect {
  return { kind: 'reassign', change: 'drop', replica, seen }
}
