import assert from 'node:assert/strict'
import { test } from 'node:test'
import { ACKS_LEADER } from '../../src/broker/sinks.ts'
import { batchesIn, RecordReader } from '../../src/model/batch/decode.ts'
import { leaderEpoch } from '../../src/model/batch/header.ts'
import type { TopicId } from '../../src/model/ids.ts'
import { addPartitions } from '../../src/wire/native/add-partitions.ts'
import type { FetchedPartition } from '../../src/wire/native/fetch.ts'
import { listOffsets } from '../../src/wire/native/list-offsets.ts'
import { eventually, runBroker } from './support/harness.ts'
import { batchOf, RawClient, slotOf } from './support/raw-client.ts'

function valuesOf(fetched: FetchedPartition): string[] {
  const values: string[] = []
  for (const bytes of fetched.batches) {
    for (const batch of batchesIn(bytes)) {
      const reader = new RecordReader(batch)
      for (let r = reader.next(); r !== undefined; r = reader.next()) {
        values.push(Buffer.from(r.value ?? []).toString())
      }
    }
  }
  return values
}

/** Answered after all that was asked before has reached the broker. */
async function arrived(client: RawClient, topic: TopicId): Promise<void> {
  await client.fetch(topic, 0, 0)
}

test('records are read back at the offsets that were acknowledged', async () => {
  await using running = await runBroker()
  const client = await RawClient.ready(running.port)
  const topic = await client.createTopic('t', { partitions: 2 })
  assert.equal(await client.send(topic, 0, 'a', 'b'), 0)
  assert.equal(await client.send(topic, 0, 'c'), 2)
  assert.equal(await client.send(topic, 1, 'x'), 0)
  const all = await client.fetch(topic, 0, 0)
  assert.deepEqual(valuesOf(all), ['a', 'b', 'c'])
  assert.equal(all.highWatermark, 3)
  assert.deepEqual(valuesOf(await client.fetch(topic, 0, 2)), ['c'])
  assert.deepEqual(valuesOf(await client.fetch(topic, 0, 3)), [])
  assert.equal((await client.fetch(topic, 0, 4)).error, 'OFFSET_OUT_OF_RANGE')
  assert.equal((await client.fetch(topic, 2, 0)).error, 'UNKNOWN_PARTITION')
  client.close()
})

test('nothing is readable and nobody is answered before the sync returned', async () => {
  await using running = await runBroker()
  const client = await RawClient.ready(running.port)
  const topic = await client.createTopic('t')
  running.store.automatic = false
  let answered = false
  const sent = client.send(topic, 0, 'a').then(() => {
    answered = true
  })
  await eventually(() => running.store.keys().length === 1)
  assert.equal((await client.fetch(topic, 0, 0)).highWatermark, 0)
  assert.equal(answered, false)
  running.store.release()
  await sent
  assert.equal((await client.fetch(topic, 0, 0)).highWatermark, 1)
  client.close()
})

test('requests that overlap share one group commit', async () => {
  await using running = await runBroker()
  const client = await RawClient.ready(running.port)
  const topic = await client.createTopic('t')
  running.store.automatic = false
  const sent = Array.from({ length: 500 }, (_, i) => client.send(topic, i % 64, `${i}`))
  await eventually(() => [...running.store.logs.values()][0]?.end === 500)
  const before = running.store.commits
  running.store.release()
  await Promise.all(sent)
  assert.equal(running.store.commits, before + 1)
  client.close()
})

test('acks 0 is stored without an answer, acks 1 is answered', async () => {
  await using running = await runBroker()
  const client = await RawClient.ready(running.port)
  const topic = await client.createTopic('t')
  const id = client.id()
  const { produceFrame } = await import('../../src/wire/native/produce.ts')
  client.socket.write(
    Buffer.concat(produceFrame(1, id, 0, 1000, [slotOf(topic, 0, batchOf(['silent']))])),
  )
  const [result] = await client.produce([slotOf(topic, 0, batchOf(['told']))], ACKS_LEADER)
  assert.equal(result?.baseOffset, 1)
  assert.deepEqual(client.strays, [])
  client.close()
})

