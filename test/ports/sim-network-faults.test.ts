import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { prng } from '../../src/base/prng.ts'
import { pair, someBytes } from './sim-pair.ts'

test('a cut stalls a connection, and healing it brings every byte across, in order', async () => {
  const { network, near, far, pass } = await pair()
  network.cut('a', 'b')
  near.send(1, 2, 3)
  await pass(5000)
  near.send(4)
  assert.deepEqual(far.bytes, [])
  network.heal('a', 'b')
  await pass(4000)
  assert.deepEqual(far.bytes, [1, 2, 3, 4])
  assert.deepEqual([near.closes, far.closes], [0, 0])
  assert.equal(network.counts.stalls, 1)
})

test('what is under way when the cut comes is lost and sent again', async () => {
  const { network, near, far, pass } = await pair({ latencyMs: [10, 10] })
  near.send(1)
  await pass(5)
  network.cut('a', 'b')
  await pass(10)
  network.heal('a', 'b')
  assert.deepEqual(far.bytes, [])
  await pass(300)
  assert.deepEqual(far.bytes, [1])
})

test('what was under way when lost bytes are sent again comes behind them', async () => {
  const { network, near, far, pass } = await pair({ latencyMs: [10, 10] })
  network.cut('a', 'b')
  near.send(1)
  await pass(20)
  network.heal('a', 'b')
  // Sent again 200 ms after it was found lost, which is in five.
  await pass(185)
  near.send(2)
  await pass(500)
  assert.deepEqual(far.bytes, [1, 2])
})

test('a cut that lasts breaks the connection at the end that has something to say', async () => {
  const { network, near, far, pass } = await pair({ streamTimeoutMs: 8000 })
  network.cut('a', 'b')
  network.cut('b', 'a')
  await pass(60_000)
  assert.equal(near.closes, 0, 'an idle connection notices nothing')
  near.send(1)
  await pass(7000)
  assert.equal(near.closes, 0)
  await pass(5000)
  assert.match(near.error ?? '', /connection with b:1 lost.*ETIMEDOUT/)
  assert.equal(far.closes, 0, 'the other end is not told')
  network.calm()
  far.send(2)
  await pass(100)
  assert.match(far.error ?? '', /ECONNRESET/, 'until it sends something')
  assert.equal(network.counts.timeouts, 1)
})

test('a cut in one direction: bytes still come the other way, and break for want of acknowledgement', async () => {
  const { network, near, far, pass } = await pair({ streamTimeoutMs: 8000 })
  network.cut('a', 'b')
  far.send(1, 2)
  await pass(100)
  assert.deepEqual(near.bytes, [1, 2])
  near.send(3)
  await pass(1000)
  assert.deepEqual(far.bytes, [])
  await pass(12_000)
  assert.match(near.error ?? '', /ETIMEDOUT/)
  assert.match(far.error ?? '', /ETIMEDOUT/)
})

test('acknowledgements that come late are enough', async () => {
  const { network, near, far, pass } = await pair({ streamTimeoutMs: 8000 })
  network.cut('a', 'b')
  far.send(1)
  await pass(5000)
  network.heal('a', 'b')
  await pass(20_000)
  assert.deepEqual(near.bytes, [1])
  assert.deepEqual([near.closes, far.closes], [0, 0])
})

test('a receiver behind a cut gives its window back only when it is healed', async () => {
  const { network, near, far, pass } = await pair()
  network.cut('b', 'a')
  const bytes = prng(7).bytes(400_000)
  near.connection.write([bytes])
  await pass(5000)
  assert.equal(far.bytes.length, 256 * 1024, 'one window')
  network.heal('b', 'a')
  await pass(5000)
  assert.equal(far.bytes.length, bytes.length)
  assert.ok(Buffer.from(far.bytes).equals(bytes))
})

