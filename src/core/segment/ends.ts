// When the coordinator asks a leader, which can go on, for an end: since another replica cannot, or since others would be better.
//
//   urgent    a follower is lost or cannot go on: were something produced, it would come to the same
//   planned   more brokers are there than hold the segment, one of them is drained
//
// Nothing is asked for that could not be followed by a successor: the leader would freeze for nothing.

import type { NodeId } from '../../model/ids.ts'
import { pauseMs } from './avoided.ts'
import type { Candidates, CareView } from './care-types.ts'
import type { EndReason, SegmentTiming } from './types.ts'

/** Brokers that come and go do not roll a segment each time. */
const MORE_BROKERS_FOR_MS = 2000
const ASK_AGAIN_LEAST_MS = 1000

export interface AskReason {
  readonly why: EndReason
  readonly urgent: boolean
}

interface Facts {
  readonly view: CareView
  readonly candidates: Candidates
  readonly unfits: ReadonlyMap<NodeId, EndReason>
  /** Failed lately. */
  readonly without: ReadonlySet<NodeId>
}

export interface FoundReason {
  readonly reason: AskReason | undefined
  /** A successor could open. */
  readonly possible: boolean
  /** Nothing is wrong with the segment, and nothing will be by itself. */
  readonly calm: boolean
  readonly trouble: string | undefined
}

export function reasonToAsk(facts: Facts): FoundReason {
  const { view, candidates, without } = facts
  const { replicas } = view.segment
  const { replicationFactor, minInsyncReplicas } = view.policy
  const [leader] = replicas
  const keep = replicas.filter((node) => candidates.alive(node) && !candidates.leaving(node))
  const next = candidates.pick(replicationFactor, keep, leader, without)
  const possible = next.length >= Math.max(1, minInsyncReplicas)
  const reason = whatIsWrong(facts) ?? whatWouldBeBetter(facts, next.length, possible)
  const few = replicas.length < replicationFactor
  return {
    reason,
    possible,
    calm:
      reason === undefined &&
      replicas.every((node) => candidates.alive(node)) &&
      without.size === 0,
    trouble: few
      ? `under-replicated: on ${replicas.length} of ${replicationFactor} brokers`
      : reason !== undefined && !possible
        ? `too few brokers to go on: ${reason.why}`
        : undefined,
  }
}

function whatIsWrong({ view, candidates, unfits }: Facts): AskReason | undefined {
  for (const node of view.segment.replicas.slice(1)) {
    const unfit = unfits.get(node)
    if (unfit !== undefined) return { why: unfit, urgent: true }
    if (!candidates.alive(node)) return { why: 'follower-failed', urgent: true }
  }
  return undefined
}

function whatWouldBeBetter(
  { view, candidates }: Facts,
  picked: number,
  possible: boolean,
): AskReason | undefined {
  const { replicas } = view.segment
  if (replicas.some((node) => candidates.leaving(node))) return { why: 'drained', urgent: false }
  // Where nobody has room it stays, and goes on by itself when there is some.
  if (possible && replicas.some((node) => candidates.diskFull?.(node) === true)) {
    return { why: 'disk-full', urgent: true }
  }
  if (picked > replicas.length) return { why: 'under-replicated', urgent: false }
  return undefined
}

/** Asks until an end is given; when none comes, it says so, and pauses for longer each time. */
export class Asking {
  private sinceMs: number | undefined
  private betterSinceMs: number | undefined
  private sentMs: number | undefined
  private failures = 0
  private afterMs = 0

  /** An end was given, or is not asked for any more. */
  done(): void {
    this.sinceMs = undefined
    this.sentMs = undefined
  }

  /** The reason to ask with now. */
  next(
    found: FoundReason,
    nowMs: number,
    timing: SegmentTiming,
  ): EndReason | 'unanswered' | undefined {
    const why = this.why(found, nowMs)
    if (why === undefined || !found.possible || nowMs < this.afterMs) {
      this.sinceMs = undefined
      return undefined
    }
    this.sinceMs ??= nowMs
    if (nowMs - this.sinceMs >= timing.frozenTimeoutMs) {
      this.done()
      this.afterMs = nowMs + pauseMs(++this.failures, ASK_AGAIN_LEAST_MS)
      return 'unanswered'
    }
    if (this.sentMs !== undefined && nowMs - this.sentMs < timing.retryMs) return undefined
    this.sentMs = nowMs
    return why
  }

  private why({ reason }: FoundReason, nowMs: number): EndReason | undefined {
    if (reason?.why !== 'under-replicated') {
      this.betterSinceMs = undefined
      return reason?.why
    }
    this.betterSinceMs ??= nowMs
    return nowMs - this.betterSinceMs >= MORE_BROKERS_FOR_MS ? reason.why : undefined
  }
}
