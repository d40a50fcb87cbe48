import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Connection } from '../../src/ports/streams.ts'
import type { SimProcess } from '../../src/sim/process.ts'
import { simWorld, type World } from '../../src/sim/world.ts'
import { clockSuite } from '../ports/clock.suite.ts'
import { End } from '../ports/sim-pair.ts'
import { driven, settle } from '../ports/support.ts'

for (const rate of [0.95, 1.05]) {
  clockSuite(`own, at a rate of ${rate},`, (body) => {
    const world = simWorld(1)
    const machineClock = { rate, startMs: 1234.5, wallShiftMs: 0 }
    const life = world.process('a', undefined, undefined, machineClock)
    return driven(world.clock, () => body(life.ports.clock))
  })
}

interface Served {
  readonly world: World
  readonly server: SimProcess
  readonly client: SimProcess
  readonly near: End
  readonly far: End
  readonly accepted: readonly Connection[]
  readonly pass: (ms: number) => Promise<void>
}

async function served(): Promise<Served> {
  const world = simWorld(1)
  const pass = (ms: number): Promise<void> => world.clock.advance(ms, settle)
  const server = world.process('server', world.disk())
  const client = world.process('client')
  const accepted: Connection[] = []
  const ends: End[] = []
  await server.ports.streams.listen({ host: 'server', port: 1 }, (connection) => {
    accepted.push(connection)
    ends.push(new End(connection))
  })
  const connecting = client.ports.streams.connect({ host: 'server', port: 1 }, { timeoutMs: 100 })
  await pass(10)
  const near = new End(await connecting)
  return { world, server, client, near, far: ends[0] as End, accepted, pass }
}

test('a paused process hears of nothing, and of all of it in order when it is resumed', async () => {
  const { world, server, client, near, far, accepted, pass } = await served()
  const order: string[] = []
  const { clock, datagrams } = server.ports
  await datagrams.bind({ host: 'server', port: 2 }, () => order.push('packet'))
  const socket = await client.ports.datagrams.bind({ host: 'client', port: 2 }, () => undefined)
  const file = await driven(world.clock, () => server.disk.open('f', { mode: 'create' }))
  clock.after(10, () => order.push('timer 10'))
  clock.after(50, () => order.push('timer 50'))
  void file.write([Uint8Array.of(1)], 0).then(() => order.push('disk'))
  server.pause()
  await pass(20)
  near.send(1, 2)
  socket.send(Uint8Array.of(1), { host: 'server', port: 2 })
  const another = client.ports.streams.connect({ host: 'server', port: 1 }, { timeoutMs: 100 })
  await pass(10_000)
  await another
  assert.equal(order.length, 0)
  assert.deepEqual([far.bytes.length, far.closes, near.closes, accepted.length], [0, 0, 0, 1])
  const before = clock.monotonic()
  clock.after(5, () => order.push('timer asked for later'))
  server.resume()
  await pass(0)
  assert.equal(order.join(), 'disk,timer 10,packet,timer 50')
  assert.deepEqual(far.bytes, [1, 2])
  assert.equal(accepted.length, 2)
  assert.equal(clock.monotonic(), before)
  await pass(10)
  assert.equal(order.at(-1), 'timer asked for later')
})

test('what comes while a resumed process catches up stands behind what waited', async () => {
  const { server, pass } = await served()
  const order: number[] = []
  const { clock } = server.ports
  for (let i = 0; i < 5; i++) {
    clock.after(i, () => {
      order.push(i)
      clock.after(0, () => order.push(10 + i))
    })
  }
  server.pause()
  await pass(100)
  server.resume()
  await pass(0)
  assert.deepEqual(order, [0, 1, 2, 3, 4, 10, 11, 12, 13, 14])
})

test('a resumed process may look at its timers first, and may be paused again while it catches up', async () => {
  const { world, server, near, far, pass } = await served()
  const order: string[] = []
  const { clock } = server.ports
  server.pause()
  near.send(1)
  await pass(10)
  clock.after(1, () => {
    order.push(`timer, ${far.bytes.length} bytes read`)
    server.pause()
  })
  await pass(10)
  server.resume({ timersFirst: true })
  await pass(1000)
  assert.deepEqual(order, ['timer, 0 bytes read'])
  assert.equal(far.bytes.length, 0)
  server.resume()
  await pass(0)
  assert.equal(far.bytes.length, 1)
  assert.ok(world.clock.monotonic() > 1000)
})

