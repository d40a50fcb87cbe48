// How it should be in the end [I14]: every broker that is there is seen by all, every shard is kept by those whom the ring gives
// it, and led by the first of them, and who was drained or removed holds nothing. The ring itself (model/ring.ts) is taken from
// the brokers; that it is even is judged here.

import type { NodeId } from '../../model/ids.ts'
import type { NodeRole } from '../../model/metadata.ts'
import { shardPlan } from '../../model/ring.ts'
import type { Described } from './operator.ts'
import type { Kept } from './watch.ts'

export interface Goal {
  /** Those that are there, and their hosts. */
  readonly live: ReadonlyMap<NodeId, string>
  readonly roleOf: (node: NodeId) => NodeRole
  readonly copies: number
  readonly vnodes: number
}

/** Leaders, and shards held, may be so far from the mean: a share of it, or a few. */
const SHARE = 0.2
const FEW = 2

/** What is not yet as it should be, of who keeps the shards. */
export function missingOfShards(goal: Goal, shards: readonly Kept[]): string | undefined {
  const members = [...goal.live].filter(([node]) => goal.roleOf(node) === 'member')
  const ring = members
    .map(([node, host]) => ({ node, hostLabel: host, rackLabel: '' }))
    .sort((a, b) => (a.node < b.node ? -1 : 1))
  const plan = shardPlan(ring, shards.length, goal.copies, goal.vnodes)
  for (const [shard, { view, leader }] of shards.entries()) {
    const wanted = plan[shard] ?? []
    const { voters, learners } = view.members
    // Of two voters both would be needed, so a lone one takes the second with the third.
    const enough = wanted.length < goal.copies && voters.length === 1 ? learners : []
    const missing = wanted.find((node) => !voters.includes(node) && !enough.includes(node))
    if (missing !== undefined) return `shard ${shard} is not kept by ${goal.live.get(missing)}`
    const surplus = [...voters, ...learners].find(
      (node) => !wanted.includes(node) && !mayStay(goal, wanted, node),
    )
    if (surplus !== undefined) {
      return `shard ${shard} is still kept by ${goal.live.get(surplus) ?? `${surplus}, which is gone`}`
    }
    const [first] = wanted.filter((node) => voters.includes(node))
    if (leader !== first) return `shard ${shard} is led by ${goal.live.get(leader)}`
  }
  const nodes = members.map(([node]) => node)
  return nodes.length < goal.copies ? undefined : unevenness(nodes, shards)
}

/** With too few brokers nobody takes the place of one that is gone, unless it was removed. */
function mayStay(goal: Goal, wanted: readonly NodeId[], node: NodeId): boolean {
  return wanted.length < goal.copies && !goal.live.has(node) && goal.roleOf(node) === 'member'
}

function unevenness(members: readonly NodeId[], shards: readonly Kept[]): string | undefined {
  const led = members.map((node) => shards.filter(({ leader }) => leader === node).length)
  const held = members.map(
    (node) => shards.filter(({ view }) => view.members.voters.includes(node)).length,
  )
  // Nobody holds much more than others; of few shards somebody may hold few.
  for (const [what, counts, least] of [
    ['leads', led, 0],
    ['holds', held, Number.POSITIVE_INFINITY],
  ] as const) {
    const mean = counts.reduce((sum, count) => sum + count, 0) / counts.length
    const bound = Math.max(FEW, SHARE * mean)
    const far = counts.find((count) => count > mean + bound || count < mean - bound - least)
    if (far !== undefined) return `one broker ${what} ${far} shards, and the mean is ${mean}`
  }
  return undefined
}

/** What is wrong with what a broker says of the cluster. */
export function missingOfView(goal: Goal, told: Described | undefined): string | undefined {
  if (told === undefined) return 'it does not say'
  const seen = told.brokers.filter(({ state }) => state === 'alive').map(({ nodeId }) => nodeId)
  const absent = [...goal.live].find(([node]) => !seen.includes(node))
  if (absent !== undefined) return `it does not see ${absent[1]}`
  const ghost = seen.find((node) => !goal.live.has(node))
  if (ghost !== undefined) return `it sees ${ghost}, which is gone`
  if (told.shardsLed !== told.shards) return `it knows leaders of ${told.shardsLed} shards`
  for (const { nodeId, nodeNumber, role, shards, leads } of told.brokers) {
    const host = goal.live.get(nodeId)
    if (host === undefined) continue
    if (nodeNumber === 0) return `it does not know the number of ${host}`
    if (role !== goal.roleOf(nodeId)) return `it takes ${host} for ${role}`
    if (role !== 'member' && (shards > 0 || leads > 0)) return `it says that ${host} holds shards`
  }
  return undefined
}
