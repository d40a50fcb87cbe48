import assert from 'node:assert/strict'
import { test } from 'node:test'
import { unsettled } from '../../src/cli/commands/settled.ts'
import type { ClusterInfo } from '../../src/client/api.ts'
import { nodeId } from '../../src/model/ids.ts'

type Broker = ClusterInfo['brokers'][number]

function broker(
  nodeNumber: number,
  shards: number,
  leads: number,
  how: Partial<Broker> = {},
): Broker {
  return {
    nodeId: nodeId(String(nodeNumber).padStart(32, '0')),
    nodeNumber,
    displayName: `broker-${nodeNumber}`,
    host: '127.0.0.1',
    clientPort: 2921,
    state: 'alive',
    role: 'member',
    hostLabel: '',
    rackLabel: '',
    version: '',
    diskTotalBytes: 0,
    diskFreeBytes: 0,
    diskFull: false,
    ...how,
    shards,
    leads,
  }
}

const WELL = { underReplicated: 0, unavailable: 0, issues: [] } as const

function reasons(brokers: readonly Broker[], shardsLed: number = 256): readonly string[] {
  const counts = { topics: 0, ranges: 0, segments: 0, shards: 256, shardsLed, ...WELL }
  return unsettled({ clusterId: '', nodeId: '', brokerVersion: '', brokers, ...counts })
}

test('one broker, three, and five with a share each have settled', () => {
  assert.deepEqual(reasons([broker(1, 256, 256)]), [])
  assert.deepEqual(reasons([broker(1, 256, 86), broker(2, 256, 85), broker(3, 256, 85)]), [])
  const five = [157, 149, 148, 157, 157].map((held, i) => broker(i + 1, held, i === 0 ? 52 : 51))
  assert.deepEqual(reasons(five), [])
})

test('who is missing, and who was removed, are told apart', () => {
  const two = [broker(1, 256, 128), broker(2, 256, 128)]
  const gone = (how: Partial<Broker>): readonly string[] =>
    reasons([...two, broker(3, 256, 0, how)])
  assert.deepEqual(gone({ state: 'dead' }), ['broker 3 is dead'])
  assert.deepEqual(gone({ state: 'suspect' }), ['broker 3 is suspect'])
  assert.deepEqual(gone({ state: 'left' }), ['broker 3 was stopped'])
  assert.deepEqual(gone({ state: 'dead', role: 'removed' }), [
    'broker 3 is removed and still holds 256 shards',
  ])
  assert.deepEqual(reasons([...two, broker(3, 0, 0, { state: 'left', role: 'removed' })]), [])
})

test('a broker whose disk is full keeps a cluster from being settled', () => {
  assert.deepEqual(reasons([broker(1, 256, 128, { diskFull: true }), broker(2, 256, 128)]), [
    'the disk of broker 1 is full',
  ])
})

test('a drained broker that still holds something, moves under way, and shards without a leader are told', () => {
  const three = [broker(1, 256, 86), broker(2, 256, 85), broker(3, 256, 85)]
  assert.deepEqual(reasons([...three, broker(4, 0, 0)]), [
    'shards are being moved: brokers hold 256, 256, 256, 0',
  ])
  assert.deepEqual(reasons([...three, broker(4, 1, 0, { role: 'draining' })]), [
    'broker 4 is draining and still holds 1 shard',
    'shards are being moved: brokers hold 256, 256, 256',
  ])
  assert.deepEqual(reasons(three, 255), ['1 of 256 shards has no leader'])
  assert.deepEqual(reasons([broker(1, 256, 0), broker(2, 256, 128), broker(3, 256, 128)]), [
    'leadership is being spread: brokers lead 0, 128, 128',
  ])
})

test('where shards have no leader nobody is said to spread leadership', () => {
  const dead = { state: 'dead' } as const
  const last = [broker(1, 256, 0), broker(2, 256, 0, dead), broker(3, 256, 0, dead)]
  assert.deepEqual(reasons(last, 0), [
    'broker 2 is dead',
    'broker 3 is dead',
    '256 of 256 shards have no leader',
  ])
})

test('ranges that cannot be written, or have too few replicas, keep a cluster from being settled', () => {
  const brokers = [broker(1, 256, 256)]
  const counts = { topics: 0, ranges: 0, segments: 0, shards: 256, shardsLed: 256, issues: [] }
  const info = { clusterId: '', nodeId: '', brokerVersion: '', brokers, ...counts }
  assert.deepEqual(unsettled({ ...info, underReplicated: 1, unavailable: 2 }), [
    '2 ranges cannot be written',
    '1 range has too few replicas',
  ])
})
