// On which brokers the ranges of a new topic begin (core/placement says how they are chosen), and which there are to choose from.

import { placeSegment } from '../../core/placement/segment-placement.ts'
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

/** The replicas of `ranges` new segments, each with its leader first. What one of them is given counts for the next. */
export function placeRanges(
  ranges: number,
  replicas: number,
  places: readonly Place[],
  loadOf: (node: NodeId) => NodeLoad,
  salt: string,
): readonly (readonly NodeId[])[] {
  const brokers = new Map(
    places.map(({ node, hostLabel: host, rackLabel: rack }) => [
      node,
      { node, host, rack, ...loadOf(node) },
    ]),
  )
  return Array.from({ length: ranges }, (_, range) => {
    const nodes = placeSegment([...brokers.values()], { count: replicas, salt: `${salt}/${range}` })
    for (const [at, node] of nodes.entries()) {
      const broker = brokers.get(node)
      if (broker === undefined) continue
      const led = broker.led + (at === 0 ? 1 : 0)
      brokers.set(node, { ...broker, held: broker.held + 1, led })
    }
    return nodes
  })
}
