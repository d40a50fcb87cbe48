// Where the batches of a partition go: to the leader that the topic's route names, or to the one that a broker has sent us
// to, whichever is of the later segment. Segment numbers only grow, so that two brokers of which one lags cannot send us
// back and forth, and a route that was looked up from one that lags does not undo what we were told.
//
//   route: 7 at A ──batch──> A: "NOT_LEADER, 8 is at B" ──batch, at once──> B
//                                                       ──look up──> route: 7 at A (lags: 8 > 7, we stay with B), or 9 at C

import type { EastGuardError } from '../../base/errors.ts'
import { redirectIn, SEGMENT_UNKNOWN } from '../../model/redirect.ts'
import type { Address } from '../../ports/streams.ts'
import { addressName, routeTo, type TopicRoute } from '../route.ts'
import type { Lane } from './sender.ts'

export interface Target {
  /** Undefined: not known; any broker says more. */
  readonly address: Address | undefined
  readonly segment: number
}

/** Where a NOT_LEADER answer sent us. */
export interface Redirected {
  readonly address: Address
  readonly segment: number
  /** The route that was wrong. */
  readonly insteadOf: TopicRoute
}

/** So many redirects are followed at once; then, as when brokers send us in a circle, with pauses. */
const HOPS_AT_ONCE = 3

export function targetOf({ topic, queue, redirect }: Lane): Target {
  const { segment, leader } = routeTo(topic.route, queue.partition)
  const route = { address: leader, segment }
  if (redirect === undefined || redirect.segment > segment) return redirect ?? route
  const equal = redirect.segment === segment || redirect.segment === SEGMENT_UNKNOWN
  return equal && redirect.insteadOf === topic.route ? redirect : route
}

/** Whether a later segment than the one that was meant is led by another broker. */
export function hasMoved(now: Target, before: Target): boolean {
  if (now.segment <= before.segment || now.address === undefined) return false
  return before.address === undefined || addressName(now.address) !== addressName(before.address)
}

/** After NOT_LEADER from `from`: true when the lane may go on at once, false when it should rest a little. */
export function follow(lane: Lane, error: EastGuardError, from: Address): boolean {
  const { segment, brokers } = redirectIn(error)
  const address = brokers[0]?.address
  const now = targetOf(lane)
  // It knows nobody, or is behind what we know: the new leader may not have heard yet that it leads.
  if (address === undefined || isOlder(segment, now.segment)) return false
  const to = addressName(address)
  if (to === addressName(from)) return false
  // The batches behind the first that was refused are told the same.
  if (now.address !== undefined && to === addressName(now.address)) return true
  lane.redirect = { address, segment, insteadOf: lane.topic.route }
  lane.hops++
  return lane.hops <= HOPS_AT_ONCE
}

function isOlder(segment: number, than: number): boolean {
  return segment !== SEGMENT_UNKNOWN && segment < than
}