test('one request with good and bad batches answers each by itself', async () => {
  await using running = await runBroker()
  const client = await RawClient.ready(running.port)
  const topic = await client.createTopic('t', { partitions: 3, maxMessageBytes: 1024 })
  const corrupt = batchOf(['x'])
  corrupt[corrupt.length - 1] = (corrupt[corrupt.length - 1] as number) ^ 1
  const codec = batchOf(['x'])
  codec[22] = 7
  const { setBatchCrc, recordCount } = await import('../../src/model/batch/header.ts')
  setBatchCrc(codec)
  const count = batchOf(['x', 'y'])
  count[60] = 5
  setBatchCrc(count)
  assert.equal(recordCount(count), 5)
  const control = batchOf(['x'])
  control[22] = 0x20
  setBatchCrc(control)
  const magic = batchOf(['x'])
  magic[16] = 1
  const results = await client.produce([
    slotOf(topic, 0, batchOf(['good'])),
    slotOf(topic, 0, corrupt),
    slotOf(topic, 0, codec),
    slotOf(topic, 0, count),
    slotOf(topic, 0, control),
    slotOf(topic, 0, magic),
    slotOf(topic, 0, batchOf(['x'.repeat(2000)])),
    slotOf(topic, 3, batchOf(['x'])),
    slotOf('00'.repeat(16) as never, 0, batchOf(['x'])),
    slotOf(topic, 0, batchOf(['good too'])),
  ])
  assert.deepEqual(
    results.map((r) => r.error ?? r.baseOffset),
    [
      0,
      'CORRUPT_BATCH',
      'UNSUPPORTED_BATCH',
      'CORRUPT_BATCH',
      'UNSUPPORTED_BATCH',
      'UNSUPPORTED_BATCH',
      'BATCH_TOO_LARGE',
      'UNKNOWN_PARTITION',
      'UNKNOWN_TOPIC',
      1,
    ],
  )
  client.close()
})

test('a range rolls at its limit under load: producers wait, offsets run on, readers cross over', async () => {
  await using running = await runBroker()
  const client = await RawClient.ready(running.port)
  const topic = await client.createTopic('t', { partitions: 4, segmentEntries: 10 })
  const sent = Array.from({ length: 200 }, (_, i) => client.send(topic, i % 4, `${i}`))
  const offsets = await Promise.all(sent)
  for (let p = 0; p < 4; p++) {
    const mine = offsets.filter((_, i) => i % 4 === p)
    assert.deepEqual(
      mine,
      Array.from({ length: 50 }, (_, i) => i),
    )
  }
  const segments = running.broker.topics.find({ name: 't' }).ranges[0]?.segments ?? []
  assert.ok(segments.length >= 19, `${segments.length} segments`)
  let offset = 0
  const values: string[] = []
  while (offset < 50) {
    const fetched = await client.fetch(topic, 1, offset)
    for (const bytes of fetched.batches) {
      for (const batch of batchesIn(bytes)) {
        const place = segments.findIndex((s) => s.segment === leaderEpoch(batch))
        assert.ok(place >= 0, 'the epoch of a batch is its segment')
      }
    }
    const got = valuesOf(fetched)
    values.push(...got)
    offset += got.length
  }
  assert.deepEqual(
    values,
    Array.from({ length: 50 }, (_, i) => `${4 * i + 1}`),
  )
  client.close()
})

test('a roll that fails is tried again while producers wait', async () => {
  await using running = await runBroker()
  const client = await RawClient.ready(running.port)
  const topic = await client.createTopic('t', { segmentEntries: 2 })
  const segments = (): number =>
    running.broker.topics.find({ name: 't' }).ranges[0]?.segments.length ?? 0
  running.store.failStage = new Error('no room for a state')
  for (let i = 0; i < 2; i++) assert.equal(await client.send(topic, 0, `${i}`), i)
  const waiting = client.send(topic, 0, '2')
  await arrived(client, topic)
  assert.deepEqual([running.store.failStage, segments()], [undefined, 1])
  await eventually(() => {
    running.clock.advance(25)
    return segments() === 2
  })
  assert.equal(await waiting, 2)
  client.close()
})

