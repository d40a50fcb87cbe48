// Who may get a segment of one range, as its care asks for it.

import { placeSegment } from '../../core/placement/segment-placement.ts'
import type { Candidates } from '../../core/segment/care-types.ts'
import type { NodeId } from '../../model/ids.ts'
import type { SegmentLoad } from '../topics/load.ts'
import type { Brokers } from './brokers.ts'

/** `salt`: by which equal brokers share ranges out among themselves. */
export function candidatesFor(
  brokers: Brokers,
  load: SegmentLoad,
  salt: string,
  state: 'open' | 'sealed',
): Candidates {
  return {
    alive: (node) => brokers.alive(node),
    leaving: (node) => brokers.leaving(node) || (state === 'open' && brokers.isStopping(node)),
    stopping: (node) => brokers.isStopping(node),
    diskFull: (node) => brokers.isFull(node),
    members: () => brokers.members(),
    boot: (node) => brokers.boot(node),
    deadSince: (node) => brokers.deadSince(node),
    pick: (count, keep, first, without) => {
      // What is sealed grows no more: who has it needs no room for it.
      const hasRoom = (node: NodeId): boolean =>
        !brokers.isFull(node) || (state === 'sealed' && keep.includes(node))
      const placed = brokers.healthy().flatMap(({ node, hostLabel: host, rackLabel: rack }) => {
        if (without?.has(node) === true || !hasRoom(node)) return []
        return [{ node, host, rack, ...load.of(node) }]
      })
      return placeSegment(placed, { count, keep, first, salt })
    },
  }
}