test('two that cannot reach each other both reach a third', async () => {
  const { network, address, pass } = await pair()
  network.cut('a', 'b')
  network.cut('b', 'a')
  const outcome: string[] = []
  for (const host of ['a', 'c']) {
    network
      .streams(host)
      .connect(address, { timeoutMs: 3000 })
      .then(
        () => outcome.push(`${host} connected`),
        (error: Error) => outcome.push(error.message),
      )
  }
  await pass(10_000)
  assert.deepEqual(outcome, ['c connected', 'cannot connect to b:1: no answer within 3000 ms'])
})

test('a call to a host that is cut off is not refused; it is made again and gets through', async () => {
  for (const [from, to] of [
    ['a', 'b'],
    ['b', 'a'],
  ] as const) {
    const { network, dial, pass } = await pair()
    network.cut(from, to)
    const calling = dial(5000)
    await pass(2000)
    network.heal(from, to)
    await pass(2000)
    const near = await calling
    assert.equal(near.closes, 0)
    assert.ok(network.counts.unansweredDials > 0)
  }
})

test('a connection is reset behind any byte that is asked for', async () => {
  await fc.assert(
    fc.asyncProperty(fc.integer({ min: 1, max: 50_000 }), fc.nat(1000), async (at, seed) => {
      const { network, near, far, pass } = await pair({ seed })
      network.resetAfter('a', 'b', at)
      const bytes = someBytes(50_001)
      near.send(...bytes)
      await pass(100)
      assert.deepEqual(far.bytes, bytes.slice(0, at))
      assert.match(near.error ?? '', /ECONNRESET/)
      assert.match(far.error ?? '', /ECONNRESET/)
      assert.deepEqual([near.closes, far.closes], [1, 1])
    }),
    { numRuns: 30 },
  )
})

test('of a half-open connection one end is gone; what the other writes vanishes until it times out', async () => {
  const { network, near, far, pass } = await pair({ streamTimeoutMs: 8000 })
  assert.equal(network.halfOpen('b', 'a'), 1)
  await pass(5000)
  assert.match(far.error ?? '', /connection with a:\d+ lost/)
  assert.equal(near.closes, 0, 'nobody tells it')
  near.send(1)
  await pass(4000)
  assert.deepEqual([near.closes, far.bytes.length], [0, 0])
  await pass(10_000)
  assert.match(near.error ?? '', /ETIMEDOUT/)
})

test('an end that has nothing to send finds after a while that nobody is at the other', async () => {
  const forsaken = await pair()
  forsaken.network.halfOpen('b', 'a')
  await forsaken.pass(19_000)
  assert.equal(forsaken.near.closes, 0)
  await forsaken.pass(2000)
  assert.match(forsaken.near.error ?? '', /ETIMEDOUT/)
  const restarted = await pair()
  restarted.network.powerOff('b')
  await restarted.pass(5000)
  restarted.network.powerOn('b')
  await restarted.pass(4000)
  assert.equal(restarted.near.closes, 0)
  await restarted.pass(2000)
  assert.match(restarted.near.error ?? '', /ECONNRESET/)
})

test('a machine without power tells nobody; on again, it resets what it does not know', async () => {
  const { network, near, dial, pass } = await pair()
  network.powerOff('b')
  await pass(5000)
  assert.equal(near.closes, 0)
  const silence = assert.rejects(dial(500), /no answer within 500 ms/)
  near.send(1)
  await pass(1000)
  await silence
  assert.equal(near.closes, 0)
  network.powerOn('b')
  await pass(4000)
  assert.match(near.error ?? '', /ECONNRESET/)
  const refusal = assert.rejects(dial(500), /refused/)
  await pass(500)
  await refusal
})

test('a slow link delays the bytes of its direction by their number', async () => {
  const { network, near, far, pass } = await pair({ latencyMs: [1, 1] })
  network.change('a', 'b', { bytesPerMs: 100 })
  near.connection.write([new Uint8Array(100_000)])
  far.connection.write([new Uint8Array(100_000)])
  await pass(500)
  assert.equal(near.bytes.length, 100_000)
  assert.ok(far.bytes.length > 20_000 && far.bytes.length < 55_000, `${far.bytes.length} bytes`)
  await pass(600)
  assert.equal(far.bytes.length, 100_000)
})

