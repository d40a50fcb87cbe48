// What is kept, for how long, how often a dial is tried, and how it all ends.

import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import type { Streams } from '../../../src/ports/streams.ts'
import { PEER_MESSAGE_BYTES_MAX } from '../../../src/wire/peer/frame.ts'
import { Net, type Node, numbered } from './support.ts'

const KIB = 1024

describe('what waits for a peer that takes nothing', () => {
  it('is bounded; more is dropped and counted, told once, and others get theirs', async () => {
    const net = new Net(1)
    const a = await net.start('a', { settings: { outboxBytesMax: 3 * KIB * KIB } })
    const b = await net.start('b')
    const c = await net.start('c')
    a.send(b, 0)
    a.send(c, 0)
    await net.run(100)
    b.process.pause()
    let taken = 0
    for (let number = 1; number <= 100; number++) {
      if (a.peers.send(b.id, [numbered(number, 100 * KIB)])) taken++
      assert.equal(a.send(c, number), true)
      await net.run(10)
    }
    assert.equal(c.numbersFrom(a).length, 101)
    // Besides what the network's window holds.
    const most = 3 * KIB * KIB + 256 * KIB
    assert.ok(taken * 100 * KIB <= most, `${taken} taken`)
    assert.ok(taken * 100 * KIB > most - 200 * KIB, `${taken} taken`)
    assert.equal(await a.metric('dropped_messages_total'), 100 - taken)
    assert.equal(a.log.filter((line) => line.includes('takes them too slowly')).length, 1)
    b.process.resume()
    await net.run(500)
    const expected = Array.from({ length: taken + 1 }, (_, number) => number)
    assert.deepEqual(b.numbersFrom(a), expected)
    assert.ok(a.peers.send(b.id, [numbered(500, 100 * KIB)]))
    await net.run(500)
    assert.equal(b.numbersFrom(a).at(-1), 500)
  })

  it('is counted as dropped when the link is lost', async () => {
    const net = new Net(2)
    const a = await net.start('a')
    const b = await net.start('b')
    a.send(b, 0)
    await net.run(100)
    b.process.pause()
    // The connection has enough after a MiB; what is sent then waits before it.
    for (let number = 1; number <= 10; number++) {
      a.peers.send(b.id, [numbered(number, 1000 * KIB)])
      await net.run(10)
    }
    net.world.network.resetConnections('a')
    await net.run(10)
    const dropped = await a.metric('dropped_messages_total')
    assert.ok(dropped >= 7 && dropped < 10, `${dropped} dropped`)
  })
})

describe('what is sent while a dial is under way', () => {
  it('is kept up to a bound, and goes first when the link is up', async () => {
    const net = new Net(3)
    const a = await net.start('a', { settings: { dialBytesMax: 10 * KIB } })
    const b = await net.start('b')
    net.world.network.change('a', 'b', { latencyMs: [50, 50] })
    const taken = [1, 2, 3, 4, 5].map((number) => a.peers.send(b.id, [numbered(number, 3 * KIB)]))
    assert.deepEqual(taken, [true, true, true, false, false])
    await net.until('the link is up', () => a.peers.linked(b.id))
    a.send(b, 6)
    await net.run(200)
    assert.deepEqual(b.numbersFrom(a), [1, 2, 3, 6])
  })

  it('goes with the dial when that fails: it would come late', async () => {
    const net = new Net(4)
    const a = await net.start('a')
    const b = await net.start('b')
    net.world.network.cut('a', 'b')
    assert.equal(a.send(b, 1), true)
    await net.run(1010)
    assert.equal(await a.metric('dropped_messages_total'), 1)
    assert.equal(a.send(b, 2), false)
    net.world.network.heal('a', 'b')
    await net.until('the link is up', () => a.peers.linked(b.id))
    a.send(b, 3)
    await net.run(10)
    assert.deepEqual(b.numbersFrom(a), [3])
  })

  it('is dropped while nobody knows the address', async () => {
    const net = new Net(5)
    const a = await net.start('a')
    const b = await net.start('b')
    a.addresses.set(b.id, undefined)
    assert.equal(a.send(b, 1), false)
    await net.run(10)
    a.addresses.set(b.id, { host: 'b', port: 2923 })
    await net.until('the link is up', () => a.peers.linked(b.id), 60)
  })
})

