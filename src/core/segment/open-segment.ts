// What a coordinator knows of an open segment beyond the log: what its replicas said, in which start, and what the leader may still
// do. A new one is made for each segment.

import type { NodeId } from '../../model/ids.ts'
import type { Candidates, CareView } from './care-types.ts'
import { type FencedEnd, Fencing } from './fencing.ts'
import type { EndReason, FenceAnswer, Forceable, LeadersEnd, SegmentTiming } from './types.ts'

/** A frozen leader repeats the end that it gave: silent for longer, it is not relied on. */
const GIVEN_FRESH_MS = 1000
/** Of a holder with whom staging failed so often, another one is taken if there is one. */
const HOLDER_FAILURES = 2

interface Given {
  readonly end: LeadersEnd
  heardMs: number
}

export interface FoundEnd {
  readonly end: number
  /** Who has exactly that: at least one. */
  readonly holders: readonly NodeId[]
  readonly why: EndReason
  /** By the leader itself. */
  readonly given: boolean
}

export class OpenSegment {
  readonly leader: NodeId
  readonly replicas: readonly NodeId[]
  /** When its opening was applied here; undefined: before it was looked at. */
  readonly openedMs: number | undefined
  /** Replicas that cannot go on, by their own word. */
  readonly unfits: Map<NodeId, EndReason> = new Map()
  /** Under the attempt that is current. */
  given: Given | undefined
  fencing: Fencing | undefined
  /** An operator's, for as long as there is no other end. */
  forcedEnd: number | undefined
  /** The greatest high watermark that any replica told of: entries below were readable. */
  highWatermark = 0
  private fencedWhy: EndReason = 'leader-failed'
  private attempt: number
  private readonly boots: Map<NodeId, number>
  private confirmedMs: number
  /** The start in which it leads, once that was heard from itself. */
  private leaderBoot: number | undefined
  /** It has fenced the segment itself, or a later start of it was seen, which is the same. */
  private leaderStopped = false
  /** There was time enough for answers, and no end follows from them. */
  stuck = false
  private readonly holderFailures = new Map<NodeId, number>()

  constructor(
    { segment }: CareView,
    boots: Map<NodeId, number>,
    confirmedMs: number,
    openedMs?: number,
  ) {
    this.replicas = segment.replicas
    this.leader = segment.replicas[0] as NodeId
    this.attempt = segment.attempt
    this.boots = boots
    this.confirmedMs = confirmedMs
    this.openedMs = openedMs
  }

  // ---- what is heard

  /** Notes a start of a broker. False: it is an earlier one than is known of, and nothing that it said counts. */
  see(node: NodeId, boot: number | undefined): boolean {
    if (boot === undefined) return true
    const known = this.boots.get(node)
    if (known !== undefined && boot < known) return false
    this.boots.set(node, boot)
    this.fencing?.bootIs(node, boot)
    const restarted = this.leaderBoot !== undefined && boot > this.leaderBoot
    if (node === this.leader && restarted) {
      // What it gave in an earlier start is not relied on: who knows what it has now.
      this.given = undefined
      this.leaderStopped = true
    }
    return true
  }

  /** True: this is news. */
  gave(boot: number, end: LeadersEnd, nowMs: number): boolean {
    if (!this.see(this.leader, boot)) return false
    this.leaderBoot ??= boot
    if (this.leaderStopped || end.attempt !== this.attempt) return false
    this.highWatermark = Math.max(this.highWatermark, end.highWatermark)
    const news = this.given === undefined
    this.given ??= { end, heardMs: nowMs }
    this.given.heardMs = nowMs
    return news
  }

  unfit(from: NodeId, boot: number, why: EndReason): void {
    if (!this.replicas.includes(from) || !this.see(from, boot)) return
    this.unfits.set(from, why)
    // Either way it holds the segment fenced. One whose disk is stuck or damaged may still lead.
    if (from === this.leader && (why === 'restarted' || why === 'fenced')) this.leaderStopped = true
  }

  confirmed(boot: number | undefined, nowMs: number): void {
    this.confirmedMs = Math.max(this.confirmedMs, nowMs)
    if (boot !== undefined && this.see(this.leader, boot)) this.leaderBoot ??= boot
  }

  fenceAnswered(from: NodeId, answer: FenceAnswer, nowMs: number): void {
    if (this.fencing === undefined || !this.see(from, answer.boot)) return
    if (!this.fencing.answered(from, answer, nowMs)) return
    this.highWatermark = Math.max(this.highWatermark, answer.highWatermark)
    if (from === this.leader) this.leaderStopped = true
  }

  /** CancelEnd was applied: an end under an attempt before this one can never commit. */
  attemptIs(attempt: number): void {
    this.attempt = attempt
    this.given = undefined
  }

