import assert from 'node:assert/strict'
import { test } from 'node:test'
import { EastGuardError } from '../../../src/base/errors.ts'
import { prng } from '../../../src/base/prng.ts'
import { ask } from '../../../src/broker/members/ask.ts'
import { type ClusterPort, openClusterPort } from '../../../src/broker/members/cluster-port.ts'
import { syncFrame } from '../../../src/broker/members/sync-frames.ts'
import { KeyRefusals } from '../../../src/broker/seal/refusals.ts'
import type { Address, Connection, Streams } from '../../../src/ports/streams.ts'
import { simMetrics } from '../../../src/sim/ports/metrics.ts'
import type { SimProcess } from '../../../src/sim/process.ts'
import { simWorld } from '../../../src/sim/world.ts'
import { errorFrame } from '../../../src/wire/native/header.ts'
import { FRAME, frameOf, pingFrame } from '../../../src/wire/peer/frame.ts'
import { SYNC_BYTES_MAX, writeSyncRequest } from '../../../src/wire/swim/sync.ts'
import { Node, numbered, Net as PeerNet } from '../peers/support.ts'
import { addressOf, agreed, type Broker, idOf, Net, PORT } from './support.ts'

/** What came on a connection that somebody else has opened, and how it ended. */
class Dialled {
  readonly connection: Connection
  bytes = 0
  closed = false

  constructor(connection: Connection) {
    this.connection = connection
    connection.handle({
      onData: (chunk) => {
        this.bytes += chunk.length
      },
      onClose: () => {
        this.closed = true
      },
    })
  }
}

async function dial(process: SimProcess, to: Address, net: Net): Promise<Dialled> {
  const opening = process.ports.streams.connect(to, { timeoutMs: 1000 })
  await net.run(10)
  return new Dialled(await opening)
}

test('garbage on the port is counted and dropped, and the cluster does not mind', async () => {
  const net = new Net(31)
  const all = await net.cluster(['a', 'b', 'c'])
  const [a] = all as [Broker]
  const stranger = net.world.process('stranger')
  const socket = await stranger.ports.datagrams.bind({ host: 'stranger', port: 9 }, () => {})
  const chance = prng(31)
  for (let i = 0; i < 200; i++) socket.send(chance.bytes(chance.below(2000)), addressOf('a'))
  for (let i = 0; i < 20; i++) {
    const dialled = await dial(stranger, addressOf('a'), net)
    dialled.connection.write([chance.bytes(20 + chance.below(2000))])
    await net.until('it is closed', () => dialled.closed, 6000)
    assert.equal(dialled.bytes, 0)
  }
  assert.equal(await a.metric('malformed_packets_total'), 200)
  assert.ok(agreed(all))
})

test('a sync that is malformed, too large or too slow gets no answer and is closed', async () => {
  const net = new Net(32)
  const all = await net.cluster(['a', 'b'])
  const [a] = all as [Broker]
  const stranger = net.world.process('stranger')
  const frames = [
    frameOf(FRAME.SYNC, (w) => w.raw(new Uint8Array(100))),
    frameOf(FRAME.SYNC, (w) => w.raw(new Uint8Array(SYNC_BYTES_MAX + 1))),
    frameOf(FRAME.SYNC, (w) => w.raw(new Uint8Array(100))).subarray(0, 50),
    // A checksum that does not match.
    frameOf(FRAME.SYNC, (w) => w.raw(new Uint8Array(100))).fill(1, 50),
    // Not even enough to tell what it is.
    pingFrame(1).subarray(0, 5),
    // For links, of which there are none here.
    pingFrame(1),
  ]
  for (const frame of frames) {
    const dialled = await dial(stranger, addressOf('a'), net)
    dialled.connection.write([frame])
    await net.until('it is closed', () => dialled.closed, 6000)
    assert.equal(dialled.bytes, 0)
  }
  assert.equal(await a.metric('malformed_packets_total'), 1)
  assert.ok(agreed(all))
})

test('more connections than are waited for are closed at once, and syncs go on later', async () => {
  const net = new Net(33)
  const a = await net.start('a')
  const stranger = net.world.process('stranger')
  const opening = Array.from({ length: 300 }, () =>
    stranger.ports.streams.connect(addressOf('a'), { timeoutMs: 1000 }),
  )
  await net.run(10)
  const dialled = (await Promise.all(opening)).map((connection) => new Dialled(connection))
  await net.run(100)
  assert.equal(dialled.filter(({ closed }) => closed).length, 300 - 256)
  const b = await net.start('b', ['a'])
  await net.until('the silent ones have made room', () => agreed([a, b]), 10_000)
})

