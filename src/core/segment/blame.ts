// Whether the leader that names others as failed is itself what fails: it is the common element (PROTOCOLS §5). Then another replica
// leads the successor.
//
//   it names half of the set, or more, and not all of those are dead
//   two successors in a row failed under it, each soon after it had opened

import type { NodeId } from '../../model/ids.ts'
import type { Candidates } from './care-types.ts'
import type { OpenSegment } from './open-segment.ts'

/** A successor that fails so soon was no better than what it came after. */
const SHORT_LIVED_MS = 10_000
const FAILED_SUCCESSORS = 2

export class Blame {
  private leader: NodeId | undefined
  private count = 0

  /** A segment has ended. */
  ended({ leader, given, openedMs }: OpenSegment, nowMs: number): void {
    if (given === undefined || given.end.failed.length === 0) {
      this.leader = undefined
      return
    }
    const soon = openedMs !== undefined && nowMs - openedMs < SHORT_LIVED_MS
    this.count = soon && this.leader === leader ? this.count + 1 : 1
    this.leader = leader
  }

  distrusts({ leader, given, replicas }: OpenSegment, candidates: Candidates): boolean {
    const failed = given?.end.failed ?? []
    if (failed.length === 0) return false
    const living = failed.some(({ node }) => candidates.alive(node))
    if (living && failed.length * 2 >= replicas.length) return true
    return this.leader === leader && this.count >= FAILED_SUCCESSORS
  }
}