  fence(why: EndReason, nowMs: number): void {
    this.fencedWhy = why
    this.fencing = new Fencing(this.replicas, nowMs)
  }

  holderFailed(node: NodeId): void {
    this.holderFailures.set(node, (this.holderFailures.get(node) ?? 0) + 1)
  }

  // ---- what follows

  /** The leader's end, while it repeats it. */
  private freshlyGiven(nowMs: number): LeadersEnd | undefined {
    if (this.given === undefined || nowMs - this.given.heardMs >= GIVEN_FRESH_MS) return undefined
    return this.given.end
  }

  /** It failed as a holder so often that another one is better, if there is one. */
  setAside(node: NodeId): boolean {
    return (this.holderFailures.get(node) ?? 0) >= HOLDER_FAILURES
  }

  private sureEnd(candidates: Candidates): FencedEnd | undefined {
    return this.fencing?.end((node) => candidates.alive(node))
  }

  /** Undefined: there is an end without that, or may be soon. */
  forceable(candidates: Candidates): Forceable | undefined {
    const { fencing, highWatermark } = this
    const waited = this.stuck || this.forcedEnd !== undefined
    if (fencing === undefined || !waited || this.suffices(this.sureEnd(candidates))) {
      return undefined
    }
    const answers = fencing.held((node) => candidates.alive(node))
    const silent = this.replicas.filter((node) => answers.every((one) => one.node !== node))
    return { answers, silent, highWatermark }
  }

  /** Nothing that was readable is missing. */
  private suffices(found: FencedEnd | undefined): found is FencedEnd {
    return found !== undefined && found.end >= this.highWatermark
  }

  /** Undefined: not yet. */
  findEnd(
    candidates: Candidates,
    nowMs: number,
    timing: SegmentTiming,
  ): FoundEnd | 'unavailable' | undefined {
    const given = this.freshlyGiven(nowMs)
    if (given !== undefined && !this.setAside(this.leader)) {
      return { end: given.end, holders: [this.leader], why: given.why, given: true }
    }
    const { fencing } = this
    if (fencing === undefined) return undefined
    const alive = (node: NodeId): boolean => candidates.alive(node)
    // A holder that can hand on nothing to anyone is as good as lost, if another has enough.
    const useful = fencing.end((node) => alive(node) && !this.setAside(node))
    const found = this.suffices(useful) ? useful : this.sureEnd(candidates)
    const forced = this.suffices(found) ? undefined : this.forced(fencing, alive)
    if (forced !== undefined) return forced
    if (found === undefined) {
      this.stuck = nowMs - fencing.sinceMs >= timing.fenceWaitMs
      return this.stuck ? 'unavailable' : undefined
    }
    // A leader that has been silent for as long as a lease lasts has been waited for.
    const silent = nowMs - this.confirmedMs >= timing.leaseGraceMs
    const expected = (node: NodeId): boolean => alive(node) && !(silent && node === this.leader)
    if (!fencing.waited(expected, nowMs, timing)) return undefined
    return { ...found, why: this.fencedWhy, given: false }
  }

  private forced(fencing: Fencing, alive: (node: NodeId) => boolean): FoundEnd | undefined {
    const { forcedEnd: end } = this
    if (end === undefined) return undefined
    const holders = fencing.held(alive).filter((one) => one.end >= end)
    if (holders.length === 0) return undefined
    return { end, holders: holders.map(({ node }) => node), why: 'forced', given: false }
  }

  /** The leader accepts nothing more under any lease: a successor may open. */
  cleared(nowMs: number, { leaseGraceMs }: SegmentTiming): boolean {
    if (this.given !== undefined) return true
    return this.leaderStopped || nowMs - this.confirmedMs >= leaseGraceMs
  }

  /** Why the leader is taken to have failed. */
  leaderGone(candidates: Candidates, nowMs: number, timing: SegmentTiming): EndReason | undefined {
    const unfit = this.unfits.get(this.leader)
    if (unfit !== undefined) return unfit
    if (this.leaderStopped) return 'restarted'
    if (this.given !== undefined) {
      if (nowMs - this.given.heardMs >= timing.frozenTimeoutMs) return 'leader-failed'
      if (this.setAside(this.leader)) return 'leader-failed'
    }
    if (this.freshlyGiven(nowMs) !== undefined) return undefined
    const silentMs = nowMs - this.confirmedMs
    if (silentMs >= timing.leaseGraceMs) return 'leader-failed'
    const dead = !candidates.alive(this.leader)
    return dead && silentMs >= timing.replicaAckTimeoutMs ? 'leader-failed' : undefined
  }
}
