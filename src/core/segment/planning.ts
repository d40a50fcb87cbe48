// From what is known of an open segment to its end and its successor: or to what there is still to wait for, which is said.

import type { NodeId } from '../../model/ids.ts'
import type { Avoided } from './avoided.ts'
import type { Blame } from './blame.ts'
import type { Candidates, CareView } from './care-types.ts'
import type { OpenSegment } from './open-segment.ts'
import { isDamaged, type Report, tellUnavailable } from './report.ts'
import { type Plan, planSuccessor } from './successor.ts'
import type { SegmentTiming } from './types.ts'

interface Known {
  readonly view: CareView
  readonly open: OpenSegment
  readonly candidates: Candidates
  readonly avoided: Avoided
  readonly blame: Blame
  readonly report: Report
  readonly timing: SegmentTiming
}

/** Undefined: not yet. */
export function planEnd(known: Known, nowMs: number): Plan | undefined {
  const { view, open, candidates, blame, report } = known
  const found = open.findEnd(candidates, nowMs, known.timing)
  if (found === undefined) return undefined
  if (found === 'unavailable') {
    tellUnavailable(report, open)
    return undefined
  }
  if (isDamaged(report, open, found)) {
    open.stuck = true
    return undefined
  }
  return planSuccessor({
    view,
    candidates,
    ...found,
    tailFrom: Math.min(open.highWatermark, found.end),
    without: unreliable(known, found.given, nowMs),
    distrusted: found.given && blame.distrusts(open, candidates),
    failedHolder: (node) => open.setAside(node),
  })
}

/** Who failed lately, and who has not answered the fence: it would not store what is staged either. */
function unreliable({ avoided, open }: Known, given: boolean, nowMs: number): ReadonlySet<NodeId> {
  const without = avoided.at(nowMs)
  const { fencing, replicas } = open
  if (given || fencing === undefined) return without
  for (const node of replicas) {
    if (fencing.has(node) || without.has(node)) continue
    avoided.failed(node, nowMs)
    without.add(node)
  }
  return without
}
