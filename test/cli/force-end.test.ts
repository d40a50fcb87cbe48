// What an operator is told before a segment is ended by force, and after it.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { nodeId } from '../../src/model/ids.ts'
import { Rig } from './rig.ts'

const [ONE, TWO, THREE] = ['11', '22', '33'].map((byte) => nodeId(byte.repeat(16)))

async function stuck(): Promise<Rig> {
  const rig = new Rig()
  await rig.run(['create-topic', 't'])
  const topic = rig.client.topics.get('t')
  assert.ok(topic && ONE && TWO && THREE)
  const replicas = [ONE, TWO, THREE]
  const open = {
    segment: 4,
    state: 'open',
    replicas,
    firstOffsets: [30, 50],
    openedAtMs: 0,
  } as const
  const range = { range: 2, state: 'active', firstPartition: 6, endPartition: 8 } as const
  const ranges = [{ ...range, segments: [open], parents: [], children: [] }]
  rig.client.topics.set('t', { ...topic, ranges })
  rig.client.brokers = replicas.map((id, i) => ({
    nodeId: id,
    nodeNumber: i + 1,
    displayName: `b${i + 1}`,
    host: '127.0.0.1',
    clientPort: 2921,
    state: 'alive',
    role: 'member',
    hostLabel: '',
    rackLabel: '',
    shards: 1,
    leads: 1,
    version: '',
    diskTotalBytes: 0,
    diskFreeBytes: 0,
    diskFull: false,
  }))
  rig.client.forceable = {
    segment: 4,
    highWatermark: 12,
    answers: [
      { node: ONE, end: 9, unsure: 'its log is damaged' },
      { node: TWO, end: 14, unsure: 'its log is damaged' },
    ],
    silent: [THREE],
  }
  return rig
}

test('nothing is done before somebody has agreed, and it is shown what would be lost', async () => {
  const rig = await stuck()
  const { code, out, err } = await rig.run(['force-end', 't', '2', '--end', '10'])
  assert.equal(code, 2)
  assert.deepEqual(rig.client.forced, [])
  assert.match(out, /segment 4 of topic t, range 2: partitions 6 to 7/)
  assert.match(out, /broker 1 \(b1\) .* 9 .* no: its log is damaged/)
  assert.match(out, /broker 3 \(b3\) .* \? .* does not answer/)
  assert.match(err, /lost: 2 entries, 10 to 11: readers had them, and producers may have been told/)
  assert.match(err, /lost: 2 entries, 12 to 13, which broker 2 \(b2\) has/)
  assert.match(err, /lost: whatever else broker 3 \(b3\), .* had from entry 12 on/)
  assert.match(err, /kept: all below offset 30 of partition 6, 50 of partition 7;/)
  assert.match(err, /add --yes/)
})

test('all that one broker has is kept unless told otherwise, and from which offsets on it is lost is told', async () => {
  const rig = await stuck()
  const { code, out, err } = await rig.run(['force-end', 't', '2', '--yes'])
  assert.equal(code, 0)
  assert.deepEqual(rig.client.forced, ['t/2/4 at 14'])
  assert.doesNotMatch(err, /readers had them/)
  assert.match(out, /segment 4 has ended behind 14 entries/)
  assert.match(out, /6 .* 44/)
  assert.match(out, /7 .* 64/)
})

test('programs are told the same', async () => {
  const rig = await stuck()
  const { code, out } = await rig.run(['--json', 'force-end', 't', '2', '--end', '0', '--yes'])
  assert.equal(code, 0)
  const told = JSON.parse(out)
  assert.equal(told.end_entry, 0)
  assert.match(told.lost[0], /^12 entries, 0 to 11: readers had them/)
  assert.deepEqual(told.silent, [THREE])
  assert.deepEqual(told.next_offsets, [
    { partition: 6, offset: 30 },
    { partition: 7, offset: 50 },
  ])
})

test('when no end has to be forced, or nobody is there to hand anything on, it is said', async () => {
  const rig = await stuck()
  const { forceable } = rig.client
  rig.client.forceable = undefined
  const needless = await rig.run(['force-end', 't', '2', '--yes'])
  assert.equal(needless.code, 1)
  assert.match(needless.err, /END_NOT_FORCED/)
  assert.ok(forceable !== undefined && ONE && TWO && THREE)
  rig.client.forceable = { ...forceable, answers: [], silent: [ONE, TWO, THREE] }
  const nobody = await rig.run(['force-end', 't', '2', '--yes'])
  assert.equal(nobody.code, 1)
  assert.match(nobody.err, /one of its replicas must run, broker 1 \(b1\), broker 2/)
  assert.deepEqual(rig.client.forced, [])
})
