// One attempt at handing range state and tail to the brokers of a successor, under one token (PROTOCOLS §5). It lasts as long
// as every broker in it lives on in the start that it had when the staging began: what an earlier start stored does count, but
// a member that restarts fences what it staged, and the successor would have to end at once.

import type { NodeId } from '../../model/ids.ts'
import type { Candidates } from './care-types.ts'
import type { EndReason } from './types.ts'

/** What is slower than that is taken to stand still. */
const UNSEEN_BYTES_PER_MS_LEAST = 4 * 1024

/** How much longer than otherwise to wait for so many bytes: in buffers of a link, and while a disk takes them, nobody sees them move. */
export function unseenMs(bytes: number): number {
  return Math.ceil(bytes / UNSEEN_BYTES_PER_MS_LEAST)
}

export interface StagePlan {
  readonly holder: NodeId
  readonly end: number
  readonly why: EndReason
  readonly tailFrom: number
  /** The first leads. */
  readonly replicas: readonly NodeId[]
  /** As of which the end is meant. */
  readonly attempt: number
}

export interface Staged {
  readonly nextOffsets: readonly number[]
  readonly stateDigest: string
}

export class Staging {
  readonly plan: StagePlan
  readonly token: string
  readonly sinceMs: number
  staged: Staged | undefined
  /** Since when the holder has said of nothing more that it moved. */
  movedMs: number
  private moved = 0
  private sentMs: number | undefined
  private readonly boots = new Map<NodeId, number>()

  constructor(plan: StagePlan, token: string, nowMs: number) {
    this.plan = plan
    this.token = token
    this.sinceMs = nowMs
    this.movedMs = nowMs
  }

  /** The holder is at it, and has moved so many bytes by now. */
  movesOn(moved: number, nowMs: number): void {
    if (moved <= this.moved) return
    this.moved = moved
    this.movedMs = nowMs
  }

  /** Nothing of it has moved for longer than anything that is well may need. */
  stands(nowMs: number, patienceMs: number): boolean {
    return nowMs - this.movedMs >= patienceMs + unseenMs(this.moved)
  }

  /** What is known of a member's start: the first that is heard of holds. */
  bootOf(node: NodeId, boot: number): void {
    if (!this.boots.has(node)) this.boots.set(node, boot)
  }

  members(): readonly NodeId[] {
    const { holder, replicas } = this.plan
    return replicas.includes(holder) ? replicas : [holder, ...replicas]
  }

  /** Why it leads to nothing any more. */
  broken(candidates: Candidates, bootOf: (node: NodeId) => number | undefined): string | undefined {
    for (const node of this.members()) {
      if (!candidates.alive(node)) return `${node} is lost`
      const then = this.boots.get(node)
      const boot = bootOf(node)
      if (then !== undefined && boot !== undefined && boot > then) return `${node} has restarted`
    }
    return undefined
  }

  /** It is time to order it (again). */
  due(nowMs: number, retryMs: number): boolean {
    if (this.staged !== undefined) return false
    if (this.sentMs !== undefined && nowMs - this.sentMs < retryMs) return false
    this.sentMs = nowMs
    return true
  }
}
