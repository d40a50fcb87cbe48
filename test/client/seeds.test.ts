// The first of several seeds is of no use: whatever it does, the next is asked soon, and nobody is told of an error.

import assert from 'node:assert/strict'
import { type AddressInfo, createServer, type Socket } from 'node:net'
import { after, before, test } from 'node:test'
import { EastGuardError } from '../../src/base/errors.ts'
import { EastGuard } from '../../src/index.ts'
import { startBroker, type TestBroker } from '../../src/testing.ts'

const SOON_MS = 3000

let broker: TestBroker

before(async () => {
  broker = await startBroker()
})

after(() => broker.stop())

async function listener(
  t: { after(end: () => Promise<void>): void },
  met: (socket: Socket) => void,
): Promise<string> {
  const sockets = new Set<Socket>()
  const server = createServer((socket) => {
    sockets.add(socket)
    socket.on('error', () => {})
    met(socket)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  t.after(async () => {
    for (const socket of sockets) socket.destroy()
    await new Promise((resolve) => server.close(resolve))
  })
  return `127.0.0.1:${(server.address() as AddressInfo).port}`
}

const FIRST: Readonly<Record<string, (socket: Socket) => void>> = {
  'says nothing': () => {},
  'hangs up': (socket) => socket.destroy(),
  'speaks HTTP': (socket) => socket.write('HTTP/1.1 400 Bad Request\r\n\r\n'),
}

for (const [what, met] of Object.entries(FIRST)) {
  test(`the next seed is asked when the first ${what}`, async (t) => {
    const first = await listener(t, met)
    await using client = new EastGuard({ seeds: [first, broker.address] })
    const began = performance.now()
    assert.deepEqual(await client.admin().listTopics({ timeoutMs: 2 * SOON_MS }), [])
    assert.ok(performance.now() - began < SOON_MS)
    // It stays with the one that works.
    const again = performance.now()
    await client.admin().describeCluster()
    assert.ok(performance.now() - again < SOON_MS / 6)
  })
}

test('a lone seed that is no broker is told of as such', async (t) => {
  const first = await listener(t, (socket) => socket.write('HTTP/1.1 400 Bad Request\r\n\r\n'))
  await using client = new EastGuard({ seeds: [first] })
  await assert.rejects(
    client.admin().listTopics({ timeoutMs: 300 }),
    (error) =>
      error instanceof EastGuardError &&
      error.code === 'CONNECTION_FAILED' &&
      /no EastGuard broker/.test(error.message),
  )
})

test('a lone seed that hangs up may be another port of a broker, and that is said', async (t) => {
  const first = await listener(t, (socket) => socket.destroy())
  await using client = new EastGuard({ seeds: [first] })
  await assert.rejects(
    client.admin().listTopics({ timeoutMs: 300 }),
    (error) =>
      error instanceof EastGuardError &&
      error.code === 'CONNECTION_FAILED' &&
      /starting or stopping, or the port is another one than its client_port/.test(error.message),
  )
})