test('a sync with nobody at the other end delays no other', async () => {
  const net = new Net(34)
  const a = await net.start('a')
  // It takes connections, and says nothing.
  const hole = net.world.process('hole')
  await hole.ports.streams.listen(addressOf('hole'), (connection) => {
    connection.handle({ onData: () => {}, onClose: () => {} })
  })
  net.world.process('off').powerOff({ keepUnsynced: true })
  const b = await net.start('b', ['hole', 'off', 'a'])
  const joinedIn = await net.until('it joins', () => agreed([a, b]), 20_000)
  assert.ok(joinedIn < 1000, `it took ${joinedIn} ms`)
  const from = net.now()
  const c = await net.start('c', ['b'])
  await net.until('another joins through it', () => agreed([a, b, c]), 20_000)
  assert.ok(net.now() - from < 2000)
})

test('whoever is asked and does not answer is waited for as long as was said, and no longer', async () => {
  const net = new Net(43)
  const hole = net.world.process('hole')
  let open = 0
  await hole.ports.streams.listen(addressOf('hole'), (connection) => {
    open++
    connection.handle({
      onData: () => {},
      onClose: () => {
        open--
      },
    })
  })
  const { ports } = net.world.process('asker')
  let failure = ''
  const { signal } = new AbortController()
  const request = new Uint8Array(100)
  ask({ ports, to: addressOf('hole'), request, timeoutMs: 700, signal }).catch((error: unknown) => {
    failure = String(error)
  })
  await net.run(690)
  assert.deepEqual([failure, open], ['', 1])
  await net.run(20)
  assert.deepEqual([failure, open], ['Error: no answer in 700 ms', 0])
})

test('whoever waits for seeds that do not answer says so once, and joins when one does', async () => {
  const net = new Net(35)
  const b = await net.start('b', ['a', 'c'])
  const c = await net.start('c', ['b'])
  await net.run(30_000)
  assert.equal(b.joined, undefined)
  const silent = (one: Broker): readonly string[] =>
    one.log
      .filter((line) => line.startsWith('warn: a seed does not answer'))
      .map((line) => line.slice(-6))
  assert.deepEqual([...silent(b)].sort(), ['a:2922', 'c:2922'])
  assert.deepEqual(silent(c), ['b:2922'])
  const a = await net.start('a')
  await net.until('all join', () => agreed([a, b, c]), 25_000)
})

test('a broker all of whose seeds are itself under other names founds a cluster', async () => {
  const net = new Net(36)
  const a = await net.start('a', ['other-name', 'a'], {
    ports: (ports) => {
      const { streams } = ports
      const renamed: Streams = {
        listen: (address, onConnection) => streams.listen(address, onConnection),
        connect: (to, options) =>
          streams.connect(to.host === 'other-name' ? addressOf('a') : to, options),
      }
      return { ...ports, streams: renamed }
    },
  })
  await net.until('it founds', () => a.joined !== undefined, 5000)
  assert.ok(a.kept.founder)
  assert.ok(a.log.some((line) => /^warn: a new cluster was founded.*but this broker/.test(line)))
})

test('a seed that is a client port is asked whether it is a cluster port', async () => {
  const net = new Net(44)
  const refusal = new EastGuardError('HELLO_REQUIRED', 'a sync is no hello')
  await net.world.process('other').ports.streams.listen(addressOf('other'), (connection) => {
    connection.handle({
      onData: () => connection.write([errorFrame(0, 0, refusal)]),
      onClose: () => {},
    })
  })
  const a = await net.start('a', ['other'])
  await net.run(1000)
  const told = a.process.ports.log.lines.find(({ fields }) => fields['seed'] === 'other:2922')
  assert.match(String(told?.fields['why']), /is that a cluster_port\?/)
})

/** A broker that joins on a disk on which nothing is written before `write` is called. */
async function slowJoiner(
  net: Net,
): Promise<{ readonly broker: Broker; readonly write: () => void; readonly sent: () => number }> {
  let write: (() => void) | undefined
  let sent = 0
  const broker = await net.start('b', ['a'], {
    slowDisk: () =>
      new Promise((resolve) => {
        write = resolve
      }),
    ports: (ports) => ({
      ...ports,
      datagrams: {
        bind: async (address, onPacket) => {
          const socket = await ports.datagrams.bind(address, onPacket)
          const send: typeof socket.send = (packet, to) => {
            sent++
            socket.send(packet, to)
          }
          return { address: socket.address, send, close: () => socket.close() }
        },
      },
    }),
  })
  await net.until('it is told the cluster', () => write !== undefined)
  return { broker, write: () => write?.(), sent: () => sent }
}