describe('a message that no frame can hold', () => {
  it('is dropped and told; those beside it arrive', async () => {
    const net = new Net(6)
    const a = await net.start('a')
    const b = await net.start('b')
    a.send(b, 0)
    await net.run(100)
    const messages = [numbered(1), numbered(2, PEER_MESSAGE_BYTES_MAX), numbered(3)]
    assert.equal(a.peers.send(b.id, messages), false)
    await net.run(1000)
    assert.deepEqual(b.numbersFrom(a), [0, 1, 3])
    assert.equal(await a.metric('dropped_messages_total'), 1)
    assert.ok(a.log.some((line) => line.includes('no frame can hold them')))
  })

  it('arrives when it is almost so large', async () => {
    const net = new Net(6)
    const a = await net.start('a')
    const b = await net.start('b')
    a.send(b, 0)
    await net.run(100)
    assert.ok(a.peers.send(b.id, [numbered(1, PEER_MESSAGE_BYTES_MAX - 100), numbered(2)]))
    await net.run(2000)
    assert.deepEqual(b.numbersFrom(a), [0, 1, 2])
  })
})

/** Notes when each call began and how many were under way. */
function watched(net: Net, calls: number[], most: { atOnce: number }): (real: Streams) => Streams {
  let underWay = 0
  return (real) => ({
    listen: (address, onConnection) => real.listen(address, onConnection),
    connect: async (address, options) => {
      calls.push(net.now())
      most.atOnce = Math.max(most.atOnce, ++underWay)
      try {
        return await real.connect(address, options)
      } finally {
        underWay--
      }
    },
  })
}

async function sendFor(net: Net, from: Node, to: Node, ms: number): Promise<void> {
  for (let passed = 0; passed < ms; passed += 5) {
    from.send(to, passed)
    await net.run(5)
  }
}

describe('dials', () => {
  it('that are refused come again after pauses that double, with jitter, up to two seconds', async () => {
    const net = new Net(7)
    const calls: number[] = []
    const most = { atOnce: 0 }
    const a = await net.start('a', { streams: watched(net, calls, most) })
    const b = await net.start('b')
    b.process.kill()
    await sendFor(net, a, b, 30_000)
    const pauses = calls.slice(1).map((at, i) => at - (calls[i] as number))
    assert.ok(pauses.length > 15 && pauses.length < 40, `${pauses.length} dials`)
    for (const [i, pause] of pauses.entries()) {
      const whole = Math.min(2000, 50 * 2 ** i)
      assert.ok(pause >= whole / 2 && pause <= whole + 10, `pause ${i} is ${pause} ms`)
    }
    assert.ok(new Set(pauses.slice(8).map(Math.round)).size > 5, 'they are not all alike')
    assert.equal(most.atOnce, 1)
  })

  it('that nobody answers are given up after a second, one at a time', async () => {
    const net = new Net(8)
    const calls: number[] = []
    const most = { atOnce: 0 }
    const a = await net.start('a', { streams: watched(net, calls, most) })
    const b = await net.start('b')
    net.world.network.cut('a', 'b')
    await sendFor(net, a, b, 30_000)
    assert.ok(calls.length >= 10 && calls.length < 20, `${calls.length} dials`)
    assert.equal(most.atOnce, 1)
  })

  it('end when the hello is not answered', async () => {
    const net = new Net(9)
    const a = await net.start('a')
    const b = await net.start('b')
    await net.world.network.streams('mute').listen({ host: 'mute', port: 1 }, (connection) => {
      connection.handle({ onData: () => {}, onClose: () => {} })
    })
    a.addresses.set(b.id, { host: 'mute', port: 1 })
    a.send(b, 1)
    await net.run(999)
    assert.equal(await a.metric('failed_dials_total'), 0)
    await net.run(2)
    assert.equal(await a.metric('failed_dials_total'), 1)
  })

  it('are not made for somebody to whom nothing is sent any more', async () => {
    const net = new Net(10)
    const calls: number[] = []
    const a = await net.start('a', { streams: watched(net, calls, { atOnce: 0 }) })
    const b = await net.start('b')
    a.send(b, 1)
    await net.run(100)
    b.process.kill()
    await net.run(60_000)
    // The link that was lost is tried once more.
    assert.equal(calls.length, 2)
    a.send(b, 2)
    assert.equal(calls.length, 3)
  })

  it('come at once again when a link is lost that has held, whatever pauses were before', async () => {
    const net = new Net(18)
    const a = await net.start('a')
    const b = await net.start('b')
    net.world.network.cut('a', 'b')
    await sendFor(net, a, b, 20_000)
    net.world.network.heal('a', 'b')
    await sendFor(net, a, b, 3000)
    assert.equal(a.peers.linked(b.id), true)
    await net.run(2000)
    net.world.network.resetConnections('b')
    await net.run(2)
    assert.equal(a.peers.linked(b.id), false)
    await net.until('the link is up', () => a.peers.linked(b.id), 60)
  })

  it('are paced also when a peer takes connections and drops them at once', async () => {
    const net = new Net(11)
    const calls: number[] = []
    const a = await net.start('a', { streams: watched(net, calls, { atOnce: 0 }) })
    const b = await net.start('b')
    for (let passed = 0; passed < 10_000; passed += 5) {
      a.send(b, passed)
      await net.run(5)
      if (a.peers.linked(b.id)) net.world.network.resetConnections('b')
    }
    assert.ok(calls.length < 20, `${calls.length} dials`)
  })
})

