// Rules that a whole cluster hardly shows: one member, or two, and a clock that is moved by hand.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Swim } from '../../../src/core/swim/swim.ts'
import { SWIM_SETTINGS } from '../../../src/core/swim/types.ts'
import type { Packet, SyncRequest } from '../../../src/model/swim.ts'
import { at, Bench, idOf, memberOf, NAMED, news, OTHER_CLUSTER, profileOf } from './bench.ts'

test('the view moves while somebody who counts is suspect, and has a new version when somebody is gone', () => {
  const bench = new Bench()
  bench.hear(1, [
    news(memberOf(1, 'alive')),
    news(memberOf(2, 'alive')),
    news(memberOf(3, 'alive')),
  ])
  const { version } = bench.swim.view()
  assert.equal(bench.swim.view().stableSince, bench.now)
  bench.now += 100
  bench.hear(1, [news(memberOf(2, 'suspect'), 1)])
  assert.equal(bench.swim.view().stableSince, undefined)
  assert.equal(bench.swim.view().version, version)
  bench.now += 100
  bench.hear(1, [news(memberOf(2, 'alive', { incarnation: 1 }))])
  assert.equal(bench.swim.view().stableSince, bench.now)
  assert.equal(bench.swim.view().version, version)
  bench.now += 100
  bench.hear(1, [news(memberOf(2, 'dead', { incarnation: 1 }))])
  assert.equal(bench.swim.view().version, version + 1)
  assert.deepEqual(
    bench.swim.view().members.map(({ member }) => member.node),
    [0, 1, 3].map(idOf),
  )
})

test('another address is another view; another load is not', () => {
  const bench = new Bench()
  bench.hear(1, [news(memberOf(1, 'alive'))])
  const { version } = bench.swim.view()
  const loaded = profileOf(1, { loadBytes: 77 })
  bench.hear(1, [news(memberOf(1, 'alive', { incarnation: 1, profile: loaded }))])
  assert.equal(bench.swim.view().version, version)
  assert.equal(bench.swim.view().members[1]?.member.profile.loadBytes, 77)
  const moved = profileOf(1, { client: at(7) })
  bench.hear(1, [news(memberOf(1, 'alive', { incarnation: 2, profile: moved }))])
  assert.equal(bench.swim.view().version, version + 1)
})

test('a member that comes and goes is held back, and its suspicions move no view', () => {
  const bench = new Bench()
  bench.hear(1, [
    news(memberOf(1, 'alive')),
    news(memberOf(2, 'alive')),
    news(memberOf(3, 'alive')),
  ])
  for (let incarnation = 1; incarnation <= 2; incarnation++) {
    bench.hear(1, [news(memberOf(2, 'dead', { incarnation: incarnation - 1 }))])
    bench.hear(1, [news(memberOf(2, 'alive', { incarnation }))])
  }
  assert.ok(bench.events.some(({ kind }) => kind === 'held'))
  bench.hear(1, [news(memberOf(2, 'suspect', { incarnation: 2 }), 1)])
  const { stableSince, members } = bench.swim.view()
  assert.notEqual(stableSince, undefined)
  assert.deepEqual(
    members.map(({ held }) => held),
    [false, false, true, false],
  )
})

test('who comes and goes for long is left out, with a word, and yet gets its chance', () => {
  const bench = new Bench({ flapForgivenMs: 3_600_000 })
  bench.hear(1, [news(memberOf(1, 'alive')), news(memberOf(3, 'alive'))])
  let boot = 1
  for (; boot < 12; boot++) bench.hear(1, [news(memberOf(2, 'alive', { boot }))])
  const last = bench.events.findLast(({ kind }) => kind === 'held')
  assert.ok(last?.kind === 'held' && last.leftOut && last.holdMs === SWIM_SETTINGS.holdMaxMs)
  bench.now += SWIM_SETTINGS.holdMaxMs
  bench.swim.tick(bench.now)
  assert.ok(bench.swim.view().members.every(({ held }) => !held))
})

test('when many seem to come and go, it is the network, and few are held back', () => {
  const bench = new Bench()
  const others = [1, 2, 3, 4]
  for (let boot = 1; boot < 6; boot++) {
    bench.hear(
      9,
      others.map((n) => news(memberOf(n, 'alive', { boot }))),
    )
  }
  assert.equal(bench.swim.view().members.filter(({ held }) => held).length, 1)
})

test('the dead are forgotten after long, and the oldest of too many, and not learned again', () => {
  const bench = new Bench({ deadMax: 3, forgetMs: 1_000_000 })
  for (let n = 1; n <= 5; n++) {
    bench.hear(9, [news(memberOf(n, 'alive'))])
    bench.hear(9, [news(memberOf(n, 'dead'))])
    bench.now += 10
  }
  assert.deepEqual(
    [1, 2, 3, 4, 5].map((n) => bench.stateOf(n)),
    [undefined, undefined, 'dead', 'dead', 'dead'],
  )
  bench.hear(9, [news(memberOf(1, 'dead'))])
  bench.synced(9, [news(memberOf(2, 'dead')), news(memberOf(6, 'left'))])
  assert.equal(bench.stateOf(1) ?? bench.stateOf(2) ?? bench.stateOf(6), undefined)
  bench.pass(1_100_000)
  assert.equal(bench.stateOf(3), undefined)
  assert.equal(bench.events.filter(({ kind }) => kind === 'forgotten').length, 5)
})

