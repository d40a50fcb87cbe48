// The same membership over real sockets.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Members } from '../../../src/broker/members/members.ts'
import { systemClock } from '../../../src/io/clock/system-clock.ts'
import { systemRandom } from '../../../src/io/random/system-random.ts'
import { nodeStreams } from '../../../src/io/tcp/node-streams.ts'
import { nodeDatagrams } from '../../../src/io/udp/node-datagrams.ts'
import type { ClusterIdentity } from '../../../src/model/swim.ts'
import type { Address } from '../../../src/ports/streams.ts'
import { simLog } from '../../../src/sim/ports/log.ts'
import { simMetrics } from '../../../src/sim/ports/metrics.ts'
import { idOf, SHARDS } from './support.ts'

const HOST = '127.0.0.1'

interface Started {
  readonly members: Members
  readonly address: Address
}

async function start(name: string): Promise<Started> {
  const members = new Members({
    ports: {
      streams: nodeStreams,
      datagrams: nodeDatagrams,
      clock: systemClock({ keepAlive: true }),
      random: systemRandom(),
      log: simLog(),
      metrics: simMetrics(),
    },
    nodeId: idOf(name),
    bootCount: 1,
    cluster: undefined,
    peers: [],
    metadataShards: SHARDS,
    profile: {
      name,
      cluster: { host: HOST, port: 0 },
      client: { host: HOST, port: 2921 },
      data: { host: HOST, port: 2923 },
      hostLabel: name,
      rackLabel: '',
      capacityBytes: 0,
      loadBytes: 0,
    },
    hooks: { onCluster: async () => {}, onRefused: () => {}, onForeign: () => {} },
  })
  return { members, address: await members.listen({ host: HOST, port: 0 }) }
}

/** Resolves when it sees so many members, itself among them. */
function sees({ members }: Started, count: number): Promise<void> {
  return new Promise((resolve) => {
    const look = (): void => {
      if (members.view().members.length === count) resolve()
    }
    members.onView(look)
    look()
  })
}

test('brokers join over sockets, on ports that are chosen for them, and leave', async () => {
  const all = [await start('a'), await start('b'), await start('c')]
  const [a, b, c] = all as [Started, Started, Started]
  const founded: ClusterIdentity = await a.members.join([])
  assert.deepEqual(await b.members.join([b.address, a.address]), founded)
  assert.deepEqual(await c.members.join([b.address]), founded)
  await Promise.all(all.map((one) => sees(one, 3)))
  for (const { members } of all) assert.deepEqual(members.addressOf(idOf('c')), c.address)
  const twoLeft = Promise.all([sees(a, 2), sees(b, 2)])
  await c.members.leave()
  await twoLeft
  await Promise.all(all.map(({ members }) => members.stop()))
})
