// Who may get a segment, as the care of a range asks for it: core/placement says how they are chosen.

import { placeSegment } from '../../core/placement/segment-placement.ts'
import type { Candidates } from '../../core/segment/care-types.ts'
import type { SegmentLoad } from '../topics/load.ts'
import type { Brokers } from './brokers.ts'

export function candidates(brokers: Brokers, loads: SegmentLoad): Candidates {
  return {
    alive: (node) => brokers.alive(node),
    leaving: (node) => brokers.leaving(node),
    boot: (node) => brokers.boot(node),
    pick: (n, keep, first, without) => {
      const free = brokers
        .healthy()
        .filter(({ node }) => without?.has(node) !== true)
        .map(({ node, hostLabel: host, rackLabel: rack }) => ({
          node,
          host,
          rack,
          ...loads.of(node),
        }))
      return placeSegment(free, { count: n, keep, first, salt: '' })
    },
  }
}
