// Brokers with a cluster key, and others that would like to be among them.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Truncated } from '../../../src/base/cursor.ts'
import { prng } from '../../../src/base/prng.ts'
import { openClusterPort } from '../../../src/broker/members/cluster-port.ts'
import { KeyRefusals } from '../../../src/broker/seal/refusals.ts'
import type { Streams } from '../../../src/ports/streams.ts'
import { simMetrics } from '../../../src/sim/ports/metrics.ts'
import type { ProcessPorts } from '../../../src/sim/process.ts'
import { readPacket } from '../../../src/wire/swim/packet.ts'
import { Node, numbered, Net as PeerNet } from '../peers/support.ts'
import { addressOf, agreed, type Broker, keysOf, Net, PORT } from './support.ts'

const KEY = 'the key of the cluster'
const OTHER = 'the key of another one'
const WITH_KEY = { clusterKeys: [KEY] } as const
const WITH_OTHER = { clusterKeys: [OTHER] } as const

/** Keeps every packet that a broker sends. */
function recorded(packets: Uint8Array[]): (ports: ProcessPorts) => ProcessPorts {
  return (ports) => ({
    ...ports,
    datagrams: {
      bind: async (address, onPacket) => {
        const socket = await ports.datagrams.bind(address, onPacket)
        return {
          address: socket.address,
          send: (packet, to) => {
            packets.push(packet.slice())
            socket.send(packet, to)
          },
          close: () => socket.close(),
        }
      },
    },
  })
}

/** Found dead, or back from it. */
function troubles(brokers: readonly Broker[]): readonly string[] {
  return brokers.flatMap(({ log }) =>
    log.filter((line) => /dead|is back|comes and goes/.test(line)),
  )
}

test('brokers with one key are a cluster, and no packet of theirs can be read', async () => {
  const net = new Net(71)
  const packets: Uint8Array[] = []
  const all = await net.cluster(['a', 'b', 'c'], { ...WITH_KEY, ports: recorded(packets) })
  await net.run(10_000)
  assert.ok(agreed(all))
  assert.ok(packets.length > 30)
  for (const packet of packets) assert.throws(() => readPacket(packet), Truncated)
  for (const broker of all) {
    assert.equal(await broker.metric('unopened_packets_total'), 0)
    assert.equal(await broker.metric('failed_syncs_total'), 0)
  }
})

test('brokers with another key, or none, form no part of a cluster and disturb nobody', async () => {
  const net = new Net(72)
  const inside = await net.cluster(['a', 'b', 'c'], WITH_KEY)
  const outside = [
    await net.start('x', [], WITH_OTHER),
    await net.start('y', ['a', 'x'], WITH_OTHER),
  ]
  const lost = [
    await net.start('z', ['a', 'b', 'c'], WITH_OTHER),
    await net.start('n', ['a', 'b', 'c', 'x']),
  ]
  // A broker of the cluster that is told to ask the others' finds out, too.
  const d = await net.start('d', ['x', 'n', 'a'], WITH_KEY)
  const socket = lost[0]?.process.ports.datagrams
  const other = await socket?.bind({ host: 'z', port: 9 }, () => {})
  for (let i = 0; i < 50; i++) other?.send(prng(i).bytes(200), addressOf('a'))
  await net.until('those that have one key are together', () => agreed([...inside, d]))
  await net.until('so are those that have the other', () => agreed(outside))
  await net.run(30_000)
  assert.ok(agreed([...inside, d]))
  assert.ok(agreed(outside))
  assert.deepEqual(troubles([...inside, d, ...outside]), [])
  for (const broker of lost) {
    assert.equal(broker.joined, undefined)
    assert.equal(broker.members.cluster, undefined)
  }
  assert.equal(await inside[0]?.metric('unopened_packets_total'), 50)
})

test('both sides of a refusal log what has to hold, and not again at every attempt', async () => {
  const net = new Net(73)
  const a = await net.start('a', [], WITH_KEY)
  const n = await net.start('n')
  const x = await net.start('x', ['a'], WITH_OTHER)
  const m = await net.start('m', ['a'])
  const y = await net.start('y', ['n'], WITH_KEY)
  await net.run(30_000)
  const why = (broker: Broker): readonly string[] =>
    broker.process.ports.log.lines
      .filter(({ level, fields }) => level === 'warn' && 'why' in fields)
      .map(({ fields }) => String(fields['why']))
      .sort()
  const SAME = 'all brokers of a cluster need the same cluster_key, or cluster_key_file'
  assert.deepEqual(why(a), [
    `a broker that has no cluster key speaks to one that has: ${SAME}`,
    `two brokers have different cluster keys: ${SAME}`,
  ])
  assert.deepEqual(why(n), [`a broker that has a cluster key speaks to one that has none: ${SAME}`])
  for (const broker of [x, m, y]) {
    const [line, ...more] = why(broker)
    assert.ok(line?.includes(SAME), line)
    assert.deepEqual(more, [])
  }
})