test('the dead are probed again with pauses that grow up to a bound', () => {
  const bench = new Bench()
  bench.hear(9, [news(memberOf(1, 'alive'))])
  bench.hear(9, [news(memberOf(1, 'dead'))])
  const since = bench.now
  const times: number[] = []
  while (times.length < 12) {
    bench.sent = []
    bench.pass(100)
    for (const { packet } of bench.sent) if (packet.body.kind === 'ping') times.push(bench.now)
  }
  const pauses = times.map((time, i) => time - (times[i - 1] ?? since))
  assert.ok((pauses[0] ?? 0) <= 1.5 * SWIM_SETTINGS.deadProbeMinMs + 100)
  assert.ok(Math.max(...pauses) <= 1.25 * SWIM_SETTINGS.deadProbeMaxMs + 100)
  assert.ok((pauses.at(-1) ?? 0) >= 0.75 * SWIM_SETTINGS.deadProbeMaxMs - 100)
})

test('what a sync says of the dead is suspected first, and so is what somebody says who thinks this member dead; what others say is believed', () => {
  const bench = new Bench()
  bench.hear(9, [
    news(memberOf(1, 'alive')),
    news(memberOf(2, 'alive')),
    news(memberOf(3, 'alive')),
  ])
  bench.synced(9, [news(memberOf(1, 'dead'))])
  assert.equal(bench.stateOf(1), 'suspect')
  bench.hear(9, [news(memberOf(0, 'dead', { nonce: 0 })), news(memberOf(3, 'dead'))])
  assert.equal(bench.stateOf(3), 'suspect')
  bench.hear(9, [news(memberOf(2, 'dead'))])
  assert.equal(bench.stateOf(2), 'dead')
})

test('a ping for another node is not answered: that node is not here', () => {
  const bench = new Bench()
  bench.hear(1, [news(memberOf(1, 'alive'))], { kind: 'ping', sequence: 5, to: idOf(4) })
  assert.ok(bench.sent.every(({ packet }) => packet.body.kind !== 'ack'))
  assert.equal(bench.swim.counters.misdirected, 1)
  bench.hear(1, [], { kind: 'ping', sequence: 5, to: idOf(0) })
  assert.ok(bench.sent.some(({ packet }) => packet.body.kind === 'ack'))
})

test('a refusal of an earlier life, late on its way, stops nobody', () => {
  const bench = new Bench()
  bench.hear(1, [], { kind: 'refused', refused: { boot: 0, nonce: 5 }, boot: 1 })
  assert.ok(bench.events.every(({ kind }) => kind !== 'refused'))
  bench.hear(1, [], { kind: 'refused', refused: { boot: 1, nonce: 0 }, boot: 4 })
  assert.deepEqual(bench.events.at(-1), { kind: 'refused', boot: 4 })
  assert.equal(bench.swim.nextTick, Number.POSITIVE_INFINITY)
})

test('its own packets, come back from an address that a dead member had, mean nothing', () => {
  const bench = new Bench()
  bench.receive({
    cluster: NAMED,
    from: idOf(0),
    boot: 1,
    nonce: 0,
    body: { kind: 'ping', sequence: 1, to: idOf(0) },
    updates: [],
    hints: [],
  })
  assert.equal(bench.sent.length, 0)
})

test('loads are told now and then; an address at once', () => {
  const bench = new Bench()
  const { swim } = bench
  const incarnations = (): number => swim.table.self.incarnation
  bench.now += 10
  swim.setProfile(profileOf(0, { loadBytes: 1 }), bench.now)
  for (let load = 2; load <= 20; load++) {
    bench.pass(100)
    swim.setProfile(profileOf(0, { loadBytes: load }), bench.now)
  }
  assert.equal(incarnations(), 1)
  bench.pass(SWIM_SETTINGS.loadEveryMs)
  assert.equal(incarnations(), 2)
  assert.equal(swim.table.self.profile.loadBytes, 20)
  swim.setProfile(profileOf(0, { client: at(3), loadBytes: 20 }), bench.now)
  assert.equal(incarnations(), 3)
})

test('a packet takes a bounded number of hints, and all of them are told in time', () => {
  const bench = new Bench()
  bench.hear(1, [news(memberOf(1, 'alive'))])
  for (let shard = 0; shard < 100; shard++) {
    bench.swim.lead({ shard, term: 3, leader: idOf(0) }, bench.now)
  }
  bench.sent = []
  bench.pass(10_000)
  const loads = bench.sent.map(({ packet }) => packet.hints)
  assert.ok(loads.every(({ length }) => length <= SWIM_SETTINGS.hintsPerPacket))
  const times = new Map<number, number>()
  for (const { shard } of loads.flat()) times.set(shard, (times.get(shard) ?? 0) + 1)
  assert.equal(times.size, 100)
  assert.ok([...times.values()].every((count) => count === SWIM_SETTINGS.retransmits))
})

