import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Keeper } from '../../../src/broker/shards/keeper.ts'
import type { ShardView } from '../../../src/broker/shards/types.ts'
import type { RingNode } from '../../../src/model/ring.ts'
import { shardPlan } from '../../../src/model/ring.ts'
import { node } from '../../core/metadata/support.ts'
import { keptLog, manualClock } from '../../storage/support/ports.ts'

const VNODES = 8

test('a shard that comes back to a keeper again and again is handed over more and more seldom', async () => {
  const clock = manualClock()
  const brokers: readonly RingNode[] = [1, 2, 3].map((number) => ({
    node: node(number),
    hostLabel: `host-${number}`,
    rackLabel: '',
  }))
  const [wanted = []] = shardPlan(brokers, 1, 3, VNODES)
  const [best, self] = wanted
  assert.ok(best !== undefined && self !== undefined)
  const view: ShardView = {
    members: { voters: wanted, learners: [] },
    settled: true,
    leader: self,
    term: 1,
    role: 'leader',
    commit: 1,
    appliedIndex: 1,
  }
  const handedAtMs: number[] = []
  const keeper = new Keeper({
    clock,
    log: keptLog(),
    shards: {
      count: 1,
      view: () => view,
      change: () => 'no-such-member',
      handOver: (_, to) => {
        assert.equal(to, best)
        handedAtMs.push(clock.monotonic())
        return undefined
      },
      fresh: async () => {},
    },
    nodeId: self,
    copies: 3,
    vnodes: VNODES,
    stableMs: 0,
    replaceMs: 10_000,
    sight: () => ({ stableSince: 0, brokers }),
    nodes: () => new Map(wanted.map((id, i) => [id, { node: id, number: i, role: 'member' }])),
  })
  clock.advance(500)
  await Promise.resolve()
  for (let ms = 0; ms < 60_000; ms += 500) clock.advance(500)
  keeper.stop()
  const pauses = handedAtMs.slice(1).map((at, i) => at - (handedAtMs[i] ?? 0))
  assert.deepEqual(pauses.slice(0, 5), [2000, 4000, 8000, 10_000, 10_000])
})

test('a keeper that has just started waits for those who belong here as long as for those who disappear', async () => {
  const clock = manualClock()
  const all = [1, 2, 3, 4].map((number) => node(number))
  const [self = node(1)] = all
  const brokers: readonly RingNode[] = all.slice(0, 3).map((id) => ({
    node: id,
    hostLabel: id,
    rackLabel: '',
  }))
  const changedAtMs: number[] = []
  const keeper = new Keeper({
    clock,
    log: keptLog(),
    shards: {
      count: 1,
      // The fourth should stay: it only has not come yet.
      view: () => ({
        members: { voters: [self, node(2), node(4)], learners: [] },
        settled: true,
        leader: self,
        term: 1,
        role: 'leader',
        commit: 1,
        appliedIndex: 1,
      }),
      change: () => {
        changedAtMs.push(clock.monotonic())
        return undefined
      },
      handOver: () => 'not-caught-up',
      fresh: async () => {},
    },
    nodeId: self,
    copies: 3,
    vnodes: VNODES,
    stableMs: 0,
    replaceMs: 10_000,
    sight: () => ({ stableSince: 0, brokers }),
    nodes: () => new Map(all.map((id, i) => [id, { number: i, role: 'member' }])),
  })
  clock.advance(500)
  await Promise.resolve()
  for (let ms = 0; ms < 15_000; ms += 500) clock.advance(500)
  keeper.stop()
  assert.equal(changedAtMs[0], 10_500)
})
