// Who may get a segment, as the care of a range asks for it.

import type { Candidates } from '../../core/segment/care-types.ts'
import type { NodeId } from '../../model/ids.ts'
import type { SegmentLoad } from '../topics/load.ts'
import type { Brokers } from './brokers.ts'

/** The kept first, then those with the least, on hosts that hold none of it yet. */
export function candidates(brokers: Brokers, loads: SegmentLoad): Candidates {
  return {
    alive: (node) => brokers.alive(node),
    leaving: (node) => brokers.leaving(node),
    boot: (node) => brokers.boot(node),
    pick: (n, keep, first, without) => {
      const left = brokers
        .healthy()
        .filter(({ node }) => without?.has(node) !== true)
        .toSorted((a, b) => {
          const byLoad =
            loads.of(a.node).held - loads.of(b.node).held ||
            loads.of(a.node).led - loads.of(b.node).led
          return byLoad === 0 ? (a.node < b.node ? -1 : 1) : byLoad
        })
      const picked: NodeId[] = []
      const hosts = new Set<string>()
      const take = (suits: (broker: (typeof left)[number]) => boolean): void => {
        for (const broker of left) {
          if (picked.length >= n) return
          if (picked.includes(broker.node) || !suits(broker)) continue
          picked.push(broker.node)
          hosts.add(broker.hostLabel)
        }
      }
      take(({ node }) => node === first)
      take(({ node }) => keep.includes(node))
      take(({ hostLabel }) => !hosts.has(hostLabel))
      take(() => true)
      return picked
    },
  }
}
