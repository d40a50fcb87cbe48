// Clusters that meet, and one that starts anew.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Address } from '../../../src/base/address.ts'
import type { MemberState, Packet } from '../../../src/model/swim.ts'
import { at, Bench, idOf, memberOf, news, OTHER_CLUSTER } from './bench.ts'

function packetOf(n: number): Omit<Packet, 'cluster'> {
  return { from: idOf(n), boot: 1, nonce: n, body: { kind: 'gossip' }, updates: [], hints: [] }
}

function byHost(a: Address, b: Address): number {
  return a.host < b.host ? -1 : 1
}

test('packets of another cluster are counted, told of once, and not listened to', () => {
  const bench = new Bench()
  for (let i = 0; i < 3; i++) {
    bench.receive({
      cluster: OTHER_CLUSTER,
      from: idOf(1),
      boot: 1,
      nonce: 1,
      body: { kind: 'ping', sequence: 1, to: idOf(0) },
      updates: [news(memberOf(1, 'alive'))],
      hints: [],
    })
  }
  assert.equal(bench.swim.counters.foreign, 3)
  assert.equal(bench.stateOf(1), undefined)
  assert.equal(bench.sent.length, 0)
  const told = bench.events.filter(({ kind }) => kind === 'foreign-cluster')
  assert.deepEqual(told, [
    { kind: 'foreign-cluster', cluster: OTHER_CLUSTER, from: at(9), yields: true },
  ])
})

test('a cluster of one yields to one with others in it, and of two such the younger; no other does', () => {
  const own = 5000
  const yields = (foundedMs: number, lone: boolean, known: readonly MemberState[]): unknown => {
    const bench = new Bench()
    // Nobody is learned of as dead or left.
    for (const [i, state] of known.entries()) {
      bench.hear(1, [news(memberOf(i + 2, 'alive'))])
      bench.hear(1, [news(memberOf(i + 2, state))])
    }
    bench.receive({ ...packetOf(1), cluster: { ...OTHER_CLUSTER, foundedMs, lone } })
    const told = bench.events.find(({ kind }) => kind === 'foreign-cluster')
    return told?.kind === 'foreign-cluster' ? told.yields : undefined
  }
  for (const foundedMs of [own - 1, own, own + 1]) {
    assert.equal(yields(foundedMs, false, []), true)
    assert.equal(yields(foundedMs, false, ['left']), true)
    for (const lone of [true, false]) {
      for (const state of ['alive', 'suspect', 'dead'] as const) {
        assert.equal(yields(foundedMs, lone, [state, 'left']), false)
      }
    }
  }
  // At one time the lower id is the older.
  assert.deepEqual(
    [own - 1, own, own + 1].map((ms) => yields(ms, true, [])),
    [true, false, false],
  )
})

test('who has met others in an earlier start is not alone, and asks them first', () => {
  const bench = new Bench({}, [at(3), at(4), at(0)])
  assert.deepEqual(bench.asked.toSorted(byHost), [at(3), at(4)])
  bench.receive({ ...packetOf(1), cluster: { ...OTHER_CLUSTER, lone: false } })
  const told = bench.events.filter(({ kind }) => kind !== 'member')
  assert.deepEqual(told, [
    {
      kind: 'foreign-cluster',
      cluster: { ...OTHER_CLUSTER, lone: false },
      from: at(9),
      yields: false,
    },
  ])
  bench.synced(3, [news(memberOf(3, 'alive'))])
  assert.equal(bench.events.at(-1)?.kind, 'joined')
})

test('a cluster that others join after it was met is yielded to then', () => {
  const bench = new Bench()
  const young = { ...OTHER_CLUSTER, foundedMs: 6000 }
  for (const lone of [true, true, false, false]) {
    bench.receive({ ...packetOf(1), cluster: { ...young, lone } })
  }
  const told = bench.events.flatMap((one) => (one.kind === 'foreign-cluster' ? [one.yields] : []))
  assert.deepEqual(told, [false, true])
})