describe('stop', () => {
  it('sends what waits, then ends all connections, and hears nothing more', async () => {
    const net = new Net(12)
    const a = await net.start('a')
    const b = await net.start('b')
    const c = await net.start('c')
    b.send(a, 0)
    a.send(b, 0)
    await net.run(100)
    // Beyond what the connection takes at once.
    for (let number = 1; number <= 5; number++) {
      assert.ok(a.peers.send(b.id, [numbered(number, 500 * KIB)]))
    }
    a.send(c, 1)
    b.send(a, 1)
    let stopped = false
    const stopping = a.peers.stop().then(() => {
      stopped = true
    })
    assert.equal(a.peers.linked(b.id), false)
    assert.equal(a.send(b, 6), false)
    await net.run(900)
    await stopping
    assert.ok(stopped)
    assert.deepEqual(b.numbersFrom(a), [0, 1, 2, 3, 4, 5])
    assert.deepEqual(a.numbersFrom(b), [0])
    assert.deepEqual(c.received, [])
    await net.run(20_000)
    assert.equal(await a.metric('connections'), 0)
    assert.equal(await b.metric('connections'), 0)
    assert.deepEqual(a.events, ['b up'])
  })

  it('does not wait for a peer that takes nothing', async () => {
    const net = new Net(13)
    const a = await net.start('a')
    const b = await net.start('b')
    a.send(b, 0)
    b.send(a, 0)
    await net.run(100)
    b.process.pause()
    for (let number = 1; number <= 5; number++) a.peers.send(b.id, [numbered(number, 500 * KIB)])
    let stopped = false
    const stopping = a.peers.stop().then(() => {
      stopped = true
    })
    await net.run(900)
    assert.equal(stopped, false)
    await net.run(200)
    await stopping
    assert.equal(await a.metric('connections'), 0)
  })

  it('gives up dials and pauses, and may be called in each state and twice', async () => {
    for (const afterMs of [0, 0.2, 1, 500, 1010, 1020]) {
      const net = new Net(14)
      const a = await net.start('a')
      const b = await net.start('b')
      if (afterMs >= 500) net.world.network.cut('a', 'b')
      a.send(b, 0)
      await net.run(afterMs)
      const stopping = Promise.all([a.peers.stop(), a.peers.stop()])
      await net.run(1100)
      await stopping
      net.world.network.calm()
      const { received } = b
      const before = received.length
      await net.run(10_000)
      assert.equal(received.length, before)
      assert.equal(await b.metric('connections'), 0)
      assert.equal(await a.metric('links'), 0)
    }
  })

  it('closes its door', async () => {
    const net = new Net(15)
    const a = await net.start('a')
    const b = await net.start('b')
    await a.peers.stop()
    b.send(a, 1)
    await net.run(100)
    assert.equal(b.peers.linked(a.id), false)
    assert.equal(await b.metric('failed_dials_total'), 1)
  })

  it('may come from who receives', async () => {
    const net = new Net(16)
    const a = await net.start('a')
    const b = await net.start('b')
    let stopping: Promise<void> | undefined
    b.onReceive = () => {
      stopping = b.peers.stop()
    }
    a.send(b, 1)
    a.send(b, 2)
    await net.run(1200)
    assert.ok(stopping !== undefined)
    await stopping
    assert.deepEqual(b.numbersFrom(a), [1])
  })
})

describe('what a receiver throws', () => {
  it('is thrown on, and never taken for the fault of who sent', async () => {
    const net = new Net(17)
    const a = await net.start('a')
    const b = await net.start('b')
    b.onReceive = () => {
      throw new RangeError('a bug')
    }
    a.send(b, 1)
    await assert.rejects(net.run(100), /a bug/)
    assert.equal(await b.metric('bad_frames_total'), 0)
  })
})
