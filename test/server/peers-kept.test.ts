// Where the other brokers are, written down for the next start.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Address } from '../../src/base/address.ts'
import { DiskError, type DiskFault } from '../../src/ports/disk.ts'
import { PeersKept } from '../../src/server/peers-kept.ts'
import { keptLog, manualClock, settle } from '../storage/support/ports.ts'

const [A, B, C] = ['a', 'b', 'c'].map((host) => ({ host, port: 2922 })) as [
  Address,
  Address,
  Address,
]

function kept(before: readonly Address[]) {
  const clock = manualClock()
  const log = keptLog()
  const told: (readonly Address[])[] = []
  const world = {
    clock,
    log,
    /** What was asked to be written. */
    told,
    fault: undefined as DiskFault | undefined,
    failed: [] as Error[],
    known: [] as { cluster: Address; state: 'alive' | 'left' }[],
  }
  const dataDir = {
    peers: before,
    keepPeers: async (peers: readonly Address[]) => {
      told.push(peers)
      if (world.fault !== undefined) throw new DiskError(world.fault, 'node.json', 'not written')
    },
  }
  return {
    ...world,
    world,
    peers: new PeersKept({
      clock,
      log,
      dataDir,
      known: () => world.known,
      onFailed: (error) => world.failed.push(error),
    }),
  }
}

test('those who are there are kept, and those of whom nothing was heard; not who has left', () => {
  const { peers, world, told } = kept([A, B])
  world.known = [
    { cluster: B, state: 'left' },
    { cluster: C, state: 'alive' },
  ]
  peers.changed()
  assert.deepEqual(told, [[C, A]])
})

test('what a full disk did not take is written when there is room, though nothing changes any more', async () => {
  const { peers, world, told, clock, log } = kept([])
  world.known = [{ cluster: A, state: 'alive' }]
  world.fault = 'full'
  peers.changed()
  await settle()
  assert.equal(log.lines.length, 1)
  world.fault = undefined
  clock.advance(60_000)
  await settle()
  assert.deepEqual(told, [[A], [A]])
  assert.deepEqual(world.failed, [])
  clock.advance(600_000)
  assert.equal(told.length, 2)
})

test('a disk that failed ends the broker, and is not tried again', async () => {
  const { peers, world, told, clock } = kept([])
  world.fault = 'io'
  peers.changed()
  await settle()
  assert.equal(world.failed.length, 1)
  clock.advance(600_000)
  assert.equal(told.length, 1)
})

test('nothing is written any more when the broker stops', async () => {
  const { peers, world, told, clock } = kept([])
  world.fault = 'full'
  peers.changed()
  await settle()
  peers.stop()
  clock.advance(600_000)
  assert.equal(told.length, 1)
})
