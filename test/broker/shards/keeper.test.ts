import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Keeper, type KeeperOptions } from '../../../src/broker/shards/keeper.ts'
import type { ShardView } from '../../../src/broker/shards/types.ts'
import type { NodeId } from '../../../src/model/ids.ts'
import { shardPlan } from '../../../src/model/ring.ts'
import { node } from '../../core/metadata/support.ts'
import { keptLog, type ManualClock, manualClock } from '../../storage/support/ports.ts'

const VNODES = 8

interface Told
  extends Pick<KeeperOptions, 'nodeId' | 'nodes'>,
    Pick<KeeperOptions['shards'], 'change' | 'handOver'> {
  readonly there: readonly NodeId[]
  readonly voters: readonly NodeId[]
}

/** The keeper of one shard that it leads, in a cluster that is still. */
function keeperOf(
  clock: ManualClock,
  { nodeId, nodes, there, voters, change, handOver }: Told,
): Keeper {
  const view: ShardView = {
    members: { voters, learners: [] },
    settled: true,
    leader: nodeId,
    term: 1,
    role: 'leader',
    commit: 1,
    appliedIndex: 1,
  }
  const brokers = there.map((node) => ({ node, hostLabel: node, rackLabel: '' }))
  return new Keeper({
    clock,
    log: keptLog(),
    shards: { count: 1, view: () => view, change, handOver, fresh: async () => {} },
    nodeId,
    copies: 3,
    vnodes: VNODES,
    stableMs: 0,
    replaceMs: 10_000,
    sight: () => ({ stableSince: 0, brokers }),
    nodes,
  })
}

async function run(clock: ManualClock, ms: number): Promise<void> {
  clock.advance(500)
  await Promise.resolve()
  for (let at = 0; at < ms; at += 500) clock.advance(500)
}

test('a shard that comes back to a keeper again and again is handed over more and more seldom', async () => {
  const clock = manualClock()
  const there = [1, 2, 3].map(node)
  const ring = there.map((id) => ({ node: id, hostLabel: id, rackLabel: '' }))
  const [wanted = []] = shardPlan(ring, 1, 3, VNODES)
  const [best, self] = wanted
  assert.ok(best !== undefined && self !== undefined)
  const handedAtMs: number[] = []
  const keeper = keeperOf(clock, {
    nodeId: self,
    there,
    voters: wanted,
    change: () => 'no-such-member',
    handOver: (_, to) => {
      assert.equal(to, best)
      handedAtMs.push(clock.monotonic())
      return undefined
    },
    nodes: () => new Map(wanted.map((id, i) => [id, { node: id, number: i, role: 'member' }])),
  })
  await run(clock, 60_000)
  keeper.stop()
  const pauses = handedAtMs.slice(1).map((at, i) => at - (handedAtMs[i] ?? 0))
  assert.deepEqual(pauses.slice(0, 5), [2000, 4000, 8000, 10_000, 10_000])
})

test('a keeper that has just started waits for those who belong here as long as for those who disappear', async () => {
  const clock = manualClock()
  const all = [1, 2, 3, 4].map(node)
  const [self = node(1)] = all
  const changedAtMs: number[] = []
  const keeper = keeperOf(clock, {
    nodeId: self,
    there: all.slice(0, 3),
    // The fourth should stay: it only has not come yet.
    voters: [self, node(2), node(4)],
    change: () => {
      changedAtMs.push(clock.monotonic())
      return undefined
    },
    handOver: () => 'not-caught-up',
    nodes: () => new Map(all.map((id, i) => [id, { number: i, role: 'member' }])),
  })
  await run(clock, 15_000)
  keeper.stop()
  assert.equal(changedAtMs[0], 10_500)
})