test('a key is changed by restarting brokers one after another, and nobody is lost on the way', async () => {
  const net = new Net(76)
  const names = ['a', 'b', 'c']
  const brokers = new Map<string, Broker>()
  for (const broker of await net.cluster(names, WITH_KEY)) brokers.set(broker.name, broker)
  const rounds: readonly (readonly [string, ...string[]])[] = [[KEY, OTHER], [OTHER, KEY], [OTHER]]
  for (const clusterKeys of rounds) {
    for (const name of names) {
      const old = brokers.get(name)
      assert.ok(old !== undefined)
      await old.members.stop()
      old.process.kill()
      brokers.set(name, await net.start(name, [], { clusterKeys }))
      await net.until('all are together again', () => agreed([...brokers.values()]), 60_000)
    }
  }
  for (const broker of brokers.values()) {
    assert.equal(await broker.metric('unopened_packets_total'), 0)
    assert.deepEqual(broker.refusals, [])
    assert.ok(!broker.log.some((line) => line.includes('refused')))
  }
})

test('packets that are sent again, by somebody else and much later, change nothing', async () => {
  const net = new Net(74)
  const packets: Uint8Array[] = []
  const options = { ...WITH_KEY, ports: recorded(packets) }
  const [a, b, c, d] = await net.cluster(['a', 'b', 'c', 'd'], options)
  assert.ok(a !== undefined && b !== undefined && c !== undefined && d !== undefined)
  // There is something to replay: a suspicion and what became of it, a restart, a death, a goodbye.
  net.partition(['b'], ['a', 'c', 'd'], true)
  await net.run(2500)
  net.partition(['b'], ['a', 'c', 'd'], false)
  await net.run(5000)
  await b.members.stop()
  const again = await net.start('b', ['a'], options)
  c.process.kill()
  const leaving = d.members.leave()
  await net.run(30_000)
  await leaving
  await d.members.stop()
  assert.ok(agreed([a, again]))
  const before = troubles([a, again]).length
  const caught = packets.slice()
  const thief = await net.world
    .process('thief')
    .ports.datagrams.bind({ host: 'thief', port: 9 }, () => {})
  const chance = prng(74)
  for (let round = 0; round < 3000; round++) {
    const packet = caught[chance.below(caught.length)]
    assert.ok(packet !== undefined)
    thief.send(packet, addressOf(round % 2 === 0 ? 'a' : 'b'))
    if (round % 10 === 0) await net.run(20)
  }
  await net.run(10_000)
  assert.ok(agreed([a, again]))
  assert.equal(troubles([a, again]).length, before)
  assert.deepEqual([...a.refusals, ...again.refusals], [])
  assert.equal(await a.metric('malformed_packets_total'), 0)
})

test('links go over sealed connections, and a broker with another key gets none', async () => {
  const net = new PeerNet(75)
  const onPort = (name: string, ...keys: [string, ...string[]]) => ({
    streams: (real: Streams): Streams => {
      let dial: Streams['connect'] | undefined
      return {
        connect: async (to, options) => {
          assert.ok(dial !== undefined)
          return dial(to, options)
        },
        listen: async (address, onConnection) => {
          const node = nodes.find((one) => one.name === name)
          assert.ok(node !== undefined)
          const { ports } = node.process
          const port = await openClusterPort(
            {
              ports: { ...ports, streams: real },
              clusterKeys: keysOf(ports, keys),
              keyRefusals: new KeyRefusals({ log: ports.log, metrics: simMetrics() }),
              syncTimeoutMs: 5000,
              onPacket: () => {},
              onSync: () => undefined,
            },
            address,
          )
          dial = (to, options) => port.streams.connect(to, options)
          return port.streams.listen(address, onConnection)
        },
      }
    },
  })
  const nodes = [
    new Node(net.world, 'a', onPort('a', KEY)),
    new Node(net.world, 'b', onPort('b', OTHER, KEY)),
    new Node(net.world, 'c', onPort('c', OTHER)),
  ]
  const [a, b, c] = nodes as [Node, Node, Node]
  for (const node of nodes) {
    await node.peers.listen({ host: node.name, port: PORT })
    for (const other of nodes) node.addresses.set(other.id, { host: other.name, port: PORT })
  }
  a.peers.send(b.id, [numbered(1, 200_000), numbered(2)])
  b.send(c, 3)
  a.send(c, 4)
  c.send(a, 5)
  await net.until('all come that may', () => b.received.length === 2 && c.received.length === 1)
  net.world.network.resetConnections('a')
  await net.run(5000)
  a.send(b, 6)
  await net.until('a lost link comes again', () => b.received.length === 3)
  assert.equal(a.received.length, 0)
  assert.equal(c.received.length, 1)
  assert.ok(a.log.some((line) => line.includes('different cluster keys')))
})
