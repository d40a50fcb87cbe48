// On which brokers the ranges of a new topic begin: those that live, are not drained and hold least, on different racks and
// hosts as far as there are any. Of each range's brokers the one leads that leads least.

import type { NodeId } from '../../model/ids.ts'
import type { NodeRole } from '../../model/metadata.ts'
import type { BrokerOptions } from '../options.ts'
import type { NodeLoad } from './load.ts'

export interface Place {
  readonly node: NodeId
  readonly hostLabel: string
  readonly rackLabel: string
}

/** Brokers that may be given something new. */
export function usablePlaces(
  options: Pick<BrokerOptions, 'nodeId' | 'hostLabel' | 'rackLabel' | 'others'>,
  nodes: ReadonlyMap<NodeId, { readonly role: NodeRole }>,
): readonly Place[] {
  const { nodeId: node, hostLabel, rackLabel } = options
  const others = options.others().filter(({ state }) => state === 'alive')
  return [
    { node, hostLabel, rackLabel },
    ...others.map((other) => ({
      node: other.nodeId,
      hostLabel: other.hostLabel,
      rackLabel: other.rackLabel,
    })),
  ].filter((place) => (nodes.get(place.node)?.role ?? 'member') === 'member')
}

interface Candidate extends Place {
  held: number
  led: number
}

/**
 * The replicas of `ranges` new segments, each with its leader first. `from`: where to begin among equals, so that brokers which
 * create topics at the same time do not all choose the same.
 */
export function placeSegments(
  ranges: number,
  replicas: number,
  places: readonly Place[],
  loadOf: (node: NodeId) => NodeLoad,
  from: number,
): readonly (readonly NodeId[])[] {
  const candidates: Candidate[] = places.map((place) => ({ ...place, ...loadOf(place.node) }))
  return Array.from({ length: ranges }, (_, range) => {
    const at = (from + range) % Math.max(1, candidates.length)
    const turned = [...candidates.slice(at), ...candidates.slice(0, at)]
    const order = turned.sort((a, b) => a.held - b.held || a.led - b.led)
    const chosen = chooseApart(order, replicas)
    for (const candidate of chosen) candidate.held++
    return leaderFirst(chosen)
  })
}

/** Racks that differ come before hosts that differ, and these before holding little. */
function chooseApart(order: readonly Candidate[], count: number): readonly Candidate[] {
  const chosen: Candidate[] = []
  const apart = (one: Candidate, label: 'hostLabel' | 'rackLabel'): boolean =>
    chosen.every((other) => other[label] !== one[label])
  const fits: readonly ((one: Candidate) => boolean)[] = [
    (one) => apart(one, 'rackLabel') && apart(one, 'hostLabel'),
    (one) => apart(one, 'hostLabel'),
    () => true,
  ]
  while (chosen.length < Math.min(count, order.length)) {
    for (const fit of fits) {
      const found = order.find((one) => !chosen.includes(one) && fit(one))
      if (found === undefined) continue
      chosen.push(found)
      break
    }
  }
  return chosen
}

function leaderFirst(chosen: readonly Candidate[]): readonly NodeId[] {
  let leader = chosen[0]
  if (leader === undefined) return []
  for (const one of chosen) if (one.led < leader.led) leader = one
  leader.led++
  return [leader.node, ...chosen.filter((one) => one !== leader).map(({ node }) => node)]
}
