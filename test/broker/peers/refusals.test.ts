// Who is not let in, and bytes that no broker writes: nobody else is disturbed by either.

import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import fc from 'fast-check'
import { clusterId, nodeId } from '../../../src/model/ids.ts'
import type { Connection } from '../../../src/ports/streams.ts'
import { messageFrames, pingFrame, pongFrame } from '../../../src/wire/peer/frame.ts'
import {
  type Hello,
  helloFrame,
  PEER_VERSION,
  refusalFrame,
  welcomeFrame,
} from '../../../src/wire/peer/hello.ts'
import { CLUSTER, idOf, Memory, Net, type Node, numbered, startsTo } from './support.ts'

/** Somebody who speaks to a broker byte by byte. */
class Stranger {
  readonly connection: Connection
  readonly got: Uint8Array[] = []
  closed = false

  private constructor(connection: Connection) {
    this.connection = connection
    connection.handle({
      onData: (chunk) => this.got.push(chunk.slice()),
      onClose: () => {
        this.closed = true
      },
    })
  }

  static async dial(net: Net, to: Node): Promise<Stranger> {
    const dialled = net.world.network
      .streams('stranger')
      .connect({ host: to.name, port: 2923 }, { timeoutMs: 1000 })
    await net.run(5)
    return new Stranger(await dialled)
  }

  /** As the broker `from`. */
  static async greeted(net: Net, from: string, to: Node, bootCount: number = 1): Promise<Stranger> {
    const stranger = await Stranger.dial(net, to)
    stranger.send(helloFrame(helloOf(from, to, { starts: startsTo(bootCount) })))
    await net.run(50)
    assert.equal(stranger.closed, false)
    return stranger
  }

  send(...bytes: Uint8Array[]): void {
    this.connection.write(bytes)
  }

  get text(): string {
    return Buffer.concat(this.got).toString('latin1')
  }
}

function helloOf(from: string, to: Node, more: Partial<Hello> = {}): Hello {
  return {
    version: PEER_VERSION,
    clusterId: CLUSTER,
    nodeId: idOf(from),
    starts: startsTo(1),
    to: to.id,
    ...more,
  }
}

function messageFrame(number: number): Uint8Array {
  const [frame] = messageFrames([numbered(number)]).frames
  assert.ok(frame !== undefined)
  return frame
}

describe('a broker refuses, and says why', () => {
  const cases: Readonly<Record<string, (to: Node) => Partial<Hello>>> = {
    'it belongs to cluster dddd': () => ({ clusterId: clusterId('d'.repeat(32)) }),
    'own node id': (to) => ({ nodeId: to.id }),
    'is meant, this is': () => ({ to: nodeId('e'.repeat(32)) }),
    'version 9 is spoken': () => ({ version: 9 }),
  }
  for (const [why, wrong] of Object.entries(cases)) {
    it(`who says wrongly: ${why}`, async () => {
      const net = new Net(1)
      const b = await net.start('b')
      const stranger = await Stranger.dial(net, b)
      stranger.send(helloFrame(helloOf('a', b, wrong(b))), messageFrame(1))
      await net.run(50)
      assert.ok(stranger.text.includes(why), stranger.text)
      assert.equal(stranger.closed, true)
      assert.deepEqual(b.received, [])
      assert.equal(await b.metric('refusals_total'), 1)
      assert.equal(await b.metric('connections'), 0)
    })
  }

  it('a start before one that it has met, and takes the same and later ones', async () => {
    const net = new Net(1)
    const b = await net.start('b')
    await Stranger.greeted(net, 'a', b, 5)
    const old = await Stranger.dial(net, b)
    old.send(helloFrame(helloOf('a', b, { starts: startsTo(4) })))
    await net.run(50)
    assert.match(old.text, /after its start 4, or instead of it, another was met/)
    assert.equal(old.closed, true)
    await Stranger.greeted(net, 'a', b, 5)
    await Stranger.greeted(net, 'a', b, 6)
  })

  it('also when only its own link has met the later one', async () => {
    const net = new Net(1)
    const a = await net.start('a', { bootCount: 3 })
    const b = await net.start('b')
    b.send(a, 1)
    await net.run(100)
    const old = await Stranger.dial(net, b)
    old.send(helloFrame(helloOf('a', b, { starts: startsTo(2) })))
    await net.run(50)
    assert.match(old.text, /it is an older copy/)
  })

  it('more connections than it keeps', async () => {
    const net = new Net(1)
    const b = await net.start('b', { settings: { connectionsMax: 2 } })
    await Stranger.greeted(net, 'x', b)
    const second = await Stranger.greeted(net, 'y', b)
    const third = await Stranger.dial(net, b)
    await net.run(10)
    assert.equal(third.closed, true)
    second.connection.destroy()
    await net.run(10)
    await Stranger.greeted(net, 'z', b)
  })
})

