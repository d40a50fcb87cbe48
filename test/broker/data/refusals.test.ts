// What is not taken: damaged entries, messages that go the wrong way, and brokers that do not belong here.

import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { KeyRefusals } from '../../../src/broker/seal/refusals.ts'
import { sealedStreams } from '../../../src/broker/seal/sealed-streams.ts'
import { clusterId } from '../../../src/model/ids.ts'
import type { Connection, Streams } from '../../../src/ports/streams.ts'
import type { SimProcess } from '../../../src/sim/process.ts'
import { DATA_MAGIC, DATA_VERSION } from '../../../src/wire/data/frame.ts'
import { wordFrame } from '../../../src/wire/data/word.ts'
import { helloFrame } from '../../../src/wire/peer/hello.ts'
import { keysOf } from '../members/support.ts'
import { Node, startNumber } from '../peers/support.ts'
import { CLUSTER, DataNet, idOf, Memory, startsTo } from './support.ts'

describe('a damaged entry', () => {
  it('is not received; it breaks the connection, is counted, and comes again whole', async () => {
    const net = new DataNet(1)
    const a = await net.start('a')
    const b = await net.start('b')
    const sender = a.lead(b, { batchBytes: 5000 })
    await net.run(100)
    let spoilt = 0
    a.spoil = (entries) => {
      if (spoilt++ > 0) return entries
      const pieces = entries.pieces.map((piece) => piece.slice())
      const batch = pieces[1] as Uint8Array
      batch[2000] = (batch[2000] as number) ^ 1
      return { ...entries, pieces }
    }
    sender.append(3)
    await net.until('all arrive', () => sender.acked === 3)
    assert.deepEqual(b.events, ['a in up 1', 'a in down 1', 'a in up 1'])
    assert.equal(await b.metric('bad_frames_total'), 1)
    assert.ok(b.log.some((line) => /batch of entry 0 does not match/.test(line)))
  })
})

describe('a broker that does not belong here', () => {
  it('is refused when it is of another cluster', async () => {
    const net = new DataNet(2)
    const a = await net.start('a', { clusterId: clusterId('d'.repeat(32)) })
    const b = await net.start('b')
    a.lead(b).append(1)
    await net.run(3000)
    assert.deepEqual([a.events, b.events], [[], []])
    assert.ok((await b.metric('refusals_total')) > 0)
    assert.ok(a.log.some((line) => line.includes('(cluster)')))
  })

  it('is refused as an older copy, told so, and silent from then on', async () => {
    const net = new DataNet(3)
    const memory = new Memory()
    memory.starts.set(idOf('a'), startNumber(5))
    const b = await net.start('b', { memory })
    const a = await net.start('a', { starts: startsTo(4) })
    const sender = a.lead(b)
    sender.append(1)
    await net.until('it is refused', () => a.refusedBy.length > 0)
    const dials = await a.metric('failed_dials_total')
    await net.run(30_000)
    assert.deepEqual(a.refusedBy, [b.id])
    assert.deepEqual([a.events, b.events], [[], []])
    assert.equal(await a.metric('failed_dials_total'), dials)
  })

  it('is not greeted when it means another port, and disturbs no link there', async () => {
    const net = new DataNet(4)
    const b = await net.start('b')
    const a = await net.start('a')
    a.lead(b).append(1)
    await net.run(200)
    // The same node, with what is said on the cluster port.
    const wrong = new Node(net.world, 'w', { nodeId: a.id })
    wrong.addresses.set(b.id, { host: 'b', port: 2923 })
    wrong.peers.send(b.id, [{ kind: 'read', shard: 0, id: 1 }])
    await net.run(500)
    assert.deepEqual(wrong.events, [])
    assert.deepEqual(b.events, ['a in up 1'])
    assert.ok(b.log.some((line) => line.includes('the magic is')))
    await wrong.peers.stop()
  })

  it('is let in anew, and what hangs on its last start is told to be gone', async () => {
    const net = new DataNet(5)
    const a = await net.start('a')
    const b = await net.start('b')
    a.lead(b)
    b.lead(a)
    await net.run(100)
    b.process.powerOff({ keepUnsynced: true })
    await net.run(300)
    const again = await net.start('b', { bootCount: 2 })
    again.lead(a).append(1)
    await net.until('it is linked to', () => a.events.at(-1) === 'b out up 2', 500)
    const ins = a.events.filter((event) => event.startsWith('b in'))
    assert.deepEqual(ins, ['b in up 1', 'b in down 1', 'b in up 2'])
    const outs = a.events.filter((event) => event.startsWith('b out'))
    assert.deepEqual(outs, ['b out up 1', 'b out down 1', 'b out up 2'])
  })
})

describe('a message that goes the wrong way', () => {
  it('breaks the connection and is not received', async () => {
    const net = new DataNet(8)
    const b = await net.start('b')
    const identity = { clusterId: CLUSTER, nodeId: idOf('a'), starts: startsTo(1) }
    const hello = helloFrame({ version: DATA_VERSION, ...identity, to: b.id }, DATA_MAGIC)
    for (const [kind, times] of [
      ['acks', 1],
      ['watermarks', 0],
    ] as const) {
      const before = await b.metric('bad_frames_total')
      const streams = net.world.network.streams('fake')
      const connection = await connected(net, streams)
      connection.write([hello])
      await net.run(50)
      connection.write([wordFrame({ kind, of: [] })])
      await net.run(50)
      assert.equal((await b.metric('bad_frames_total')) - before, times)
    }
    assert.deepEqual(b.words, ['watermarks'])
    assert.ok(b.log.some((line) => line.endsWith('acks came the wrong way')))
  })
})

async function connected(net: DataNet, streams: Streams): Promise<Connection> {
  let connection: Connection | undefined
  void streams.connect({ host: 'b', port: 2923 }, { timeoutMs: 1000 }).then((one) => {
    one.handle({ onData: () => {}, onClose: () => {} })
    connection = one
  })
  await net.until('it is connected', () => connection !== undefined)
  assert.ok(connection !== undefined)
  return connection
}

describe('with a cluster key', () => {
  const sealedWith =
    (key: string) =>
    (real: Streams, { ports }: SimProcess): Streams =>
      sealedStreams(real, keysOf(ports, [key]), new KeyRefusals(ports))

  it('entries arrive as without one, large and small', async () => {
    const net = new DataNet(6)
    const a = await net.start('a', { streams: sealedWith('the key of the cluster') })
    const b = await net.start('b', { streams: sealedWith('the key of the cluster') })
    const small = a.lead(b)
    const large = a.lead(b, { batchBytes: 300_000, bulk: true })
    small.append(50)
    large.append(10)
    await net.until('all arrive', () => small.acked === 50 && large.acked === 10)
  })

  it('who has another one, or none, is not let in', async () => {
    const net = new DataNet(7)
    const b = await net.start('b', { streams: sealedWith('the key of the cluster') })
    const a = await net.start('a', { streams: sealedWith('another key of a cluster') })
    const c = await net.start('c')
    a.lead(b).append(1)
    c.lead(b).append(1)
    await net.run(5000)
    assert.deepEqual([a.events, b.events, c.events], [[], [], []])
  })
})
