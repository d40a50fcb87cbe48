// What arrives while nothing goes wrong, and whenever something does: every entry once, each the next of its channel.

import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import fc from 'fast-check'
import { DataNet, type DataNode, type Sender } from './support.ts'

async function allArrive(net: DataNet, withinMs: number = 20_000): Promise<void> {
  for (const node of net.nodes) {
    for (const sender of node.senders) {
      await net.until(
        `${node.name} to ${sender.to.name} ${sender.channel}: all of ${sender.end} are acknowledged`,
        () => sender.acked === sender.end,
        withinMs,
      )
      assert.equal(sender.to.haveOf(sender, node), sender.end)
    }
  }
}

describe('links on the data port', () => {
  it('bring all entries of all channels, large and small, in order', async () => {
    const appends = fc.array(
      fc.record({
        from: fc.nat(2),
        to: fc.nat(1),
        channel: fc.nat(2),
        entries: fc.integer({ min: 1, max: 30 }),
        pauseMs: fc.oneof(fc.constant(0), fc.nat(30)),
      }),
      { maxLength: 40 },
    )
    const holds = fc.asyncProperty(fc.nat(), appends, async (seed, plan) => {
      const net = new DataNet(seed)
      const nodes = [await net.start('a'), await net.start('b'), await net.start('c')]
      const senders = new Map<string, Sender>()
      for (const { from, to, channel, entries, pauseMs } of plan) {
        const leader = nodes[from] as DataNode
        const follower = nodes[(from + 1 + to) % 3] as DataNode
        const key = `${from} ${to} ${channel}`
        const batchBytes = (n: number): number => (n % 10 === 9 ? 70_000 : 7 * n)
        const sender =
          senders.get(key) ?? leader.lead(follower, { bulk: channel === 2, batchBytes })
        senders.set(key, sender)
        sender.append(entries)
        await net.run(pauseMs)
      }
      await allArrive(net)
    })
    await fc.assert(holds, { numRuns: 20 })
  })

  it('are made when a flow is, and told to both sides with the starts', async () => {
    const net = new DataNet(1)
    const a = await net.start('a', { bootCount: 3 })
    const b = await net.start('b', { bootCount: 5 })
    await net.run(1000)
    assert.equal(await b.metric('connections'), 0)
    a.lead(b)
    await net.run(100)
    assert.deepEqual([a.events, b.events], [['b out up 5'], ['a in up 3']])
    assert.deepEqual([await a.metric('links'), await b.metric('connections')], [1, 1])
  })

  it('are dialled when a word is to be sent, which its sender has to repeat', async () => {
    const net = new DataNet(1)
    const a = await net.start('a')
    const b = await net.start('b')
    const open = { kind: 'watermarks', of: [] } as const
    assert.equal(a.links.send(b.id, open), false)
    assert.equal(await a.metric('dropped_messages_total'), 1)
    await net.run(100)
    assert.equal(a.links.send(b.id, open), true)
    await net.run(100)
    assert.deepEqual(b.words, ['watermarks'])
    // The peer has not dialled: there is nothing on which an answer could go.
    assert.equal(a.links.send(b.id, { kind: 'acks', of: [] }), false)
  })

  it('stay up for as long as nothing breaks, idle or not', async () => {
    const net = new DataNet(1)
    const a = await net.start('a')
    const b = await net.start('b')
    const sender = a.lead(b)
    await net.run(3_600_000)
    sender.append(3)
    await allArrive(net, 100)
    assert.deepEqual([a.events.length, b.events.length], [1, 1])
  })

  it('ask a closed flow no more, and give up dialling when the last one is closed', async () => {
    const net = new DataNet(1)
    const a = await net.start('a')
    const b = await net.start('b')
    const [one, two] = [a.lead(b), a.lead(b)]
    await net.run(100)
    one.append(5)
    one.close()
    one.close()
    two.append(5)
    await net.run(100)
    assert.deepEqual([one.acked, two.acked], [0, 5])
    two.close()
    b.process.kill()
    await net.run(10_000)
    const dials = await a.metric('failed_dials_total')
    await net.run(60_000)
    assert.equal(await a.metric('failed_dials_total'), dials)
  })

  it('carry an entry as large as any may be', async () => {
    const net = new DataNet(2)
    const a = await net.start('a')
    const b = await net.start('b')
    a.lead(b, { batchBytes: 64 * 1024 * 1024 - 61 }).append(1)
    a.lead(b).append(10)
    await allArrive(net)
    assert.equal(await b.metric('bad_frames_total'), 0)
  })
})

describe('a connection that is reset', () => {
  for (const [what, from, to] of [
    ['on the way out', 'a', 'b'],
    ['on the way back', 'b', 'a'],
  ] as const) {
    it(`${what}, behind any byte, comes up again, and entries go on where they were`, async () => {
      // More than a hello, the words and some frames are long.
      for (let bytes = 1; bytes <= 700; bytes += bytes < 150 ? 1 : 7) {
        const net = new DataNet(bytes)
        const a = await net.start('a')
        const b = await net.start('b')
        const senders = [a.lead(b), a.lead(b, { batchBytes: 10 })]
        net.world.network.resetAfter(from, to, bytes)
        for (let i = 0; i < 10; i++) {
          for (const sender of senders) sender.append(1)
          await net.run(10)
        }
        await allArrive(net)
      }
    })
  }
})

describe('whatever happens between three brokers', () => {
  const fault = fc.record({
    kind: fc.constantFrom('cut', 'cutOneWay', 'reset', 'resetAfter', 'halfOpen', 'pause', 'slow'),
    who: fc.nat(2),
    other: fc.nat(1),
    bytes: fc.integer({ min: 1, max: 3000 }),
    forMs: fc.oneof(fc.nat(300), fc.nat(8000)),
  })

  it('entries come once and in order, and all of them come in the end', async () => {
    const holds = fc.asyncProperty(
      fc.nat(),
      fc.array(fault, { minLength: 1, maxLength: 10 }),
      async (seed, faults) => {
        const net = new DataNet(seed)
        const nodes = [await net.start('a'), await net.start('b'), await net.start('c')]
        const { network } = net.world
        for (const from of nodes) {
          for (const to of nodes) {
            if (from === to) continue
            from.lead(to)
            from.lead(to, { bulk: true, batchBytes: 5000 })
          }
        }
        const appendAll = (): void => {
          for (const { senders } of nodes) for (const sender of senders) sender.append(1)
        }
        for (const { kind, who, other, bytes, forMs } of faults) {
          const one = nodes[who] as DataNode
          const two = nodes[(who + 1 + other) % 3] as DataNode
          if (kind === 'cut' || kind === 'cutOneWay') network.cut(one.name, two.name)
          if (kind === 'cut') network.cut(two.name, one.name)
          if (kind === 'reset') network.resetConnections(one.name)
          if (kind === 'resetAfter') network.resetAfter(one.name, two.name, bytes)
          if (kind === 'halfOpen') network.halfOpen(one.name, two.name)
          if (kind === 'slow') network.change(one.name, two.name, { bytesPerMs: 20 + bytes / 40 })
          if (kind === 'pause') one.process.pause()
          for (let passed = 0; passed < forMs; passed += 100) {
            appendAll()
            await net.run(100)
          }
          if (kind === 'pause') one.process.resume({ timersFirst: bytes % 2 === 0 })
          if (bytes % 3 === 0) network.calm()
        }
        network.calm()
        await allArrive(net, 60_000)
        for (const node of nodes) assert.equal(await node.metric('bad_frames_total'), 0)
      },
    )
    await fc.assert(holds, { numRuns: 15 })
  })
})