test('nothing goes out of a new broker before its cluster is written down', async () => {
  const net = new Net(37)
  const a = await net.start('a')
  const { broker: b, write, sent } = await slowJoiner(net)
  // Whoever asks it meanwhile goes on asking.
  const c = await net.start('c', ['b'])
  await net.run(60_000)
  assert.deepEqual(
    [sent(), b.joined, b.kept.cluster, c.joined],
    [0, undefined, undefined, undefined],
  )
  write()
  await net.run(0)
  // What came meanwhile is not answered now.
  assert.ok(sent() <= 3, `${sent()} packets at once`)
  await net.until('all are in', () => agreed([a, b, c]), 20_000)
})

test('a new broker that leaves before its cluster is written down says so afterwards', async () => {
  const net = new Net(42)
  const a = await net.start('a')
  const { broker: b, write, sent } = await slowJoiner(net)
  let left = false
  void b.members.leave().then(() => {
    left = true
  })
  await net.run(1000)
  assert.deepEqual([sent(), left], [0, false])
  write()
  await net.until('it has left', () => left, 5000)
  assert.ok(a.log.includes('info: a broker has left the cluster: b'))
})

test('a disk that fails while the cluster is written down ends the attempt to join', async () => {
  const net = new Net(38)
  const a = await net.start('a')
  const b = await net.start('b', ['a'], {
    slowDisk: () => Promise.reject(new Error('the disk is gone')),
  })
  await net.until('it fails', () => b.failed !== undefined, 5000)
  assert.match(String(b.failed), /the disk is gone/)
  assert.equal(b.kept.cluster, undefined)
  await net.run(10_000)
  assert.ok(!agreed([a, b]))
})

test('a sync that comes byte by byte is answered like any other', async () => {
  const net = new Net(41)
  await net.start('a')
  const stranger = net.world.process('stranger')
  const dialled = await dial(stranger, addressOf('a'), net)
  const request = writeSyncRequest({
    kind: 'sync',
    cluster: undefined,
    from: idOf('stranger'),
    boot: 1,
    nonce: 1,
    updates: [],
    hints: [],
  })
  for (const byte of syncFrame(FRAME.SYNC, request)) {
    dialled.connection.write([Uint8Array.of(byte)])
    await net.run(1)
  }
  await net.until('it is closed', () => dialled.closed, 1000)
  assert.ok(dialled.bytes > 100)
})

// The port itself.

function openPort(process: SimProcess, address: Address): Promise<ClusterPort> {
  const { ports } = process
  return openClusterPort(
    {
      ports,
      clusterKeys: undefined,
      keyRefusals: new KeyRefusals({ log: ports.log, metrics: simMetrics() }),
      syncTimeoutMs: 5000,
      onPacket: () => {},
      onSync: () => undefined,
    },
    address,
  )
}

test('links between brokers share the port with syncs', async () => {
  const net = new PeerNet(39)
  /** Of a machine: everything that listens goes through a cluster port. */
  const shared = (name: string) => ({
    streams: (real: Streams): Streams => ({
      connect: (to, options) => real.connect(to, options),
      listen: async (address, onConnection) => {
        const node = nodes.find((one) => one.name === name)
        assert.ok(node !== undefined)
        const port = await openPort(node.process, address)
        return port.streams.listen(address, onConnection)
      },
    }),
  })
  const nodes = ['a', 'b'].map((name) => new Node(net.world, name, shared(name)))
  const [a, b] = nodes as [Node, Node]
  for (const node of nodes) {
    const listener = await node.peers.listen({ host: node.name, port: PORT })
    assert.equal(listener.address.port, PORT)
    for (const other of nodes) node.addresses.set(other.id, { host: other.name, port: PORT })
  }
  a.peers.send(b.id, [numbered(1, 100_000), numbered(2)])
  b.send(a, 3)
  await net.until('all come', () => b.received.length === 2 && a.received.length === 1)
  net.world.network.resetConnections('a')
  await net.until('a lost link comes again', () => {
    a.send(b, 4)
    return b.numbersFrom(a).includes(4)
  })
  for (const node of nodes) {
    const stopped = node.peers.stop()
    await net.run(2000)
    await stopped
  }
})

test('TCP and UDP have one number, chosen again when UDP finds it taken', async () => {
  const machine = simWorld(40).process('a')
  for (let port = 20_000; port < 20_003; port++) {
    await machine.ports.datagrams.bind({ host: 'a', port }, () => {})
  }
  const { address } = await openPort(machine, { host: 'a', port: 0 })
  assert.ok(address !== undefined && address.port >= 20_003)
  await assert.rejects(openPort(machine, address), /in use/)
})