describe('a dialer that is refused', () => {
  it('says why in its log, and goes on trying with pauses', async () => {
    const net = new Net(2)
    const a = await net.start('a', { clusterId: clusterId('d'.repeat(32)) })
    const b = await net.start('b')
    for (let number = 0; number < 100; number++) {
      a.send(b, number)
      await net.run(100)
    }
    assert.deepEqual(b.received, [])
    assert.ok(a.log.some((line) => line.includes('it refuses: it belongs to cluster dddd')))
    const refusals = await b.metric('refusals_total')
    assert.ok(refusals >= 8 && refusals < 20, `${refusals} refusals in 10 s`)
    const told = (): number => b.lines('a broker is refused').length
    assert.equal(told(), 1)
    for (let number = 0; number < 120; number++) {
      a.send(b, number)
      await net.run(1000)
    }
    assert.equal(told(), 3, 'once a minute')
    assert.deepEqual(
      new Set(b.lines('a broker is refused').map(({ port }) => port)),
      new Set(['cluster']),
    )
  })

  it('does not speak to another node that lives at the address', async () => {
    const net = new Net(3)
    const a = await net.start('a')
    const b = await net.start('b')
    const c = await net.start('c')
    c.send(b, 1)
    await net.run(100)
    // b's old address is c's now; c has a link from a already.
    a.send(c, 1)
    await net.run(100)
    a.addresses.set(b.id, { host: 'c', port: 2923 })
    a.send(b, 2)
    await net.run(100)
    a.send(c, 3)
    await net.run(100)
    assert.deepEqual(c.numbersFrom(a), [1, 3])
    assert.deepEqual(a.events, ['c up'])
    a.addresses.set(b.id, { host: 'b', port: 2923 })
    a.send(b, 4)
    await net.until('the link is up', () => a.peers.linked(b.id))
  })
})

describe('a newer connection of a node', () => {
  it('replaces the older: nothing more is taken from that', async () => {
    const net = new Net(4)
    const b = await net.start('b')
    const older = await Stranger.greeted(net, 'a', b)
    older.send(messageFrame(1))
    await net.run(10)
    const newer = await Stranger.dial(net, b)
    newer.send(helloFrame(helloOf('a', b)))
    await net.run(2)
    older.send(messageFrame(2))
    newer.send(messageFrame(3))
    await net.run(10)
    assert.deepEqual(
      b.received.map(({ number }) => number),
      [1, 3],
    )
    assert.deepEqual([older.closed, newer.closed], [true, false])
    assert.equal(await b.metric('connections'), 1)
    // The older one's end, which comes late, must not make it forget the newer.
    const newest = await Stranger.dial(net, b)
    newest.send(helloFrame(helloOf('a', b)))
    await net.run(10)
    assert.deepEqual([newer.closed, newest.closed], [true, false])
  })
})

