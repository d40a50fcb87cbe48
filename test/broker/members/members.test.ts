import assert from 'node:assert/strict'
import { test } from 'node:test'
import { foundedByMistake } from '../../../src/broker/members/news.ts'
import { agreed, idOf, Net, SHARDS } from './support.ts'

test('a broker without seeds founds a cluster, and writes it down before it has joined', async () => {
  const net = new Net(1)
  const a = await net.start('a')
  await net.run(10)
  assert.ok(a.joined !== undefined)
  assert.deepEqual(a.joined, a.kept.cluster)
  assert.equal(a.joined.shards, SHARDS)
  assert.ok(a.kept.founder)
  assert.ok(a.settled)
  assert.ok(a.log.includes('info: a new cluster was founded'))
})

test('two brokers become one cluster, and whoever joins takes its shards from it', async () => {
  const net = new Net(2)
  const a = await net.start('a')
  const b = await net.start('b', ['a'], { metadataShards: 8 })
  await net.until('both see both', () => agreed([a, b]))
  assert.deepEqual(b.joined, a.joined)
  assert.deepEqual(b.kept.cluster, a.kept.cluster)
  assert.ok(!b.kept.founder)
  assert.deepEqual(a.members.addressOf(idOf('b')), { host: 'b', port: 2922 })
  assert.deepEqual(a.members.neighbours(), [
    {
      nodeId: idOf('b'),
      displayName: 'b',
      hostLabel: 'b',
      rackLabel: '',
      boot: 1,
      state: 'alive',
      cluster: { host: 'b', port: 2922 },
      client: { host: 'b', port: 2921 },
      data: { host: 'b', port: 2923 },
    },
  ])
})

for (const size of [5, 20]) {
  test(`${size} brokers join through lists of all of them, themselves among these`, async () => {
    const net = new Net(size)
    const names = Array.from({ length: size }, (_, i) => `n${i}`)
    const [first = '', ...others] = names
    const all = [await net.start(first)]
    for (const name of others) all.push(await net.start(name, names))
    await net.until('all see all', () => agreed(all), 15_000)
    for (const { joined } of all) assert.deepEqual(joined, all[0]?.joined)
  })
}

test('a founder by mistake hears of the other cluster, and what to do; that one goes on', async () => {
  const net = new Net(7)
  const [a, b] = await net.cluster(['a', 'b'])
  await net.run(1000)
  const lost = await net.start('lost')
  await net.run(100)
  assert.ok(a?.joined !== undefined && b !== undefined && lost.joined !== undefined)
  b.process.kill()
  // Somebody of the other cluster still knows its address, from before its disk was replaced.
  const restarted = await net.start('b', ['lost', 'a'])
  await net.until('both have met', () => lost.foreign.length > 0 && restarted.foreign.length > 0)
  assert.deepEqual(lost.foreign, [{ cluster: { ...a.joined, lone: false }, yields: true }])
  assert.deepEqual(restarted.foreign, [{ cluster: { ...lost.joined, lone: true }, yields: false }])
  const error = foundedByMistake(lost.joined, a.joined, { host: 'a', port: 2922 })
  assert.equal(error.code, 'CLUSTER_MISMATCH')
  assert.match(error.message, /founded cluster .* alone in it, and has met cluster .* at a:2922/)
  assert.match(error.hint, /join_seed_nodes/)
  await net.until('the other cluster is whole', () => agreed([a, restarted]))
})

test('of two clusters that others have joined neither yields', async () => {
  const net = new Net(8)
  const [a, b] = await net.cluster(['a', 'b'])
  const lost = await net.start('lost')
  const again = await net.start('again', ['lost'])
  await net.until('it joins the younger cluster', () => again.joined !== undefined)
  assert.ok(a !== undefined && b !== undefined)
  b.process.kill()
  const restarted = await net.start('b', ['lost'])
  await net.until('both have met', () => lost.foreign.length > 0 && restarted.foreign.length > 0)
  for (const { foreign } of [lost, restarted]) assert.equal(foreign[0]?.yields, false)
  await net.until('both are whole', () => agreed([a, restarted]) && agreed([lost, again]))
})
