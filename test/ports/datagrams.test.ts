import assert from 'node:assert/strict'
import { test } from 'node:test'
import { nodeDatagrams } from '../../src/io/udp/node-datagrams.ts'
import type { Datagrams } from '../../src/ports/datagrams.ts'
import type { Address } from '../../src/ports/streams.ts'
import { SimClock } from '../../src/sim/ports/clock.ts'
import { simNetwork } from '../../src/sim/ports/network.ts'
import { driven } from './support.ts'

function datagramsSuite(
  name: string,
  run: (body: (datagrams: Datagrams, host: string) => Promise<void>) => Promise<void>,
): void {
  test(`${name} datagrams: a packet arrives whole and says who sent it`, () =>
    run(async (datagrams, host) => {
      const anyPort = { host, port: 0 }
      let arrived: (got: { packet: Uint8Array; from: Address }) => void = () => undefined
      const arrival = new Promise<{ packet: Uint8Array; from: Address }>((resolve) => {
        arrived = resolve
      })
      const receiver = await datagrams.bind(anyPort, (packet, from) => arrived({ packet, from }))
      const sender = await datagrams.bind(anyPort, () => undefined)
      sender.send(Uint8Array.of(1, 2, 3), receiver.address)
      const { packet, from } = await arrival
      assert.deepEqual([...packet], [1, 2, 3])
      assert.deepEqual(from, sender.address)
      await sender.close()
      await sender.close()
      sender.send(Uint8Array.of(1), receiver.address)
      await receiver.close()
    }))

  test(`${name} datagrams: sending to nobody is no error; a port is taken once`, () =>
    run(async (datagrams, host) => {
      const socket = await datagrams.bind({ host, port: 0 }, () => undefined)
      socket.send(Uint8Array.of(1), { host, port: 1 })
      await assert.rejects(
        datagrams.bind(socket.address, () => undefined),
        /in use/,
      )
      await socket.close()
      await (await datagrams.bind(socket.address, () => undefined)).close()
    }))
}

datagramsSuite('UDP', (body) => body(nodeDatagrams, '127.0.0.1'))
datagramsSuite('simulated', (body) => {
  const clock = new SimClock()
  return driven(clock, () => body(simNetwork({ clock, seed: 1 }).datagrams('a'), 'a'))
})

test('simulated packets are lost, doubled and overtaken as the seed decides', async () => {
  const run = async (seed: number): Promise<number[]> => {
    const clock = new SimClock()
    const options = { clock, seed, packetLoss: 0.2, packetDoubling: 0.2 }
    const datagrams = simNetwork(options).datagrams('a')
    const got: number[] = []
    const receiver = await datagrams.bind({ host: 'a', port: 1 }, (packet) => {
      got.push(packet[0] as number)
    })
    const sender = await datagrams.bind({ host: 'a', port: 2 }, () => undefined)
    for (let i = 0; i < 100; i++) sender.send(Uint8Array.of(i), receiver.address)
    await clock.advance(100, () => Promise.resolve())
    return got
  }
  const got = await run(1)
  assert.deepEqual(await run(1), got)
  assert.notDeepEqual(await run(2), got)
  assert.ok(new Set(got).size < 100, 'some are lost')
  assert.ok(new Set(got).size < got.length, 'some are doubled')
  assert.notDeepEqual(
    [...got].sort((a, b) => a - b),
    got,
    'some are overtaken',
  )
})