describe('bytes that no broker writes', () => {
  it('end the connection that brought them, whenever they come, and disturb no other', async () => {
    const net = new Net(5)
    const a = await net.start('a')
    const b = await net.start('b')
    a.send(b, 0)
    await net.run(100)
    let number = 1
    const flipped = fc.record({ at: fc.nat(), bit: fc.nat(7) })
    const garbage = fc.oneof(
      fc.record({ greeted: fc.boolean(), bytes: fc.uint8Array({ minLength: 20, maxLength: 200 }) }),
      flipped.map(({ at, bit }) => {
        const bytes = messageFrame(77).slice()
        // A length that is flipped may announce more than comes: that is not garbage yet.
        const place = 4 + (at % (bytes.length - 4))
        bytes[place] = (bytes[place] as number) ^ (1 << bit)
        return { greeted: true, bytes }
      }),
    )
    const holds = fc.asyncProperty(garbage, async ({ greeted, bytes }) => {
      const bad = await b.metric('bad_frames_total')
      const stranger = greeted ? await Stranger.greeted(net, 'x', b) : await Stranger.dial(net, b)
      stranger.send(bytes)
      // Where random bytes announce more than they bring, silence ends it.
      await net.run(6000)
      assert.equal(stranger.closed, true)
      assert.ok((await b.metric('bad_frames_total')) <= bad + 1)
      a.send(b, number++)
      await net.run(10)
      assert.deepEqual(b.numbersFrom(a), [...Array(number).keys()])
    })
    await fc.assert(holds, { numRuns: 100 })
    assert.deepEqual(a.events, ['b up'])
    assert.ok((await b.metric('bad_frames_total')) > 50)
    assert.equal(await b.metric('connections'), 1)
  })

  const welcome = welcomeFrame({
    version: PEER_VERSION,
    clusterId: CLUSTER,
    nodeId: idOf('x'),
    starts: startsTo(1),
  })
  const misplaced: Readonly<Record<string, readonly Uint8Array[]>> = {
    'a ping came before a hello': [pingFrame(1)],
    'messages came before a hello': [messageFrame(1)],
    'a welcome came before a hello': [welcome],
  }
  for (const [why, frames] of Object.entries(misplaced)) {
    it(`are told in the log: ${why}`, async () => {
      const net = new Net(6)
      const b = await net.start('b')
      const stranger = await Stranger.dial(net, b)
      stranger.send(...frames)
      await net.run(50)
      assert.equal(stranger.closed, true)
      assert.ok(
        b.log.some((line) => line.endsWith(why)),
        b.log.join('\n'),
      )
    })
  }

  it('are told once a minute of each address, with how often there were more', async () => {
    const net = new Net(6)
    const b = await net.start('b')
    for (let i = 0; i < 150; i++) {
      const stranger = await Stranger.dial(net, b)
      stranger.send(i % 2 === 0 ? pingFrame(1) : new Uint8Array(40).fill(7))
      await net.run(1000)
      assert.equal(stranger.closed, true)
    }
    const told = b.lines('brought bytes that no broker writes')
    assert.deepEqual(
      told.map(({ port, alsoSinceLastLine }) => [port, alsoSinceLastLine]),
      [
        ['cluster', undefined],
        ['cluster', 59],
        ['cluster', 59],
      ],
    )
    assert.equal(await b.metric('bad_frames_total'), 150)
  })

  it('are what does not wait for the welcome', async () => {
    const net = new Net(6)
    const memory = new Memory()
    memory.keep = () => new Promise(() => undefined)
    const b = await net.start('b', { memory })
    const stranger = await Stranger.dial(net, b)
    stranger.send(helloFrame(helloOf('x', b)))
    await net.run(50)
    stranger.send(pingFrame(1))
    await net.run(50)
    assert.equal(stranger.closed, true)
    assert.ok(b.log.some((line) => line.endsWith('a ping came before the welcome')))
  })

  it('are frames in the wrong place, too, from one that was greeted', async () => {
    const net = new Net(6)
    const b = await net.start('b')
    for (const frame of [helloFrame(helloOf('x', b)), welcome, pongFrame(1)]) {
      const stranger = await Stranger.greeted(net, 'x', b)
      stranger.send(frame)
      await net.run(50)
      assert.equal(stranger.closed, true)
    }
    assert.equal(await b.metric('bad_frames_total'), 3)
  })

  it('end a link when they come from whom it dialled', async () => {
    const refusal = refusalFrame({ reason: 'cluster', text: 'no' })
    for (const [answers, why] of [
      [[new Uint8Array(40).fill(7)], 'is announced'],
      [[pongFrame(1)], 'a pong came instead of a welcome'],
      [[welcome], 'answers there'],
      [[refusal], 'it refuses: no (cluster)'],
    ] as const) {
      const net = new Net(7)
      const a = await net.start('a')
      const b = await net.start('b')
      const c = await net.start('c')
      await net.world.network.streams('fake').listen({ host: 'fake', port: 1 }, (connection) => {
        connection.handle({ onData: () => connection.write(answers), onClose: () => {} })
      })
      a.addresses.set(b.id, { host: 'fake', port: 1 })
      a.send(c, 1)
      a.send(b, 1)
      await net.run(100)
      assert.ok(
        a.log.some((line) => line.includes(why)),
        a.log.join('\n'),
      )
      assert.deepEqual(a.events, ['c up'])
    }
  })

  it('are nothing that a link listens to once it was refused, in the same chunk or not', async () => {
    for (let seed = 1; seed <= 20; seed++) {
      const net = new Net(seed)
      const a = await net.start('a')
      const b = await net.start('b')
      const refusal = refusalFrame({ reason: 'cluster', text: 'no' })
      const welcomeOfB = welcomeFrame({
        version: PEER_VERSION,
        clusterId: CLUSTER,
        nodeId: b.id,
        starts: startsTo(1),
      })
      await net.world.network.streams('fake').listen({ host: 'fake', port: 1 }, (connection) => {
        const answer = Buffer.concat([refusal, welcomeOfB])
        connection.handle({ onData: () => connection.write([answer]), onClose: () => {} })
      })
      a.addresses.set(b.id, { host: 'fake', port: 1 })
      a.send(b, 1)
      await net.run(100)
      assert.deepEqual(a.events, [])
    }
  })

  it('are what comes on a link that is up and is no pong', async () => {
    const net = new Net(8)
    const a = await net.start('a')
    const b = await net.start('b')
    const welcomeOfB = welcomeFrame({
      version: PEER_VERSION,
      clusterId: CLUSTER,
      nodeId: b.id,
      starts: startsTo(1),
    })
    await net.world.network.streams('fake').listen({ host: 'fake', port: 1 }, (connection) => {
      connection.handle({ onData: () => connection.write([welcomeOfB]), onClose: () => {} })
    })
    a.addresses.set(b.id, { host: 'fake', port: 1 })
    a.send(b, 1)
    await net.until('the link is lost', () => a.events.includes('b down'), 2000)
    assert.equal(await a.metric('bad_frames_total'), 1)
  })
})

describe('a connection on which nobody says who it is', () => {
  it('is closed after a while, however many bytes trickle in', async () => {
    const net = new Net(9)
    const b = await net.start('b')
    const stranger = await Stranger.dial(net, b)
    const hello = helloFrame(helloOf('a', b))
    for (let at = 0; at < 30 && !stranger.closed; at++) {
      stranger.send(hello.subarray(at, at + 1))
      await net.run(100)
    }
    assert.equal(stranger.closed, true)
  })
})

describe('a peer that does not take its pongs', () => {
  it('is closed before they fill the memory', async () => {
    const net = new Net(10)
    const b = await net.start('b')
    const stranger = await Stranger.greeted(net, 'a', b)
    stranger.connection.pause()
    const pings = Buffer.concat(Array.from({ length: 1000 }, (_, i) => pingFrame(i)))
    let sent = 0
    while (!stranger.closed && sent < 1000) {
      stranger.send(pings)
      await net.run(5)
      if ((await b.metric('bad_frames_total')) > 0) break
      sent++
    }
    // A window of the network's and what may wait.
    assert.ok(sent * pings.length < 500_000, `${sent * pings.length} bytes of pings`)
    assert.ok(b.log.some((line) => line.endsWith('it does not take its pongs')))
  })
})
