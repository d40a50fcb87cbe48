// What arrives: whole, in order, from whom it says, and together what was sent together.

import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import fc from 'fast-check'
import { Net, numbered } from './support.ts'

describe('links between brokers', () => {
  it('bring everything in order, each to the right one, while nothing goes wrong', async () => {
    const sends = fc.array(
      fc.record({
        from: fc.nat(2),
        to: fc.nat(1),
        sizes: fc.array(fc.oneof(fc.nat(40), fc.nat(9000)), { minLength: 1, maxLength: 5 }),
        pauseMs: fc.oneof(fc.constant(0), fc.nat(30)),
      }),
      { maxLength: 60 },
    )
    const holds = fc.asyncProperty(fc.nat(), sends, async (seed, plan) => {
      const net = new Net(seed)
      const nodes = [await net.start('a'), await net.start('b'), await net.start('c')]
      const expected = new Map<string, number[]>()
      for (const [i, { from, to, sizes, pauseMs }] of plan.entries()) {
        const sender = nodes[from]
        const receiver = nodes[(from + 1 + to) % 3]
        assert.ok(sender !== undefined && receiver !== undefined)
        const numbers = sizes.map((_, k) => i * 10 + k)
        const messages = sizes.map((bytes, k) => numbered(i * 10 + k, bytes))
        assert.ok(sender.peers.send(receiver.id, messages))
        const key = `${sender.name}${receiver.name}`
        expected.set(key, [...(expected.get(key) ?? []), ...numbers])
        await net.run(pauseMs)
      }
      await net.run(1000)
      for (const sender of nodes) {
        for (const receiver of nodes) {
          const numbers = expected.get(`${sender.name}${receiver.name}`) ?? []
          assert.deepEqual(receiver.numbersFrom(sender), numbers)
        }
      }
    })
    await fc.assert(holds, { numRuns: 40 })
  })

  it('carry what one turn sends in one frame', async () => {
    const net = new Net(1)
    const a = await net.start('a')
    const b = await net.start('b')
    a.peers.send(
      b.id,
      Array.from({ length: 256 }, (_, shard) => numbered(shard)),
    )
    await net.run(100)
    assert.deepEqual(b.together, [256])
  })

  it('are made when something is sent, and only that way', async () => {
    const net = new Net(1)
    const a = await net.start('a')
    const b = await net.start('b')
    await net.run(5000)
    assert.equal(await b.metric('connections'), 0)
    assert.ok(a.send(b, 1))
    assert.equal(a.peers.linked(b.id), false)
    await net.run(100)
    assert.equal(a.peers.linked(b.id), true)
    assert.equal(b.peers.linked(a.id), false)
    assert.deepEqual([a.events, b.events], [['b up'], []])
    assert.deepEqual([await a.metric('links'), await b.metric('connections')], [1, 1])
  })

  it('stay up for as long as nothing breaks, idle or not', async () => {
    const net = new Net(1)
    const a = await net.start('a')
    const b = await net.start('b')
    a.send(b, 1)
    await net.run(3_600_000)
    a.send(b, 2)
    await net.run(100)
    assert.deepEqual(b.numbersFrom(a), [1, 2])
    assert.deepEqual(a.events, ['b up'])
  })

  it('let a receiver answer at once', async () => {
    const net = new Net(1)
    const a = await net.start('a')
    const b = await net.start('b')
    b.onReceive = () => b.send(a, 7)
    a.send(b, 1)
    await net.run(100)
    assert.deepEqual(a.numbersFrom(b), [7])
  })
})
