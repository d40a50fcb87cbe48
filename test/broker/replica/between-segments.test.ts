// What is said of a segment and arrives when the next one is open already: by a leader that does not know of it yet, or by the disk.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setImmediate as turn } from 'node:timers/promises'
import { ACKS_LEADER } from '../../../src/broker/sinks.ts'
import { apply } from '../../../src/core/metadata/machine.ts'
import type { NodeId } from '../../../src/model/ids.ts'
import type { DataMessage } from '../../../src/wire/data/types.ts'
import { batchOf } from '../support/raw-client.ts'
import { A, B, C, Rig } from './rig.ts'

/** Of the stream to its first follower of its first segment. */
const FIRST_CHANNEL = 1

/** The high watermark of the first segment, said by its leader A, and late. */
function lateWatermark(rig: Rig, to: NodeId, highWatermark: number): void {
  const message: DataMessage = {
    kind: 'watermarks',
    of: [{ channel: FIRST_CHANNEL, highWatermark }],
  }
  rig.node(to).broker.received(A, 1, message)
}

async function rollTo(rig: Rig, placement: readonly NodeId[]): Promise<void> {
  rig.placement = placement
  rig.node(A).replicas.giveEndAsked(rig.key, 0, 'policy')
  await rig.until('the successor is open', () => rig.segments().length === 2)
}

test('a late high watermark of the segment before makes nothing readable on a follower', async () => {
  await using rig = await Rig.make()
  for (const value of ['0', '1', '2']) await rig.produce(A, value)
  await rollTo(rig, [A, B, C])
  await rig.produce(A, '3')
  await rig.until('B knows', async () => (await rig.read(B)).length === 4)
  rig.node(C).store.automatic = false
  await rig.produce(A, 'not on C', ACKS_LEADER)
  await rig.until('B has it', () => rig.entriesAt(B, 2) === 2)
  await turn()
  lateWatermark(rig, B, 3)
  assert.deepEqual(await rig.read(B), [0, 1, 2, 3])
  rig.placement = []
  assert.equal((await rig.node(B).replicas.fence(rig.key)).highWatermark, 1)
})

test('a late high watermark of the segment before acknowledges nothing on who leads now', async () => {
  await using rig = await Rig.make()
  for (const value of ['0', '1', '2']) await rig.produce(A, value)
  await rollTo(rig, [B, A, C])
  await rig.until('B leads', async () => (await rig.produce(B, '3')).offset === 3)
  rig.placement = []
  rig.node(C).store.automatic = false
  let answered = false
  void rig.produce(B, 'not on C').then(() => {
    answered = true
  })
  await rig.until('A has it', () => rig.entriesAt(A, 2) === 2)
  await turn()
  lateWatermark(rig, B, 2)
  await turn()
  assert.equal(answered, false)
  assert.deepEqual(await rig.read(B), [0, 1, 2, 3])
})

test('a fence whose sync ends when the successor is open concerns nothing of that one', async () => {
  await using rig = await Rig.make()
  await rig.produce(A, '0')
  const log = rig.node(B).store.find(rig.key)
  assert.ok(log !== undefined)
  let synced = (): void => {}
  log.fence = async () => {
    await new Promise<void>((resolve) => {
      synced = resolve
    })
    return 1
  }
  const fenced = rig.node(B).replicas.fence(rig.key)
  await rollTo(rig, [A, B, C])
  synced()
  await assert.rejects(fenced, { code: 'METADATA_CONFLICT' })
  assert.equal((await rig.produce(A, '1')).offset, 1)
  assert.equal(rig.entriesAt(B, 2), 1)
})

test('a retry that waits for an entry which the seal cuts off is not answered by the next entry of that number', async () => {
  await using rig = await Rig.make()
  await rig.produce(A, '0')
  const { key } = rig
  rig.placement = []
  rig.net.cut(A, B)
  rig.net.cut(A, C)
  const idempotence = { producerId: 7, producerEpoch: 0, baseSequence: 0 }
  const batch = (): Uint8Array => batchOf(['on A alone'], idempotence)
  const answers = Promise.all([rig.produceBatch(A, batch()), rig.produceBatch(A, batch())])
  for (const id of [B, C]) assert.equal((await rig.node(id).replicas.fence(key)).end, 1)
  rig.net.heal()
  rig.placement = [A, B, C]
  rig.roll(B, key, 1, 0)
  await rig.until('A leads on', () => rig.segments().length === 2)
  for (let i = 1; i < 4; i++) assert.equal((await rig.produce(A, `${i}`)).offset, i)
  const codes = (await answers).map(({ code }) => code)
  assert.deepEqual(codes, ['NOT_LEADER', 'NOT_LEADER'])
})

test('a batch below the end of its segment is acknowledged, though the next one has ended as well when its leader hears of it', async () => {
  await using rig = await Rig.make()
  rig.placement = []
  rig.node(C).store.automatic = false
  const answer = rig.produce(A, 'not on C')
  await rig.until('A gives an end', () => rig.given.length > 0)
  const { state } = rig.metadata
  const { topicId } = rig.topic
  const rolls = [
    { segment: 1, endEntry: 1 },
    { segment: 2, endEntry: 0 },
  ]
  for (const { segment, endEntry } of rolls) {
    const placement = { replicas: [B, C], token: `${segment}`.repeat(32), stateDigest: 'd' }
    const roll = { kind: 'RollSegment', topicId, range: 0, segment, attempt: 0, endEntry } as const
    const more = { tailFrom: 0, nextOffsets: [1, 0], placement, timeMs: 2 }
    assert.ok(apply(state, { ...roll, ...more }, state.appliedIndex + 1).result.ok)
  }
  // Now those who listen hear of all of it.
  const altered = { kind: 'AlterTopic', topicId, changes: { segmentMs: 60_000 } } as const
  assert.ok((await rig.metadata.propose(altered)).ok)
  assert.deepEqual(await answer, { offset: 0, code: undefined })
})
