// What goes wrong between machines: messages may be lost then, but never come twice, late or mixed, and links come back.

import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import fc from 'fast-check'
import { Net, type Node, numbered } from './support.ts'

function increasing(numbers: readonly number[]): boolean {
  return numbers.every((number, i) => i === 0 || number > (numbers[i - 1] as number))
}

/** Sends a number every `everyMs` until `ms` have passed. */
async function keepSending(
  net: Net,
  from: Node,
  to: Node,
  ms: number,
  numbers: { next: number },
  everyMs: number = 20,
): Promise<void> {
  for (let passed = 0; passed < ms; passed += everyMs) {
    from.send(to, numbers.next++)
    await net.run(everyMs)
  }
}

describe('a link that is reset', () => {
  for (const [what, from, to] of [
    ['on the way out', 'a', 'b'],
    ['on the way back', 'b', 'a'],
  ] as const) {
    it(`${what}, behind any byte, comes up again; nothing comes twice or in another order`, async () => {
      // More than a hello and a frame are long.
      for (let bytes = 1; bytes <= 150; bytes++) {
        const net = new Net(bytes)
        const a = await net.start('a')
        const b = await net.start('b')
        const numbers = { next: 0 }
        const { resets } = net.world.network.counts
        net.world.network.resetAfter(from, to, bytes)
        await keepSending(net, a, b, 300, numbers)
        if (to === 'b') assert.ok(net.world.network.counts.resets > resets)
        await net.until('the link is up', () => a.peers.linked(b.id))
        const last = numbers.next
        await keepSending(net, a, b, 100, numbers)
        const received = b.numbersFrom(a)
        assert.ok(increasing(received), received.join(' '))
        for (let number = last; number < numbers.next; number++) {
          assert.ok(received.includes(number), `${number} of ${last} to ${numbers.next - 1}`)
        }
      }
    })
  }

  it('tells that it went down and up', async () => {
    const net = new Net(5)
    const a = await net.start('a')
    const b = await net.start('b')
    a.send(b, 1)
    await net.run(100)
    net.world.network.resetConnections('b')
    await net.run(2)
    assert.equal(a.peers.linked(b.id), false)
    await net.until('the link is up', () => a.peers.linked(b.id), 100)
    assert.deepEqual(a.events, ['b up', 'b down', 'b up'])
    assert.equal(await a.metric('lost_links_total'), 1)
  })
})

describe('a half-open connection', () => {
  it('is found by its dialer, who dials again', async () => {
    const net = new Net(7)
    const a = await net.start('a')
    const b = await net.start('b')
    a.send(b, 1)
    await net.run(100)
    assert.equal(net.world.network.halfOpen('b', 'a'), 1)
    const found = await net.until('the loss is found', () => !a.peers.linked(b.id))
    assert.ok(found > 2000 && found <= 4100, `after ${found} ms`)
    await net.until('the link is up', () => a.peers.linked(b.id), 100)
    a.send(b, 2)
    await net.run(100)
    assert.deepEqual(b.numbersFrom(a), [1, 2])
  })

  it('is found although its dialer goes on sending', async () => {
    const net = new Net(8)
    const a = await net.start('a')
    const b = await net.start('b')
    a.send(b, 0)
    await net.run(100)
    net.world.network.halfOpen('b', 'a')
    await keepSending(net, a, b, 4200, { next: 1 }, 100)
    assert.deepEqual(a.events.slice(0, 2), ['b up', 'b down'])
  })

  it('is closed by the side that only listens, when not even pings come', async () => {
    const net = new Net(9)
    const a = await net.start('a')
    const b = await net.start('b')
    a.send(b, 1)
    await net.run(100)
    a.process.powerOff({ keepUnsynced: true })
    await net.run(3000)
    assert.equal(await b.metric('connections'), 1)
    await net.run(3000)
    assert.equal(await b.metric('connections'), 0)
  })
})

describe('a peer that does not answer', () => {
  it('delays nobody else, nor who sends to it', async () => {
    const net = new Net(10)
    const a = await net.start('a')
    const b = await net.start('b')
    const c = await net.start('c')
    net.world.network.cut('a', 'b')
    let number = 0
    for (; number < 200; number++) {
      a.send(b, number)
      assert.equal(a.send(c, number), true)
      await net.run(20)
      assert.equal(c.numbersFrom(a).at(-1), number)
    }
    assert.deepEqual(a.events, ['c up'])
    assert.deepEqual(b.received, [])
    net.world.network.heal('a', 'b')
    while (!a.peers.linked(b.id)) {
      a.send(b, number)
      await net.run(20)
      assert.ok(number++ < 500)
    }
    a.send(b, number)
    await net.run(20)
    assert.equal(b.numbersFrom(a).at(-1), number)
  })

  it('and one that refuses connections are told once in the log, until they are there again', async () => {
    const net = new Net(11)
    const a = await net.start('a')
    const b = await net.start('b')
    b.process.kill()
    await keepSending(net, a, b, 10_000, { next: 0 })
    const told = (): number => a.log.filter((line) => line.startsWith('warn')).length
    assert.equal(told(), 1)
    assert.ok((await a.metric('failed_dials_total')) > 3)
    assert.ok((await a.metric('dropped_messages_total')) > 400)
  })
})

