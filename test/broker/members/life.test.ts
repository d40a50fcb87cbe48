import assert from 'node:assert/strict'
import { test } from 'node:test'
import { settle } from '../../ports/support.ts'
import { agreed, type Broker, idOf, Net } from './support.ts'

const FIVE = ['a', 'b', 'c', 'd', 'e']

/** A probe fails, others confirm the suspicion, it runs out, and all have heard: about half as long, mostly. */
const DEATH_MS = 12_000

function others(all: readonly Broker[], name: string): readonly Broker[] {
  return all.filter((one) => one.name !== name)
}

test('a broker that is killed is found dead in bounded time, and its address stays known', async () => {
  const net = new Net(11)
  const all = await net.cluster(FIVE)
  const living = others(all, 'c')
  net.brokers.get('c')?.process.kill()
  await net.until('it is found dead', () => agreed(living), DEATH_MS)
  for (const one of living) {
    assert.deepEqual(one.members.addressOf(idOf('c')), { host: 'c', port: 2922 })
    assert.ok(one.log.includes('warn: a broker is found dead: it has not answered anybody: c'))
    assert.equal(await one.metric('dead'), 1)
    assert.equal(await one.metric('alive'), 3)
  }
})

test('a broker that comes back with a higher boot count is counted on again', async () => {
  const net = new Net(12)
  const all = await net.cluster(FIVE)
  const living = others(all, 'c')
  net.brokers.get('c')?.process.kill()
  await net.until('it is found dead', () => agreed(living), DEATH_MS)
  const again = await net.start('c', ['a', 'b'])
  await net.until('all see it', () => agreed([...living, again]), 5000)
  assert.equal(again.kept.boot, 2)
  for (const one of living) assert.ok(one.log.includes('info: a broker has started anew: c'))
})

test('a broker that leaves is gone at once, and nobody suspects it', async () => {
  const net = new Net(13)
  const all = await net.cluster(FIVE)
  const leaver = net.brokers.get('b') as Broker
  const living = others(all, 'b')
  const from = net.now()
  const left = leaver.members.leave()
  let told = false
  void left.then(() => {
    told = true
  })
  await net.until('all know', () => agreed(living), 2000)
  await net.until('it has departed', () => told, 3000 - (net.now() - from))
  await leaver.members.stop()
  leaver.process.kill()
  await net.run(DEATH_MS)
  for (const one of living) {
    assert.ok(one.log.includes('info: a broker has left the cluster: b'))
    assert.equal(await one.metric('left'), 1)
    assert.equal(await one.metric('suspicions_total'), 0)
    assert.ok(one.members.neighbours().every(({ displayName }) => displayName !== 'b'))
  }
})

test('a broker that has left is counted on again when it starts again', async () => {
  const net = new Net(22)
  const all = await net.cluster(['a', 'b', 'c'])
  const leaver = net.brokers.get('b') as Broker
  const left = leaver.members.leave()
  await net.run(3000)
  await left
  await leaver.members.stop()
  leaver.process.kill()
  const living = others(all, 'b')
  assert.ok(agreed(living))
  const again = await net.start('b', ['a'])
  await net.until('all see it', () => agreed([...living, again]), 5000)
})

test('what is done in answer to news, while it is told, is told in its turn', async () => {
  const net = new Net(23)
  const [a] = await net.cluster(['a', 'b'])
  assert.ok(a !== undefined)
  let shard = 0
  const c = await net.start('c', ['b'], {
    // Whenever it hears of somebody it leads one more shard.
    onMember: (members) => members.lead(shard++, 1),
  })
  await net.until('its hints have come', () => a.hints.some((hint) => hint.endsWith(' c')), 5000)
  assert.ok(c.hints.length >= 2)
})

test('leaving ends at once for a broker that is alone, or takes no part', async () => {
  const net = new Net(14)
  const alone = await net.start('a')
  await net.run(10)
  await alone.members.leave()
  const joining = await net.start('b', ['nobody'])
  await joining.members.stop()
  await joining.members.leave()
  await settle()
  assert.match(String(joining.failed), /the broker stops/)
})

test('a partition that outlasts the suspicion heals: each side takes the other back', async () => {
  const net = new Net(15)
  const all = await net.cluster(FIVE)
  const [left, right] = [all.slice(0, 2), all.slice(2)]
  const names = [left, right].map((side) => side.map(({ name }) => name))
  const [leftNames = [], rightNames = []] = names
  net.partition(leftNames, rightNames, true)
  await net.until('each side is alone', () => agreed(left) && agreed(right), 2 * DEATH_MS)
  await net.run(60_000)
  net.partition(leftNames, rightNames, false)
  await net.until('all see all', () => agreed(all), 40_000)
})