test('after a restart the open segment is readable, and the first produce rolls it', async () => {
  await using first = await runBroker()
  const before = await RawClient.ready(first.port)
  const topic = await before.createTopic('t', { partitions: 2 })
  await before.send(topic, 0, 'a', 'b')
  await using running = await first.restart()
  const client = await RawClient.ready(running.port)
  assert.deepEqual(valuesOf(await client.fetch(topic, 0, 0)), ['a', 'b'])
  const segments = (): number =>
    running.broker.topics.find({ name: 't' }).ranges[0]?.segments.length ?? 0
  assert.equal(segments(), 1)
  assert.equal(await client.send(topic, 0, 'c'), 2)
  assert.equal(segments(), 2)
  assert.equal(await client.send(topic, 1, 'x'), 0)
  assert.deepEqual(valuesOf(await client.fetch(topic, 0, 0)), ['a', 'b'])
  assert.deepEqual(valuesOf(await client.fetch(topic, 0, 2)), ['c'])
  await using again = await running.restart()
  const later = await RawClient.ready(again.port)
  assert.equal(await later.send(topic, 0, 'd'), 3)
  assert.deepEqual(valuesOf(await later.fetch(topic, 0, 3)), ['d'])
  later.close()
})

test('a topic that was empty at the restart takes produces too', async () => {
  await using first = await runBroker()
  const before = await RawClient.ready(first.port)
  const topic = await before.createTopic('t')
  await using running = await first.restart()
  const client = await RawClient.ready(running.port)
  assert.equal((await client.fetch(topic, 5, 0)).highWatermark, 0)
  assert.equal(await client.send(topic, 5, 'a'), 0)
  client.close()
})

test('a retried batch is stored once: while pending, after commit, after a roll, after a restart', async () => {
  await using first = await runBroker()
  const before = await RawClient.ready(first.port)
  const topic = await before.createTopic('t', { segmentEntries: 3 })
  const batch = (sequence: number, text: string, producerEpoch = 0): Uint8Array =>
    batchOf([text], { producerId: 7, producerEpoch, baseSequence: sequence })
  const send = async (client: RawClient, bytes: Uint8Array): Promise<string | number> => {
    const [r] = await client.produce([slotOf(topic, 0, bytes)])
    return r?.error ?? (r?.baseOffset as number)
  }
  first.store.automatic = false
  const both = Promise.all([send(before, batch(0, 'a')), send(before, batch(0, 'a'))])
  await eventually(() => [...first.store.logs.values()][0]?.end === 1)
  await before.fetch(topic, 0, 0)
  assert.equal([...first.store.logs.values()][0]?.end, 1)
  first.store.automatic = true
  first.store.commit()
  assert.deepEqual(await both, [0, 0])
  assert.equal(await send(before, batch(0, 'a')), 0)
  assert.equal(await send(before, batch(2, 'gap')), 'OUT_OF_ORDER_SEQUENCE')
  for (let i = 1; i < 7; i++) assert.equal(await send(before, batch(i, `${i}`)), i)
  assert.equal(await send(before, batch(6, '6')), 6)
  assert.equal(await send(before, batch(0, 'a')), 'DUPLICATE_SEQUENCE')
  await using running = await first.restart()
  const client = await RawClient.ready(running.port)
  assert.equal(await send(client, batch(6, '6')), 6)
  assert.equal(await send(client, batch(7, '7')), 7)
  assert.equal(await send(client, batch(0, 'new', 1)), 8)
  assert.equal(await send(client, batch(8, 'old')), 'PRODUCER_FENCED')
  client.close()
})

test('added partitions take records, the old ones keep theirs, and a restart knows both', async () => {
  await using first = await runBroker()
  const before = await RawClient.ready(first.port)
  const topic = await before.createTopic('t', { partitions: 2 })
  await before.send(topic, 1, 'old')
  assert.equal((await before.fetch(topic, 2, 0)).error, 'UNKNOWN_PARTITION')
  await before.ask(addPartitions, { name: 't', partitions: 5 })
  assert.equal(await before.send(topic, 4, 'new'), 0)
  assert.equal(await before.send(topic, 1, 'old too'), 1)
  await using running = await first.restart()
  const client = await RawClient.ready(running.port)
  assert.deepEqual(valuesOf(await client.fetch(topic, 4, 0)), ['new'])
  assert.deepEqual(valuesOf(await client.fetch(topic, 1, 0)), ['old', 'old too'])
  assert.equal(await client.send(topic, 4, 'newer'), 1)
  client.close()
})

