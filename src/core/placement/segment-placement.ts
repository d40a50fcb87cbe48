// Which brokers get a new segment: as far apart as they can be, and the least loaded of those.
//
//   kept     who holds the segment before it, and is well: nothing has to be copied later
//   apart    another host than all that are chosen, then another rack
//   loaded   segments held, then segments led
//   salt     by chance, but always the same for a range: equal brokers share ranges out among themselves
//
// The leader: who is asked for; else of those kept, else of all chosen, the one that leads least.
//
// A pure function of what is given. The caller leaves out whoever is not healthy, is drained, or failed lately.

import { xxh32 } from '../../base/checksum.ts'
import type { NodeId } from '../../model/ids.ts'

export interface PlacedBroker {
  readonly node: NodeId
  /** Brokers with the same one are taken to fail together. Empty: it is alone. */
  readonly host: string
  readonly rack: string
  /** Segments that it has a replica of, and open ones that it leads. */
  readonly held: number
  readonly led: number
}

interface Wish {
  readonly count: number
  readonly keep?: readonly NodeId[]
  readonly first?: NodeId | undefined
  /** What ties are broken by: the topic and range, say. */
  readonly salt: string
}

interface Weighed extends PlacedBroker {
  readonly lot: number
}

const TEXT = new TextEncoder()

/** At most `count`, the leader first; fewer when there are not so many. */
export function placeSegment(brokers: readonly PlacedBroker[], wish: Wish): readonly NodeId[] {
  const { count, keep = [], first, salt } = wish
  const all = brokers.map((one): Weighed => ({ ...one, lot: lotOf(salt, one.node) }))
  const byNode = new Map(all.map((one) => [one.node, one]))
  const kept = [...new Set(first === undefined ? keep : [first, ...keep])].filter((node) =>
    byNode.has(node),
  )
  const chosen = kept.slice(0, count).map((node) => byNode.get(node) as Weighed)
  const free = new Set(all.filter((one) => !chosen.includes(one)))
  while (chosen.length < count && free.size > 0) {
    const best = nextBest(free, chosen)
    free.delete(best)
    chosen.push(best)
  }
  const leader = leaderOf(chosen, kept, first)
  return [...new Set(leader === undefined ? [] : [leader, ...chosen.map(({ node }) => node)])]
}

function nextBest(free: ReadonlySet<Weighed>, chosen: readonly Weighed[]): Weighed {
  const hosts = new Set(chosen.map(({ host }) => host))
  const racks = new Set(chosen.map(({ rack }) => rack))
  let best: Weighed | undefined
  for (const one of free) {
    if (best === undefined || compare(one, best, hosts, racks) < 0) best = one
  }
  return best as Weighed
}

function compare(
  a: Weighed,
  b: Weighed,
  hosts: ReadonlySet<string>,
  racks: ReadonlySet<string>,
): number {
  return (
    Number(shared(a.host, hosts)) - Number(shared(b.host, hosts)) ||
    Number(shared(a.rack, racks)) - Number(shared(b.rack, racks)) ||
    a.held - b.held ||
    a.led - b.led ||
    a.lot - b.lot ||
    (a.node < b.node ? -1 : 1)
  )
}

function shared(label: string, taken: ReadonlySet<string>): boolean {
  return label !== '' && taken.has(label)
}

function leaderOf(
  chosen: readonly Weighed[],
  kept: readonly NodeId[],
  first: NodeId | undefined,
): NodeId | undefined {
  const wished = chosen.find(({ node }) => node === first)
  if (wished !== undefined) return wished.node
  const old = chosen.filter(({ node }) => kept.includes(node))
  const [best] = (old.length > 0 ? old : chosen).toSorted((a, b) => a.led - b.led || a.lot - b.lot)
  return best?.node
}

function lotOf(salt: string, node: NodeId): number {
  return xxh32(TEXT.encode(`${salt}/${node}`))
}
