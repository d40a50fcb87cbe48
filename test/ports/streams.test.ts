import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import net from 'node:net'
import { test } from 'node:test'
import { nodeStreams } from '../../src/io/tcp/node-streams.ts'
import type { Connection } from '../../src/ports/streams.ts'
import { SimClock } from '../../src/sim/ports/clock.ts'
import { simNetwork } from '../../src/sim/ports/network.ts'
import { streamsSuite } from './streams.suite.ts'
import { driven } from './support.ts'

streamsSuite('TCP', async (body) => {
  await body({
    streams: nodeStreams,
    nobody: { host: '127.0.0.1', port: await unusedPort() },
    anyPort: { host: '127.0.0.1', port: 0 },
  })
})

for (const seed of [1, 2, 3]) {
  streamsSuite(`simulated (seed ${seed})`, (body) => {
    const clock = new SimClock()
    const streams = simNetwork({ clock, seed }).streams('a')
    const host = 'a'
    return driven(clock, () =>
      body({ streams, nobody: { host, port: 1 }, anyPort: { host, port: 0 } }),
    )
  })
}

async function unusedPort(): Promise<number> {
  const listener = await nodeStreams.listen({ host: '127.0.0.1', port: 0 }, () => undefined)
  await listener.close()
  return listener.address.port
}

test('TCP: all writes of one turn leave in one segment', async () => {
  const chunks: number[] = []
  const server = net.createServer((socket) => {
    socket.on('data', (chunk) => chunks.push(chunk.length))
    socket.on('end', () => socket.end())
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as net.AddressInfo
  const connection = await nodeStreams.connect({ host: '127.0.0.1', port }, { timeoutMs: 5000 })
  const closed = new Promise<void>((resolve) => {
    connection.handle({ onData: () => undefined, onClose: () => resolve() })
  })
  for (let i = 0; i < 500; i++) connection.write([new Uint8Array(20), new Uint8Array(4)])
  connection.end()
  await closed
  server.close()
  assert.deepEqual(chunks, [12_000])
})

test('TCP: the system asks an end that says nothing whether it is there', {
  skip: process.platform !== 'linux',
}, async () => {
  let far: Connection | undefined
  const listener = await nodeStreams.listen({ host: '127.0.0.1', port: 0 }, (connection) => {
    far = connection
  })
  const { address } = listener
  const near = await nodeStreams.connect(address, { timeoutMs: 5000 })
  while (far === undefined) await new Promise((resolve) => setImmediate(resolve))
  const port = address.port.toString(16).toUpperCase().padStart(4, '0')
  const established = readFileSync('/proc/net/tcp', 'utf8')
    .split('\n')
    .map((line) => line.trim().split(/\s+/))
    .filter(
      ([, from = '', to = '', state]) => state === '01' && `${from}${to}`.includes(`:${port}`),
    )
  // Of each end: the keep-alive timer is the one that runs.
  assert.deepEqual(
    established.map((fields) => fields[5]?.slice(0, 2)),
    ['02', '02'],
  )
  near.destroy()
  far.destroy()
  await listener.close()
})

test('TCP: a reset by the other side closes with an error that names it', async () => {
  const error = await new Promise<Error | undefined>((resolve, reject) => {
    nodeStreams
      .listen({ host: '127.0.0.1', port: 0 }, (connection) => {
        connection.handle({
          onData: () => undefined,
          onClose: (why) => {
            listening.then((listener) => listener.close()).catch(reject)
            resolve(why)
          },
        })
      })
      .then((listener) => {
        begun(listener)
        const socket = net.connect(listener.address.port, '127.0.0.1', () =>
          socket.resetAndDestroy(),
        )
      })
      .catch(reject)
  })
  assert.match(error?.message ?? '', /connection with 127\.0\.0\.1:\d+ lost.*ECONNRESET/)
})

let begun: (listener: { close(): Promise<void> }) => void = () => undefined
const listening = new Promise<{ close(): Promise<void> }>((resolve) => {
  begun = resolve
})

test('simulated: a killed process hears nothing more, and its peers see a reset', async () => {
  const clock = new SimClock()
  const network = simNetwork({ clock, seed: 5 })
  await driven(clock, async () => {
    const heard: string[] = []
    const listener = await network.streams('b').listen({ host: 'b', port: 1 }, (connection) => {
      connection.handle({
        onData: () => heard.push('b data'),
        onClose: () => heard.push('b close'),
      })
    })
    const connection: Connection = await network
      .streams('a')
      .connect(listener.address, { timeoutMs: 100 })
    const closed = new Promise<void>((resolve) => {
      connection.handle({
        onData: () => undefined,
        onClose: (error) => {
          heard.push(`a ${error?.message.includes('ECONNRESET')}`)
          resolve()
        },
      })
    })
    network.kill('b')
    connection.write([new Uint8Array(10)])
    await closed
    assert.deepEqual(heard, ['a true'])
    await assert.rejects(network.streams('a').connect(listener.address, { timeoutMs: 100 }))
  })
})