test('latency is that of the link, in its direction', async () => {
  const { network, near, far, pass } = await pair()
  network.change('a', 'b', { latencyMs: [100, 100] })
  near.send(1)
  far.send(1)
  await pass(50)
  assert.deepEqual([near.bytes.length, far.bytes.length], [1, 0])
  await pass(51)
  assert.equal(far.bytes.length, 1)
})

test('a lossy link slows a connection down and loses none of its bytes', async () => {
  const { network, near, far, pass } = await pair()
  network.change('a', 'b', { packetLoss: 0.3, stragglers: 0.2, stragglerMs: 50 })
  const bytes = someBytes(100_000)
  near.send(...bytes)
  await pass(100)
  assert.ok(far.bytes.length < bytes.length)
  await pass(60_000)
  assert.deepEqual(far.bytes, bytes)
  assert.ok(network.counts.stalls > 0)
})

test('packets are lost in a cut, doubled, and overtaken by those behind them', async () => {
  const { network, pass } = await pair({ latencyMs: [1, 1] })
  const got: number[] = []
  await network.datagrams('b').bind({ host: 'b', port: 5 }, (packet) => got.push(packet[0] ?? -1))
  const socket = await network.datagrams('a').bind({ host: 'a', port: 5 }, () => undefined)
  const send = async (first: number, count: number): Promise<readonly number[]> => {
    got.length = 0
    for (let i = 0; i < count; i++) {
      socket.send(Uint8Array.of(first + i), { host: 'b', port: 5 })
      await pass(1)
    }
    await pass(100)
    return [...got]
  }
  assert.deepEqual(await send(0, 3), [0, 1, 2])
  network.cut('a', 'b')
  assert.deepEqual(await send(3, 3), [])
  network.heal('a', 'b')
  network.cut('b', 'a')
  assert.deepEqual(await send(6, 2), [6, 7], 'the other direction does not matter')
  network.calm()
  network.change('a', 'b', { packetDoubling: 1 })
  assert.deepEqual(await send(8, 2), [8, 8, 9, 9])
  network.calm()
  network.change('a', 'b', { stragglers: 0.3, stragglerMs: 50 })
  const mixed = await send(100, 50)
  assert.equal(mixed.length, 50)
  assert.notDeepEqual(
    mixed,
    [...mixed].sort((a, b) => a - b),
  )
  assert.ok(network.counts.overtakenPackets > 0)
  assert.equal(network.counts.doubledPackets, 2)
  assert.equal(network.counts.lostPackets, 3)
})

test('bytes are lost, cut and healed at random, and still arrive once and in order, or the connection ends', async () => {
  await fc.assert(
    fc.asyncProperty(fc.nat(), async (seed) => {
      const chance = prng(seed)
      const { network, near, far, pass } = await pair({ seed, streamTimeoutMs: 4000 })
      const sent: number[] = []
      for (let i = 0; i < 40; i++) {
        const [from, to] = chance.below(2) === 0 ? (['a', 'b'] as const) : (['b', 'a'] as const)
        if (chance.below(3) === 0) network.cut(from, to)
        else network.change(from, to, { cut: false, packetLoss: chance.float() / 2 })
        if (near.closes === 0) {
          const bytes = [...chance.bytes(chance.below(5000))]
          sent.push(...bytes)
          near.send(...bytes)
        }
        await pass(chance.below(800))
        assert.deepEqual(far.bytes, sent.slice(0, far.bytes.length))
      }
      network.calm()
      await pass(20_000)
      if (near.closes === 0) assert.deepEqual(far.bytes, sent)
      else assert.match(near.error ?? '', /ETIMEDOUT|ECONNRESET/)
    }),
    { numRuns: 25 },
  )
})
