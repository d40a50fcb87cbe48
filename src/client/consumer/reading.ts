// A partition that is read, and which replica it is read from next: one that a broker has named, else the nearest of those
// that hold the open segment, without those that failed lately.

import type { Backoff } from '../../base/backoff.ts'
import type { EastGuardError } from '../../base/errors.ts'
import { redirectIn, redirects, SEGMENT_UNKNOWN } from '../../model/redirect.ts'
import type { Nearness } from '../cluster.ts'
import { addressName, type Replica, routeTo, type TopicRoute } from '../route.ts'
import { Avoided, byNearness } from './choice.ts'
import type { Session } from './session.ts'

/** What the reader's side knows of a partition that is read. */
export interface ReadPartition {
  readonly partition: number
  readonly position: number
  fetchOffset: number
  readonly end: number
  readonly paused: boolean
  readonly epoch: number
}

export interface Reading<P extends ReadPartition> {
  readonly state: P
  readonly avoided: Avoided
  session: Session | undefined
  /** Pushed and not yet taken by the reader. */
  queuedBytes: number
  openedAtMs: number
  /** Where a broker sent us; asked before the replicas of the open segment. */
  sentTo: readonly Replica[]
  /** Moves from broker to broker since something was read. */
  hops: number
  /** It is not read from where it would be read best, as far as is known. */
  away: boolean
  trouble: Trouble | undefined
}

interface Trouble {
  readonly sinceMs: number
  readonly backoff: Backoff
  notBeforeMs: number
  resting: boolean
}

export function readingOf<P extends ReadPartition>(state: P): Reading<P> {
  return {
    state,
    avoided: new Avoided(),
    session: undefined,
    queuedBytes: 0,
    openedAtMs: Infinity,
    sentTo: [],
    hops: 0,
    away: false,
    trouble: undefined,
  }
}

type AnyReading = Reading<ReadPartition>

/** Undefined: nobody is known; any broker says more. */
export function choose(
  route: TopicRoute,
  reading: AnyReading,
  near: Nearness,
  nowMs: number,
): Replica | undefined {
  const { partition } = reading.state
  const asked = byNearness(reading.sentTo, near, partition).find(
    (replica) => !reading.avoided.has(replica, nowMs),
  )
  if (asked !== undefined) {
    reading.away = true
    return asked
  }
  reading.sentTo = []
  const replicas = byNearness(routeTo(route, partition).replicas, near, partition)
  const chosen = replicas.find((replica) => !reading.avoided.has(replica, nowMs)) ?? replicas[0]
  reading.away = chosen !== replicas[0]
  return chosen
}

/** The name of the broker that the partition is read from when nothing is amiss, unless it failed lately. */
export function home(
  route: TopicRoute,
  { state: { partition }, avoided }: AnyReading,
  near: Nearness,
  nowMs: number,
): string | undefined {
  const [best] = byNearness(routeTo(route, partition).replicas, near, partition)
  return best === undefined || avoided.has(best, nowMs) ? undefined : addressName(best.address)
}

/** Whether somebody is left to ask. */
export function hasOther(route: TopicRoute, reading: AnyReading, nowMs: number): boolean {
  const replicas = [...reading.sentTo, ...routeTo(route, reading.state.partition).replicas]
  return replicas.some((replica) => !reading.avoided.has(replica, nowMs))
}

/** Those that a broker names instead of itself, unless it is behind what we know. */
export function sentBy(
  route: TopicRoute,
  reading: AnyReading,
  from: string,
  error: EastGuardError,
): readonly Replica[] {
  if (!redirects(error.code)) return []
  const { segment, brokers } = redirectIn(error)
  const known = routeTo(route, reading.state.partition).segment
  const behind = segment !== SEGMENT_UNKNOWN && segment < known
  if (error.code === 'NOT_LEADER' && behind) return []
  return brokers
    .filter(({ address }) => addressName(address) !== from)
    .map(({ nodeId, address }) => {
      const replica = route.brokers.get(addressName(address))
      return replica ?? { nodeId, address, hostLabel: '', rackLabel: '', gone: false }
    })
}
