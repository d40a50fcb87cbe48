// What waits, for how long, and what a peer can do to others.

import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import type { Streams } from '../../../src/ports/streams.ts'
import { DataNet, type DataNode, quantile } from './support.ts'

const KIB = 1024

describe('a peer that takes nothing', () => {
  it('holds no more memory than a connection may, and the others get theirs', async () => {
    const net = new DataNet(1)
    const a = await net.start('a')
    const b = await net.start('b')
    const c = await net.start('c')
    const deaf = [a.lead(b, { batchBytes: 20 * KIB }), a.lead(b, { bulk: true, batchBytes: 9000 })]
    const well = a.lead(c, { batchBytes: 20 * KIB })
    await net.run(100)
    b.process.pause()
    const before = deaf.reduce((sum, one) => sum + one.givenBytes, 0)
    for (let i = 0; i < 50; i++) {
      for (const one of [...deaf, well]) one.append(10)
      await net.run(20)
    }
    assert.equal(well.acked, 500)
    const given = deaf.reduce((sum, one) => sum + one.givenBytes, 0) - before
    // What is queued, a turn more, and the network's window.
    assert.ok(given <= (256 + 128 + 256) * KIB, `${given} bytes`)
    b.process.resume()
    await net.until('the deaf one has all', () => deaf.every((one) => one.acked === one.end))
  })

  it('drops words beyond a bound, and counts them', async () => {
    const net = new DataNet(2)
    const a = await net.start('a', { settings: { wordBytesMax: 10 * KIB } })
    const b = await net.start('b')
    const sender = a.lead(b, { batchBytes: 20 * KIB })
    await net.run(100)
    b.process.pause()
    sender.append(100)
    await net.run(100)
    const word = { kind: 'watermarks', of: [{ channel: 0, highWatermark: 1 }] } as const
    let taken = 0
    for (let i = 0; i < 1000; i++) if (a.links.send(b.id, word)) taken++
    assert.ok(taken > 100 && taken < 500, `${taken} taken`)
    assert.equal(await a.metric('dropped_messages_total'), 1000 - taken)
    b.process.resume()
    await net.run(1000)
    assert.equal(b.words.filter((kind) => kind === 'watermarks').length, taken)
  })

  it('is found by its dialer, who goes on elsewhere meanwhile', async () => {
    const net = new DataNet(3)
    const a = await net.start('a')
    const b = await net.start('b')
    const sender = a.lead(b)
    await net.run(100)
    assert.ok(net.world.network.halfOpen('b', 'a') > 0)
    sender.append(1)
    const found = await net.until('the loss is found', () => a.events.length > 1)
    assert.ok(found > 2000 && found <= 4100, `after ${found} ms`)
    await net.until('it arrives', () => sender.acked === 1, 200)
    assert.deepEqual(a.events, ['b out up 1', 'b out down 1', 'b out up 1'])
  })
})

describe('a large entry on a slow link', () => {
  it('is not taken for silence, whichever way it goes', async () => {
    const net = new DataNet(4)
    const a = await net.start('a')
    const b = await net.start('b')
    const sender = a.lead(b, { batchBytes: 2000 * KIB })
    await net.run(100)
    net.world.network.change('a', 'b', { bytesPerMs: 100 })
    sender.append(1)
    await net.until('it arrives', () => sender.acked === 1, 60_000)
    assert.deepEqual(a.events, ['b out up 1'])
  })
})

/** How long entries of a flow that has few take, in ms, beside others or alone. */
async function tookOf(
  beside: (a: DataNode, b: DataNode) => (() => void) | undefined,
): Promise<number> {
  const net = new DataNet(5)
  const a = await net.start('a')
  const b = await net.start('b')
  // A local network: a gigabyte and more in a second.
  net.world.network.change('a', 'b', { latencyMs: [0.5, 0.5], bytesPerMs: 1_250_000 })
  net.world.network.change('b', 'a', { latencyMs: [0.5, 0.5], bytesPerMs: 1_250_000 })
  const small = a.lead(b)
  const more = beside(a, b)
  await net.run(100)
  for (let i = 0; i < 30; i++) {
    more?.()
    small.append(1)
    await net.run(2)
  }
  await net.until('all are acknowledged', () => small.acked === 30)
  return quantile(small.tookMs, 0.99)
}

describe('a flow that has little to send', () => {
  for (const [what, bulk] of [
    ['plain', false],
    ['bulk', true],
  ] as const) {
    it(`waits no more than twice as long beside a ${what} one that has all one can send`, async () => {
      const alone = await tookOf(() => undefined)
      const beside = await tookOf((a, b) => {
        const large = a.lead(b, { bulk, batchBytes: 60 * KIB })
        return () => {
          const most = 20 - (large.end - large.acked)
          if (most > 0) large.append(most)
        }
      })
      assert.ok(beside <= 2 * alone, `p99 ${beside} ms beside, ${alone} ms alone`)
    })
  }
})

describe('a peer that is not there', () => {
  it('is dialled again after pauses that grow, however many flows want it', async () => {
    const net = new DataNet(6)
    const calls: number[] = []
    const watched = (real: Streams): Streams => ({
      listen: (address, onConnection) => real.listen(address, onConnection),
      connect: (address, options) => {
        calls.push(net.now())
        return real.connect(address, options)
      },
    })
    const a = await net.start('a', { streams: watched })
    const b = await net.start('b')
    const senders = Array.from({ length: 50 }, () => a.lead(b))
    await net.run(100)
    b.process.kill()
    for (let i = 0; i < 300; i++) {
      for (const one of senders) one.append(1)
      await net.run(100)
    }
    assert.ok(calls.length > 15 && calls.length < 40, `${calls.length} dials in 30 s`)
    assert.equal(a.log.filter((line) => line.startsWith('warn')).length, 2, a.log.join('\n'))
    const again = await net.start('b', { bootCount: 2 })
    // It comes up by itself, and what was appended meanwhile arrives.
    await net.until('the link is up', () => a.events.at(-1) === 'b out up 2', 2500)
    assert.equal(again.events.at(-1), 'a in up 1')
  })

  it('that comes and goes all the time gets few connections, and none is left over', async () => {
    const net = new DataNet(7)
    const a = await net.start('a')
    const b = await net.start('b')
    const sender = a.lead(b)
    for (let i = 0; i < 400; i++) {
      sender.append(1)
      net.world.network.resetConnections('b')
      await net.run(50)
    }
    const ups = a.events.filter((event) => event.startsWith('b out up')).length
    assert.ok(ups < 40, `${ups} links in 20 s`)
    await net.until('all are acknowledged', () => sender.acked === 400)
    assert.deepEqual([await a.metric('links'), await b.metric('connections')], [1, 1])
  })
})