test('a timer that came due while its process was paused does not run when another event has cancelled it', async () => {
  const { server, pass } = await served()
  const order: string[] = []
  const { clock } = server.ports
  server.pause()
  const late = clock.after(2, () => order.push('late'))
  clock.after(1, () => {
    order.push('first')
    late.cancel()
  })
  await pass(10)
  server.resume()
  await pass(10)
  assert.deepEqual(order, ['first'])
})

test("a paused process's machine takes bytes until the window is full, and the connection stays", async () => {
  const { server, near, far, pass } = await served()
  server.pause()
  near.connection.write([new Uint8Array(1_000_000)])
  await pass(120_000)
  assert.equal(near.closes, 0)
  assert.equal(near.connection.queuedBytes, 1_000_000 - 256 * 1024)
  server.resume()
  await pass(1000)
  assert.equal(far.bytes.length, 1_000_000)
})

test('packets for a paused process are dropped when its machine keeps no more', async () => {
  const { server, client, pass } = await served()
  let got = 0
  await server.ports.datagrams.bind({ host: 'server', port: 2 }, () => got++)
  const socket = await client.ports.datagrams.bind({ host: 'client', port: 2 }, () => undefined)
  server.pause()
  for (let i = 0; i < 1000; i++) socket.send(new Uint8Array(1000), { host: 'server', port: 2 })
  await pass(10)
  server.resume()
  await pass(0)
  assert.equal(got, 212)
})

test('an operation of a paused process has not happened when its machine crashes', async () => {
  const world = simWorld(3)
  const pass = (ms: number): Promise<void> => world.clock.advance(ms, settle)
  const disk = world.disk()
  const life = world.process('server', disk)
  let answered = false
  void life.disk.open('f', { mode: 'create' }).then(() => {
    answered = true
  })
  life.pause()
  await pass(100)
  life.kill({ keepUnsynced: false })
  life.resume()
  await pass(100)
  assert.equal(answered, false)
  assert.deepEqual(disk.paths(), [])
  const next = world.process('server', disk)
  void next.disk.open('g', { mode: 'create' })
  await pass(10)
  assert.deepEqual(disk.paths(), ['g'])
})

test('a killed process is heard of; one whose machine lost its power is not', async () => {
  const killed = await served()
  killed.server.kill()
  await killed.pass(10)
  assert.match(killed.near.error ?? '', /ECONNRESET/)
  const dark = await served()
  dark.server.powerOff({ keepUnsynced: false })
  await dark.pass(8000)
  assert.deepEqual([dark.near.closes, dark.far.closes], [0, 0])
  dark.world.process('server')
  dark.near.send(1)
  await dark.pass(10)
  assert.match(dark.near.error ?? '', /ECONNRESET/)
})

test('clocks of two machines run apart by their rates, and a wall clock is set on one of them', async () => {
  const world = simWorld(1)
  const slow = { rate: 0.97, startMs: 0, wallShiftMs: 0 }
  const fast = { rate: 1.02, startMs: 5000, wallShiftMs: 0 }
  const a = world.process('a', undefined, undefined, slow).ports.clock
  const b = world.process('b', undefined, undefined, fast).ports.clock
  const order: string[] = []
  a.after(1000, () => order.push('a'))
  b.after(1000, () => order.push('b'))
  const began = { a: a.monotonic(), b: b.monotonic(), wall: b.wall() }
  await world.clock.advance(1010, settle)
  assert.deepEqual(order, ['b'])
  await world.clock.advance(990, settle)
  assert.deepEqual(order, ['b', 'a'])
  assert.ok(Math.abs(a.monotonic() - began.a - 1940) < 1e-6)
  assert.ok(Math.abs(b.monotonic() - began.b - 2040) < 1e-6)
  fast.wallShiftMs += 86_400_000
  assert.equal(b.wall() - a.wall(), 86_400_000)
  assert.ok(Math.abs(b.monotonic() - began.b - 2040) < 1e-6)
})