test('a whole cluster that restarts finds itself by the addresses that its brokers remember', async () => {
  const net = new Net(16)
  const names = Array.from({ length: 20 }, (_, i) => `n${i}`)
  const before = await net.cluster(names)
  for (const one of before) one.process.kill()
  const after: Broker[] = []
  for (const one of before) {
    assert.equal(one.kept.peers.length, names.length - 1)
    after.push(await net.start(one.name))
  }
  await net.until('all see all', () => agreed(after), 15_000)
  for (const one of after) assert.deepEqual(one.joined, before[0]?.joined)
})

test('a broker that was stopped for long accuses nobody when it goes on', async () => {
  const net = new Net(17)
  const all = await net.cluster(FIVE)
  const sleeper = net.brokers.get('d') as Broker
  sleeper.process.pause()
  await net.until('it is found dead', () => agreed(others(all, 'd')), DEATH_MS)
  await net.run(10_000)
  sleeper.process.resume()
  await net.until('all see all', () => agreed(all), 10_000)
  assert.equal(await sleeper.metric('suspicions_total'), 0)
  assert.ok(sleeper.log.every((line) => !line.includes('dead')))
})

test('a timer that comes on time is never taken for sleep', async () => {
  const net = new Net(18)
  const all = await net.cluster(['a', 'b', 'c'])
  await net.run(120_000)
  for (const one of all) {
    assert.equal(await one.metric('failed_probes_total'), 0)
    const probes = await one.metric('probes_total')
    // One a second: whoever takes itself for slow probes less often.
    assert.ok(probes > 110 && probes < 130, `${probes} probes in 120 s`)
  }
})

test('a copy of a disk that is restored to an earlier start is refused, and stops taking part', async () => {
  const net = new Net(19)
  const all = await net.cluster(['a', 'b', 'c'])
  const living = others(all, 'b')
  net.brokers.get('b')?.process.kill()
  const second = await net.start('b', ['a'])
  await net.until('it is back', () => agreed([...living, second]), 5000)
  second.process.kill()
  // The next start has the boot count of the second again.
  net.disk('b').boot = 1
  const copy = await net.start('b', ['a', 'c'])
  await net.until('it is refused', () => copy.failed !== undefined, 5000)
  assert.deepEqual(copy.refusals, [2])
  assert.match(String(copy.failed), /start 2 of node .* have met its start 2/)
  assert.ok(copy.log.some((line) => line.startsWith('error: this is start 2 of node')))
  await copy.members.leave()
  copy.process.kill()
  // What it was refused for it does not spoil: a good start is let in.
  const third = await net.start('b', ['a', 'c'])
  await net.until('a good start is let in', () => agreed([...living, third]), 15_000)
})

test('who leads a shard is told to all, and the newest term wins', async () => {
  const net = new Net(20)
  const all = await net.cluster(['a', 'b', 'c'])
  const [a, b, c] = all as [Broker, Broker, Broker]
  a.members.lead(7, 3)
  b.members.lead(7, 4)
  b.members.lead(9, 1)
  const knows = (one: Broker): boolean =>
    one.members.leaderOf(7)?.leader === b.id && one.members.leaderOf(9)?.leader === b.id
  await net.until('all know', () => all.every(knows), 5000)
  assert.ok(c.hints.includes('9 1 b') && c.hints.includes('7 4 b'))
  assert.ok(!c.hints.slice(c.hints.indexOf('7 4 b')).includes('7 3 a'))
})

test('listeners hear of each view once, in order, and the last is the one that holds', async () => {
  const net = new Net(21)
  const all = await net.cluster(['a', 'b', 'c'])
  const [a] = all as [Broker]
  net.brokers.get('c')?.process.kill()
  await net.until('it is found dead', () => agreed(others(all, 'c')), DEATH_MS)
  assert.deepEqual(a.views.at(-1), a.members.view())
  const seen = a.views.map(({ version, stableSince }) => `${version} ${stableSince}`)
  for (const [i, one] of seen.entries()) assert.notEqual(one, seen[i - 1])
  for (const [i, { version }] of a.views.entries()) {
    assert.ok(version >= (a.views[i - 1]?.version ?? 0))
  }
  // While it is suspect the view moves, and that is told as well.
  assert.ok(
    a.views.some(({ stableSince, members }) => stableSince === undefined && members.length === 3),
  )
})