describe('a slow link', () => {
  it('is not taken for a dead one while bytes arrive', async () => {
    const net = new Net(12)
    const a = await net.start('a')
    const b = await net.start('b')
    a.send(b, 0)
    await net.run(100)
    net.world.network.change('a', 'b', { bytesPerMs: 20 })
    // Twenty seconds' worth of bytes, with every ping behind them.
    const bytes = 40_000
    for (let number = 1; number <= 10; number++) {
      assert.ok(a.peers.send(b.id, [numbered(number, bytes)]))
    }
    await net.run(25_000)
    assert.deepEqual(a.events, ['b up'])
    assert.equal(b.numbersFrom(a).at(-1), 10)
  })
})

describe('a process that was paused', () => {
  it('does not take its own pause for its peer’s', async () => {
    const net = new Net(13)
    const a = await net.start('a')
    const b = await net.start('b')
    a.send(b, 1)
    await net.run(1500)
    a.process.pause()
    await net.run(3700)
    a.process.resume({ timersFirst: true })
    await net.run(2000)
    assert.deepEqual(a.events, ['b up'])
  })
})

describe('a broker that starts anew', () => {
  it('is linked to at once when it dials, whatever pause was under way', async () => {
    const net = new Net(14)
    const a = await net.start('a')
    const b = await net.start('b')
    b.process.kill()
    // Long enough for the longest pauses.
    await keepSending(net, a, b, 20_000, { next: 0 })
    const again = await net.start('b', { bootCount: 2 })
    again.send(a, 1)
    const took = await net.until('the link is up', () => a.peers.linked(b.id))
    assert.ok(took < 10, `${took} ms`)
  })

  it('is linked to anew at once, although nobody has told that its machine went off', async () => {
    const net = new Net(15)
    const a = await net.start('a')
    const b = await net.start('b')
    a.send(b, 1)
    await net.run(100)
    b.process.powerOff({ keepUnsynced: true })
    await net.run(500)
    const again = await net.start('b', { bootCount: 2 })
    again.send(a, 1)
    await net.run(10)
    a.send(again, 2)
    await net.run(10)
    assert.deepEqual(again.numbersFrom(a), [2])
    assert.deepEqual(a.events, ['b up', 'b down', 'b up'])
  })
})

describe('whatever happens between three brokers', () => {
  const fault = fc.record({
    kind: fc.constantFrom('cut', 'cutOneWay', 'reset', 'resetAfter', 'halfOpen', 'pause', 'slow'),
    who: fc.nat(2),
    other: fc.nat(1),
    bytes: fc.integer({ min: 1, max: 400 }),
    forMs: fc.oneof(fc.nat(300), fc.nat(8000)),
  })

  it('messages come once and in order, and everything gets through again afterwards', async () => {
    const holds = fc.asyncProperty(
      fc.nat(),
      fc.array(fault, { minLength: 1, maxLength: 12 }),
      async (seed, faults) => {
        const net = new Net(seed)
        const nodes = [await net.start('a'), await net.start('b'), await net.start('c')]
        const { network } = net.world
        let number = 0
        const sendAll = (): void => {
          for (const from of nodes) for (const to of nodes) if (from !== to) from.send(to, number)
          number++
        }
        for (const { kind, who, other, bytes, forMs } of faults) {
          const one = nodes[who] as Node
          const two = nodes[(who + 1 + other) % 3] as Node
          if (kind === 'cut' || kind === 'cutOneWay') network.cut(one.name, two.name)
          if (kind === 'cut') network.cut(two.name, one.name)
          if (kind === 'reset') network.resetConnections(one.name)
          if (kind === 'resetAfter') network.resetAfter(one.name, two.name, bytes)
          if (kind === 'halfOpen') network.halfOpen(one.name, two.name)
          if (kind === 'slow') network.change(one.name, two.name, { bytesPerMs: 2 + bytes / 40 })
          if (kind === 'pause') one.process.pause()
          for (let passed = 0; passed < forMs; passed += 50) {
            sendAll()
            await net.run(50)
          }
          if (kind === 'pause') one.process.resume({ timersFirst: bytes % 2 === 0 })
          if (bytes % 3 === 0) network.calm()
        }
        network.calm()
        // A half-open link is found in four seconds; a dial to a peer that did not answer in one, after two more.
        for (let passed = 0; passed < 12_000; passed += 50) {
          sendAll()
          await net.run(50)
        }
        const last = number
        for (let i = 0; i < 20; i++) {
          sendAll()
          await net.run(50)
        }
        const expected = Array.from({ length: 20 }, (_, i) => last + i)
        for (const from of nodes) {
          for (const to of nodes) {
            if (from === to) continue
            const received = to.numbersFrom(from)
            assert.ok(increasing(received), `${from.name} to ${to.name}: ${received.join(' ')}`)
            assert.deepEqual(received.slice(-20), expected, `${from.name} to ${to.name}`)
          }
        }
        for (const node of nodes) assert.equal(await node.metric('bad_frames_total'), 0)
      },
    )
    await fc.assert(holds, { numRuns: 20 })
  })
})
