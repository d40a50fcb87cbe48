// Who should hold which shard: a consistent-hash ring (Karger et al., 1997) of tokens, some hundred of each broker, with a
// bound on what one broker is given (Mirrokni, Thorup and Zadimoghaddam, 2018), so that the parts are even as well.
//
//            shard 7                   from its place clockwise: the first brokers that are not full yet,
//       t─────┴──t──t──────t──t        of other racks and hosts than those before, as far as there are any
//       a        b  a      c  b
//
// A pure function of the brokers: whoever sees the same brokers comes to the same plan, and when one comes or goes most of it
// stays as it was. The first holder of a shard should lead it.

import { fromHex, putU32 } from '../base/bytes.ts'
import { xxh32 } from '../base/checksum.ts'
import type { NodeId } from './ids.ts'

export interface RingNode {
  readonly node: NodeId
  /** Brokers with the same label fail together. */
  readonly hostLabel: string
  readonly rackLabel: string
}

/** Nobody is given more than this many times the mean, rounded up. */
const BOUND = 1.02

interface Token {
  readonly place: number
  readonly owner: Owner
}

interface Owner extends RingNode {
  held: number
  led: number
}

/** By shard, who should hold it: `copies` of them as far as there are brokers, the first to lead. */
export function shardPlan(
  nodes: readonly RingNode[],
  shards: number,
  copies: number,
  vnodes: number,
): readonly (readonly NodeId[])[] {
  const owners = nodes.map((node) => ({ ...node, held: 0, led: 0 }))
  const tokens = owners.flatMap((owner) => tokensOf(owner, vnodes))
  tokens.sort((a, b) => a.place - b.place || (a.owner.node < b.owner.node ? -1 : 1))
  const each = Math.min(copies, owners.length)
  const heldMax = Math.ceil((BOUND * shards * each) / Math.max(1, owners.length))
  return Array.from({ length: shards }, (_, shard) => {
    const order = clockwise(tokens, placeOf(shard), owners.length)
    const holders = choose(neededFirst(order, shards - shard, each, heldMax), each, heldMax)
    for (const holder of holders) holder.held++
    return leaderFirst(holders)
  })
}

function tokensOf(owner: Owner, vnodes: number): readonly Token[] {
  const bytes = new Uint8Array(20)
  bytes.set(fromHex(owner.node))
  return Array.from({ length: vnodes }, (_, i) => {
    putU32(bytes, 16, i)
    return { place: xxh32(bytes), owner }
  })
}

function placeOf(shard: number): number {
  const bytes = new Uint8Array(4)
  putU32(bytes, 0, shard)
  return xxh32(bytes)
}

/** All owners in the order in which their first tokens follow the place. */
function clockwise(tokens: readonly Token[], place: number, count: number): readonly Owner[] {
  const order = new Set<Owner>()
  let low = 0
  let high = tokens.length
  while (low < high) {
    const middle = (low + high) >>> 1
    if ((tokens[middle] as Token).place < place) low = middle + 1
    else high = middle
  }
  for (let i = 0; i < tokens.length && order.size < count; i++) {
    order.add((tokens[(low + i) % tokens.length] as Token).owner)
  }
  return [...order]
}

/**
 * Towards the end there may be so little room that whoever has much of it must be chosen now, since a shard takes nobody twice: each
 * that could hold all shards that are left, and is not chosen, costs one place of those to spare.
 */
function neededFirst(
  order: readonly Owner[],
  shardsLeft: number,
  each: number,
  heldMax: number,
): readonly Owner[] {
  const places = order.reduce((sum, { held }) => sum + Math.min(heldMax - held, shardsLeft), 0)
  const spare = places - shardsLeft * each
  const roomy = order.filter(({ held }) => heldMax - held >= shardsLeft)
  const needed = roomy.slice(0, Math.max(0, roomy.length - spare))
  return needed.length === 0 ? order : [...new Set([...needed, ...order])]
}

/** Racks that differ come before hosts that differ, and these before having room. Where nobody has, whoever holds least is given more. */
function choose(order: readonly Owner[], count: number, heldMax: number): readonly Owner[] {
  const chosen: Owner[] = []
  const fits: readonly ((owner: Owner) => boolean)[] = [
    (owner) =>
      owner.held < heldMax &&
      apart(chosen, owner, 'rackLabel') &&
      apart(chosen, owner, 'hostLabel'),
    (owner) => owner.held < heldMax && apart(chosen, owner, 'hostLabel'),
    (owner) => apart(chosen, owner, 'hostLabel'),
    (owner) => owner.held < heldMax,
    () => true,
  ]
  while (chosen.length < count) {
    let found: Owner | undefined
    for (const fit of fits) {
      const fitting = order.filter((owner) => !chosen.includes(owner) && fit(owner))
      const least = Math.min(...fitting.map(({ held }) => held))
      found = fitting.find(({ held }) => held < heldMax || held === least)
      if (found !== undefined) break
    }
    if (found === undefined) break
    chosen.push(found)
  }
  return chosen
}

function apart(chosen: readonly Owner[], owner: Owner, label: 'hostLabel' | 'rackLabel'): boolean {
  // Brokers that do not say where they stand may all stand together.
  return !chosen.some((other) => other[label] === owner[label])
}

/** Who leads least so far leads: handing over costs little, so evenness counts for more than staying. */
function leaderFirst(holders: readonly Owner[]): readonly NodeId[] {
  let leader = holders[0]
  if (leader === undefined) return []
  for (const holder of holders) if (holder.led < leader.led) leader = holder
  leader.led++
  return [leader.node, ...holders.filter((holder) => holder !== leader).map(({ node }) => node)]
}
