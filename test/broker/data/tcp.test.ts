// The same links over real sockets.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { DataPeers } from '../../../src/broker/data/data-peers.ts'
import { DATA_SETTINGS } from '../../../src/broker/data/settings.ts'
import type { DataReceiver } from '../../../src/broker/data/types.ts'
import { systemClock } from '../../../src/io/clock/system-clock.ts'
import { systemRandom } from '../../../src/io/random/system-random.ts'
import { nodeStreams } from '../../../src/io/tcp/node-streams.ts'
import type { NodeId } from '../../../src/model/ids.ts'
import { placeOfKey } from '../../../src/model/segment-key.ts'
import type { Address } from '../../../src/ports/streams.ts'
import { simLog } from '../../../src/sim/ports/log.ts'
import { simMetrics } from '../../../src/sim/ports/metrics.ts'
import { encodeEntries } from '../../../src/wire/data/entries.ts'
import { appendFrame } from '../../../src/wire/data/load.ts'
import { entryOf } from '../../wire/data/arbitraries.ts'
import { CLUSTER, idOf, keyOf, Memory, startsTo } from './support.ts'

function peersOf(
  name: string,
  addresses: ReadonlyMap<NodeId, Address>,
  receive: DataReceiver,
): DataPeers {
  return new DataPeers({
    ports: {
      streams: nodeStreams,
      clock: systemClock({ keepAlive: true }),
      random: systemRandom(),
      log: simLog(),
      metrics: simMetrics(),
    },
    identity: { clusterId: CLUSTER, nodeId: idOf(name), starts: startsTo(1) },
    directory: { addressOf: (node) => addresses.get(node) },
    receive,
    settings: DATA_SETTINGS,
    memory: new Memory(),
    onRefusedAsOld: (by) => assert.fail(by),
  })
}

test('data links carry small and large entries over sockets, answers come back, and they end when told', async () => {
  const addresses = new Map<NodeId, Address>()
  const sizes = Array.from({ length: 200 }, (_, i) => (i % 50 === 49 ? 3_000_000 : i * 97))
  let done = (): void => {}
  const allAcked = new Promise<void>((resolve) => {
    done = resolve
  })
  const a = peersOf('a', addresses, (_from, _boot, message) => {
    assert.ok(message.kind === 'acks')
    if (message.of[0]?.end === sizes.length) done()
  })
  let next = 0
  const b = peersOf('b', addresses, (from, _boot, message) => {
    assert.ok(message.kind === 'append')
    for (const { entryNumber, batch } of message.entries) {
      assert.equal(entryNumber, next)
      assert.ok(Buffer.from(batch).equals(entryOf(next, sizes[next] as number).batch))
      next++
    }
    assert.ok(b.send(from, { kind: 'acks', of: [{ channel: message.channel, end: next }] }))
  })
  for (const [name, peers] of [
    ['a', a],
    ['b', b],
  ] as const) {
    const { address } = await peers.listen({ host: '127.0.0.1', port: 0 })
    addresses.set(idOf(name), address)
  }
  let given = 0
  const flow = a.flow(idOf('b'), {
    way: 'out',
    bulk: false,
    fill: () => {
      if (given === sizes.length) return []
      const entries = encodeEntries(placeOfKey(keyOf(1)), [entryOf(given, sizes[given] as number)])
      given++
      return appendFrame({ channel: 9, highWatermark: 0 }, entries)
    },
  })
  flow.ready()
  await allAcked
  await Promise.all([a.stop(), b.stop()])
  assert.equal(a.send(idOf('b'), { kind: 'watermarks', of: [] }), false)
})