test('a seed that swallows everything delays no other, and is tried again', () => {
  const bench = new Bench()
  const swim = new Swim({ ...bench.swim.options, cluster: undefined, node: idOf(5) }, bench.now)
  swim.join([at(1), at(2), at(3), at(4)], bench.now)
  const tried: string[] = []
  const end = bench.now + 20_000
  while (swim.nextTick <= end) {
    swim.tick(swim.nextTick)
    for (const { to } of swim.take().syncs) tried.push(to.host)
  }
  for (const host of ['h1', 'h2', 'h3', 'h4']) {
    assert.ok(tried.filter((one) => one === host).length >= 2, `${host} in ${tried.join(' ')}`)
  }
})

test('pings for others are bounded', () => {
  const bench = new Bench()
  for (let sequence = 0; sequence < 300; sequence++) {
    bench.hear(1, [], { kind: 'ping-request', sequence, target: idOf(7), address: at(7) })
  }
  assert.equal(bench.sent.filter(({ packet }) => packet.body.kind === 'ping').length, 256)
  assert.equal(bench.swim.counters.dropped, 44)
})

test('when one that was thought dead is back, the deaths of others are not told on: they may be as wrong', () => {
  const bench = new Bench()
  bench.hear(9, [news(memberOf(1, 'alive')), news(memberOf(2, 'alive'))])
  bench.hear(9, [news(memberOf(1, 'dead')), news(memberOf(2, 'dead'))])
  bench.hear(9, [news(memberOf(1, 'alive', { incarnation: 1 }))])
  bench.sent = []
  bench.pass(1000)
  const told = bench.sent.flatMap(({ to, packet }) => (to.host === 'h1' ? packet.updates : []))
  assert.ok(told.length > 0)
  assert.ok(told.every(({ member }) => member.state !== 'dead'))
})

test('a probe that an earlier life did not answer is not held against the later one', () => {
  const bench = new Bench()
  bench.hear(9, [news(memberOf(1, 'alive')), news(memberOf(2, 'alive'))])
  const asks = (n: number): boolean =>
    bench.sent.some(({ to, packet }) => packet.body.kind === 'ping' && to.host === `h${n}`)
  while (!asks(1)) bench.pass(10)
  bench.hear(9, [news(memberOf(1, 'alive', { boot: 2 }))])
  bench.pass(SWIM_SETTINGS.periodMs)
  assert.equal(bench.stateOf(1), 'alive')
})

function asked(cluster: SyncRequest['cluster'], change: Partial<SyncRequest> = {}): SyncRequest {
  const updates = [news(memberOf(1, 'alive'))]
  return { kind: 'sync', cluster, from: idOf(1), boot: 1, nonce: 1, updates, hints: [], ...change }
}

test('a sync is answered to the cluster and to newcomers, and refused with the reason to others', () => {
  const bench = new Bench()
  const { swim } = bench
  const reason = (request: SyncRequest): string => {
    const answer = swim.answerSync(request, bench.now)
    return answer.kind === 'sync-refused' ? answer.reason : answer.kind
  }
  assert.equal(reason(asked(OTHER_CLUSTER)), 'other-cluster')
  assert.equal(bench.stateOf(1), undefined)
  assert.equal(reason(asked(undefined)), 'sync-answer')
  assert.equal(reason(asked(NAMED)), 'sync-answer')
  assert.equal(bench.stateOf(1), 'alive')
  assert.equal(reason(asked(NAMED, { nonce: 5 })), 'old-life')
  assert.equal(reason(asked(NAMED, { boot: 0 })), 'old-life')
  assert.equal(reason(asked(NAMED, { from: idOf(0), nonce: 0 })), 'itself')
  swim.leave(bench.now)
  assert.equal(reason(asked(NAMED)), 'no-member')
})

test('a stranger is asked for all it knows, unless it is known by then, and not too many are', () => {
  const bench = new Bench()
  const stranger = (n: number): Packet => ({
    cluster: NAMED,
    from: idOf(n),
    boot: 1,
    nonce: n,
    body: { kind: 'gossip' },
    updates: [],
    hints: [],
  })
  bench.receive(stranger(1), at(1))
  bench.receive(stranger(2), at(2))
  bench.hear(9, [news(memberOf(2, 'alive'))])
  bench.pass(1500)
  assert.ok(bench.asked.some(({ host }) => host === 'h1'))
  assert.ok(bench.asked.every(({ host }) => host !== 'h2'))
  for (let n = 10; n < 40; n++) bench.receive(stranger(n), at(n))
  assert.ok(bench.swim.counters.dropped >= 10)
})
