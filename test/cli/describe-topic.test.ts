// How a topic is shown whose brokers are not all there.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { nodeId } from '../../src/model/ids.ts'
import type { RangeView, SegmentView } from '../../src/model/metadata.ts'
import type { MemberState } from '../../src/model/swim.ts'
import { Rig } from './rig.ts'

const [ONE, TWO, THREE] = [node(1), node(2), node(3)]

function node(number: number) {
  return nodeId(String(number).padStart(32, '0'))
}

function broker(number: number, state: MemberState) {
  return {
    nodeId: node(number),
    nodeNumber: number,
    displayName: `b${number}`,
    host: '127.0.0.1',
    clientPort: 2921,
    state,
    role: 'member' as const,
    hostLabel: '',
    rackLabel: '',
    shards: 1,
    leads: 1,
    version: '',
    diskTotalBytes: 0,
    diskFreeBytes: 0,
    diskFull: false,
  }
}

function segment(number: number, changes: Partial<SegmentView> = {}): SegmentView {
  const replicas = [2, 1, 3].map(node)
  const sealed = { state: 'sealed', endEntry: 10, digest: 'd1' } as const
  return { segment: number, replicas, firstOffsets: [0], openedAtMs: 0, ...sealed, ...changes }
}

async function rigWith(segments: readonly SegmentView[], third: MemberState): Promise<Rig> {
  const rig = new Rig()
  rig.client.brokers = [broker(1, 'alive'), broker(2, 'alive'), broker(3, third)]
  await rig.run(['create-topic', 't', '3'])
  const topic = rig.client.topics.get('t')
  assert.ok(topic !== undefined)
  const lines = { parents: [], children: [] }
  const range = { range: 0, state: 'active', firstPartition: 0, endPartition: 1, ...lines } as const
  const ranges: RangeView[] = [{ ...range, segments }]
  const policy = { ...topic.policy, replicationFactor: 3 }
  rig.client.topics.set('t', { ...topic, policy, ranges })
  return rig
}

/** The cells of the segments' rows. */
async function rows(rig: Rig): Promise<string[][]> {
  const ran = await rig.run(['describe-topic', 't'])
  const out = Buffer.from(ran.out, 'latin1').toString()
  const table = out.slice(out.indexOf('│ range │ segment'))
  const lines = table.split('\n').filter((line) => /^│ +0 /.test(line))
  return lines.map((line) =>
    line
      .split('│')
      .slice(2, -1)
      .map((cell) => cell.trim()),
  )
}

function openSegment(number: number): SegmentView {
  const { endEntry: _none, ...rest } = segment(number, { state: 'open', digest: '' })
  return { ...rest, held: { entries: 5, bytes: 2048 } }
}

test('segments are shown with the numbers of who holds them, the leader first, and what is held', async () => {
  const rig = await rigWith([segment(1), openSegment(2)], 'alive')
  assert.deepEqual(await rows(rig), [
    ['1', 'sealed', '10', '-', '2 1 3'],
    ['2', 'open', '5', '2.0 KiB', '2 1 3'],
  ])
})

test('a replica whose broker is missing is not in sync, and a segment says how many are', async () => {
  const rig = await rigWith([segment(1), openSegment(2)], 'dead')
  const [sealed, open] = await rows(rig)
  assert.deepEqual([sealed?.[1], sealed?.at(-1)], ['sealed, 2 of 3 replicas', '2 1 (3)'])
  assert.deepEqual([open?.[1], open?.at(-1)], ['open, 2 of 3 replicas', '2 1 (3)'])
})

test('a sealed segment settles until its replicas are known to be equal, and is in sync nowhere while its end is elsewhere', async () => {
  const unsettled = segment(1, { digest: '' })
  const rig = await rigWith([unsettled, { ...unsettled, segment: 2, tail: { from: 7 } }], 'alive')
  const [equal, short] = await rows(rig)
  assert.deepEqual([equal?.[1], equal?.at(-1)], ['settling', '2 1 3'])
  assert.deepEqual([short?.[1], short?.at(-1)], ['settling, 0 of 3 replicas', '(2) (1) (3)'])
})

test('of many segments the newest are shown, and those that lack something; JSON has all', async () => {
  const many = Array.from({ length: 20 }, (_, i) => segment(i + 1, i === 3 ? { digest: '' } : {}))
  const rig = await rigWith(many, 'alive')
  const shown = (await rows(rig)).map(([number]) => number)
  assert.deepEqual(shown, ['4', '16', '17', '18', '19', '20'])
  assert.match((await rig.run(['describe-topic', 't'])).out, /14 older segments not shown/)
  const { out } = await rig.run(['describe-topic', 't', '--json'])
  const { ranges } = JSON.parse(out) as { ranges: { segments: Record<string, unknown>[] }[] }
  assert.equal(ranges[0]?.segments.length, 20)
  const { settled, in_sync, replicas, held_entries } = ranges[0]?.segments[0] ?? {}
  assert.deepEqual([settled, held_entries], [true, null])
  assert.deepEqual(
    [replicas, in_sync],
    [
      [TWO, ONE, THREE],
      [TWO, ONE, THREE],
    ],
  )
})
