// The same links over real sockets.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Peers } from '../../../src/broker/peers/peers.ts'
import { PEERS_SETTINGS } from '../../../src/broker/peers/settings.ts'
import { systemClock } from '../../../src/io/clock/system-clock.ts'
import { systemRandom } from '../../../src/io/random/system-random.ts'
import { nodeStreams } from '../../../src/io/tcp/node-streams.ts'
import type { NodeId } from '../../../src/model/ids.ts'
import type { Address } from '../../../src/ports/streams.ts'
import { simLog } from '../../../src/sim/ports/log.ts'
import { simMetrics } from '../../../src/sim/ports/metrics.ts'
import type { PeerMessage } from '../../../src/wire/peer/types.ts'
import { CLUSTER, idOf, Memory, numbered, startsTo } from './support.ts'

function peersOf(
  name: string,
  addresses: ReadonlyMap<NodeId, Address>,
  receive: (messages: readonly PeerMessage[]) => void,
): Peers {
  return new Peers({
    ports: {
      streams: nodeStreams,
      clock: systemClock({ keepAlive: true }),
      random: systemRandom(),
      log: simLog(),
      metrics: simMetrics(),
    },
    identity: { clusterId: CLUSTER, nodeId: idOf(name), starts: startsTo(1) },
    directory: { addressOf: (node) => addresses.get(node) },
    receive: (_from, messages) => receive(messages),
    settings: PEERS_SETTINGS,
    memory: new Memory(),
    onRefusedAsOld: (by) => assert.fail(by),
  })
}

test('links carry small and large frames over sockets both ways, and end when told', async () => {
  const addresses = new Map<NodeId, Address>()
  const sizes = Array.from({ length: 300 }, (_, i) => (i % 50 === 49 ? 900_000 : i * 7))
  const got: number[] = []
  let answered = (): void => {}
  const answer = new Promise<void>((resolve) => {
    answered = resolve
  })
  const a = peersOf('a', addresses, () => answered())
  const b = peersOf('b', addresses, (messages) => {
    for (const message of messages) {
      assert.deepEqual(message, numbered(got.length, sizes[got.length]))
      got.push(got.length)
    }
    if (got.length === sizes.length) b.send(idOf('a'), [numbered(0)])
  })
  for (const [name, peers] of [
    ['a', a],
    ['b', b],
  ] as const) {
    const { address } = await peers.listen({ host: '127.0.0.1', port: 0 })
    addresses.set(idOf(name), address)
  }
  const up = new Promise<void>((resolve) => a.onLink((_node, isUp) => isUp && resolve()))
  assert.ok(a.send(idOf('b'), [numbered(0, sizes[0])]))
  await up
  for (const [number, size] of sizes.entries()) {
    if (number > 0) assert.ok(a.send(idOf('b'), [numbered(number, size)]))
  }
  await answer
  await Promise.all([a.stop(), b.stop()])
  assert.deepEqual([a.linked(idOf('b')), b.linked(idOf('a'))], [false, false])
})