test('a full disk refuses writes and serves reads; too little room makes producers wait', async () => {
  await using running = await runBroker()
  const client = await RawClient.ready(running.port)
  const topic = await client.createTopic('t')
  await client.send(topic, 0, 'a')
  running.store.roomNow = 'full'
  await assert.rejects(client.send(topic, 0, 'b'), { code: 'STORAGE_FULL', retriable: true })
  assert.deepEqual(valuesOf(await client.fetch(topic, 0, 0)), ['a'])
  running.store.roomNow = 'wait'
  const order: number[] = []
  const waiting = ['c', 'd', 'e'].map(async (v) => order.push(await client.send(topic, 0, v)))
  const late = client.produce([slotOf(topic, 0, batchOf(['late']))], 255, 60)
  await arrived(client, topic)
  running.clock.advance(60)
  assert.equal((await late)[0]?.error, 'TIMEOUT')
  running.store.roomNow = 'ok'
  running.broker.roomAgain()
  await Promise.all(waiting)
  assert.deepEqual(order, [1, 2, 3])
  client.close()
})

test('what waits is bounded in bytes: the rest is refused at once', async () => {
  await using running = await runBroker()
  const client = await RawClient.ready(running.port)
  const topic = await client.createTopic('t')
  running.store.roomNow = 'wait'
  const value = 'x'.repeat(900_000)
  const produced = Array.from({ length: 6 }, () =>
    client.produce([slotOf(topic, 0, batchOf([value]))], 255, 300),
  )
  await arrived(client, topic)
  running.clock.advance(300)
  const errors = (await Promise.all(produced)).map(([r]) => r?.error)
  assert.deepEqual(
    errors.map(String).toSorted((a, b) => a.localeCompare(b)),
    [
      ...Array.from({ length: 4 }, () => 'TIMEOUT'),
      ...Array.from({ length: 2 }, () => 'TOO_MANY_REQUESTS'),
    ],
  )
  client.close()
})

test('a long poll ends with the first record, or empty when its time is over', async () => {
  await using running = await runBroker()
  const reader = await RawClient.ready(running.port)
  const writer = await RawClient.ready(running.port)
  const topic = await writer.createTopic('t')
  const polled = reader.fetch(topic, 0, 0, { maxWaitMs: 10_000 })
  const other = reader.fetch(topic, 1, 0, { maxWaitMs: 30 })
  await arrived(reader, topic)
  running.clock.advance(30)
  assert.deepEqual(valuesOf(await other), [])
  await writer.send(topic, 0, 'now')
  assert.deepEqual(valuesOf(await polled), ['now'])
  reader.close()
  writer.close()
})

test('offsets are found by time inside a batch, across segments, and at both ends', async () => {
  await using running = await runBroker()
  const client = await RawClient.ready(running.port)
  const topic = await client.createTopic('t', { segmentEntries: 2 })
  for (let i = 0; i < 6; i++) {
    const batch = batchOf(['a', 'b', 'c'], undefined, 1000 + 10 * i)
    assert.equal((await client.produce([slotOf(topic, 0, batch)]))[0]?.baseOffset, 3 * i)
  }
  const find = async (at: number): Promise<[number, number]> => {
    const found = await client.ask(listOffsets, {
      partitions: [{ topicId: topic, partition: 0, at }],
    })
    const [first] = found.partitions
    return [first?.offset ?? 0, first?.timestamp ?? 0]
  }
  assert.deepEqual(await find(-2), [0, -1])
  assert.deepEqual(await find(-1), [18, -1])
  assert.deepEqual(await find(0), [0, 1000])
  assert.deepEqual(await find(1021), [7, 1021])
  assert.deepEqual(await find(1023), [9, 1030])
  assert.deepEqual(await find(1053), [-1, -1])
  client.close()
})
