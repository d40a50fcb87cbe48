import assert from 'node:assert/strict'
import { test } from 'node:test'
import { batchesIn, RecordReader } from '../../src/model/batch/decode.ts'
import type { TopicId } from '../../src/model/ids.ts'
import { type ConsumeResponse, consume, type KeySpan } from '../../src/wire/native/consume.ts'
import { consumeClose, consumeCredit } from '../../src/wire/native/consume-credit.ts'
import type { ConsumeData } from '../../src/wire/native/consume-data.ts'
import { deleteTopic } from '../../src/wire/native/delete-topic.ts'
import { readResponse, requestFrame } from '../../src/wire/native/header.ts'
import { eventually, runBroker } from './support/harness.ts'
import { batchOf, RawClient, slotOf } from './support/raw-client.ts'

interface Place {
  readonly partition: number
  readonly offset: number
}

async function open(
  client: RawClient,
  topicId: TopicId,
  places: readonly Place[],
  creditBytes: number,
  keySpan?: KeySpan,
): Promise<{ id: number; response: ConsumeResponse }> {
  const id = client.id()
  const answer = client.answer(id)
  const partitions = places.map((place) => ({ topicId, ...place }))
  client.socket.write(requestFrame(consume, 1, id, { creditBytes, keySpan, partitions }))
  return { id, response: readResponse(consume, await answer) }
}

function grant(client: RawClient, id: number, bytes: number): void {
  client.socket.write(requestFrame(consumeCredit, 1, id, { bytes }))
}

function values(pushes: readonly ConsumeData[], index = 0): string[] {
  const found: string[] = []
  for (const push of pushes) {
    if (push.index !== index) continue
    for (const batch of batchesIn(push.batches)) {
      const reader = new RecordReader(batch)
      for (let r = reader.next(); r !== undefined; r = reader.next()) {
        found.push(Buffer.from(r.value ?? []).toString())
      }
    }
  }
  return found
}

function bytesOf(pushes: readonly ConsumeData[]): number {
  return pushes.reduce((sum, push) => sum + push.batches.length, 0)
}

/** Answered after everything that the broker had to send before. */
async function settled(client: RawClient, topicId: TopicId): Promise<void> {
  await client.fetch(topicId, 0, 0)
}

test('a stream pushes what is there and then each record as it commits', async () => {
  await using running = await runBroker()
  const client = await RawClient.ready(running.port)
  const topic = await client.createTopic('t', { partitions: 2, segmentEntries: 3 })
  for (let i = 0; i < 8; i++) await client.send(topic, 0, `${i}`)
  const places = [
    { partition: 0, offset: 2 },
    { partition: 1, offset: 0 },
  ]
  const { response } = await open(client, topic, places, 1 << 20)
  assert.deepEqual(response.partitions, [
    { error: undefined, highWatermark: 8, logStart: 0 },
    { error: undefined, highWatermark: 0, logStart: 0 },
  ])
  await client.pushed((p) => values(p).length === 6)
  const sent = Array.from({ length: 20 }, (_, i) => client.send(topic, i % 2, `${8 + i}`))
  await Promise.all(sent)
  await client.pushed((p) => values(p).length === 16 && values(p, 1).length === 10)
  assert.deepEqual(values(client.pushes), [
    '2',
    '3',
    '4',
    '5',
    '6',
    '7',
    ...Array.from({ length: 10 }, (_, i) => `${8 + 2 * i}`),
  ])
  client.close()
})

test('nothing is pushed beyond the credit, but for the batch that overdraws it', async () => {
  await using running = await runBroker()
  const client = await RawClient.ready(running.port)
  const topic = await client.createTopic('t')
  for (let i = 0; i < 10; i++) await client.send(topic, 0, `${i}`)
  const size = batchOf(['0']).length
  const { id } = await open(client, topic, [{ partition: 0, offset: 0 }], 2 * size + 1)
  await client.pushed((p) => bytesOf(p) >= 3 * size)
  await settled(client, topic)
  assert.equal(bytesOf(client.pushes), 3 * size)
  // The debt of the overdrawn batch is paid first.
  grant(client, id, size - 1)
  await settled(client, topic)
  assert.equal(bytesOf(client.pushes), 3 * size)
  grant(client, id, 1)
  await client.pushed((p) => bytesOf(p) === 4 * size)
  grant(client, id, 1 << 20)
  await client.pushed((p) => values(p).length === 10)
  client.close()
})

test('partitions take turns: a large one does not starve a small one', async () => {
  await using running = await runBroker()
  const client = await RawClient.ready(running.port)
  const topic = await client.createTopic('t', { maxMessageBytes: 1 << 20 })
  const large = 'x'.repeat(900_000)
  for (let i = 0; i < 6; i++) await client.send(topic, 0, large)
  await client.send(topic, 1, 'small')
  const places = [
    { partition: 0, offset: 0 },
    { partition: 1, offset: 0 },
  ]
  await open(client, topic, places, 1 << 30)
  await client.pushed((p) => values(p, 1).length === 1 && values(p).length === 6)
  const small = client.pushes.findIndex((push) => push.index === 1)
  assert.ok(small <= 1, `the small partition came after ${small} pushes`)
  client.close()
})

test('a key span leaves out batches without such keys and says how far it has come', async () => {
  await using running = await runBroker()
  const client = await RawClient.ready(running.port)
  const topic = await client.createTopic('t')
  const send = (least: number, greatest: number, text: string): Promise<unknown> =>
    client.produce([
      { ...slotOf(topic, 0, batchOf([text])), leastKeyHash: least, greatestKeyHash: greatest },
    ])
  await send(0, 10, 'low')
  await send(20, 30, 'high')
  await send(8, 25, 'both')
  await send(40, 50, 'beyond')
  const span = { least: 20, greatest: 30 }
  await open(client, topic, [{ partition: 0, offset: 0 }], 1 << 20, span)
  await client.pushed((p) => p.some((push) => push.nextOffset === 4))
  assert.deepEqual(values(client.pushes), ['high', 'both'])
  await send(60, 70, 'later')
  await client.pushed((p) => p.some((push) => push.nextOffset === 5))
  assert.deepEqual(values(client.pushes), ['high', 'both'])
  client.close()
})

test('a partition that cannot be read says so and the others are streamed', async () => {
  await using running = await runBroker()
  const client = await RawClient.ready(running.port)
  const topic = await client.createTopic('t', { partitions: 2 })
  await client.send(topic, 1, 'a')
  const places = [
    { partition: 0, offset: 9 },
    { partition: 7, offset: 0 },
    { partition: 1, offset: 0 },
  ]
  const { response } = await open(client, topic, places, 1 << 20)
  assert.deepEqual(
    response.partitions.map((p) => p.error),
    ['OFFSET_OUT_OF_RANGE', 'UNKNOWN_PARTITION', undefined],
  )
  await client.pushed((p) => values(p, 2).length === 1)
  client.close()
})

test('tail reads touch no file, and a reader behind the cache gets all of it in order', async () => {
  await using running = await runBroker()
  const client = await RawClient.ready(running.port)
  const topic = await client.createTopic('t', { segmentEntries: 10 })
  for (let i = 0; i < 35; i++) await client.send(topic, 0, `${i}`)
  let reads = 0
  for (const log of running.store.logs.values()) {
    log.cold = log.sealed
    const read = log.read.bind(log)
    log.read = (...args) => {
      reads++
      return read(...args)
    }
  }
  await open(client, topic, [{ partition: 0, offset: 31 }], 1 << 20)
  await client.pushed((p) => values(p).length === 4)
  assert.equal(reads, 0)
  client.pushes.length = 0
  await open(client, topic, [{ partition: 0, offset: 0 }], 1 << 20)
  await client.pushed((p) => values(p).length === 35)
  assert.ok(reads > 0)
  assert.deepEqual(
    values(client.pushes),
    Array.from({ length: 35 }, (_, i) => `${i}`),
  )
  client.close()
})

test('a closed stream is silent, and its number is free again', async () => {
  await using running = await runBroker()
  const client = await RawClient.ready(running.port)
  const topic = await client.createTopic('t')
  const { id } = await open(client, topic, [{ partition: 0, offset: 0 }], 1 << 20)
  client.socket.write(requestFrame(consumeClose, 1, id, {}))
  await client.send(topic, 0, 'a')
  await settled(client, topic)
  assert.deepEqual(client.pushes, [])
  // A grant for a stream that is not there any more is ignored.
  grant(client, id, 10)
  await settled(client, topic)
  client.close()
})

test('deleting a topic ends its streams, polls and producers with UNKNOWN_TOPIC', async () => {
  await using running = await runBroker()
  const client = await RawClient.ready(running.port)
  const admin = await RawClient.ready(running.port)
  const topic = await client.createTopic('t', { partitions: 2 })
  await client.send(topic, 0, 'a')
  const places = [
    { partition: 0, offset: 1 },
    { partition: 1, offset: 0 },
  ]
  await open(client, topic, places, 0)
  const polled = client.fetch(topic, 0, 1, { maxWaitMs: 10_000 })
  running.store.automatic = false
  const inFlight = client.produce([slotOf(topic, 0, batchOf(['in flight']))])
  await settled(client, topic)
  assert.equal([...running.store.logs.values()][0]?.end, 2)
  running.store.roomNow = 'wait'
  const held = client.produce([slotOf(topic, 0, batchOf(['held']))])
  await admin.fetch(topic, 0, 0)
  await admin.ask(deleteTopic, { name: 't' })
  assert.equal((await inFlight)[0]?.error, 'UNKNOWN_TOPIC')
  assert.equal((await held)[0]?.error, 'UNKNOWN_TOPIC')
  assert.equal((await polled).error, 'UNKNOWN_TOPIC')
  assert.deepEqual(running.store.keys(), [])
  running.store.roomNow = 'ok'
  running.store.automatic = true
  const again = await client.createTopic('t')
  assert.notEqual(again, topic)
  assert.equal(await client.send(again, 0, 'new life'), 0)
  assert.equal((await client.fetch(topic, 0, 0)).error, 'UNKNOWN_TOPIC')
  client.close()
  admin.close()
})

test('a stream with credit hears of the deletion without asking', async () => {
  await using running = await runBroker()
  const client = await RawClient.ready(running.port)
  const topic = await client.createTopic('t')
  await open(client, topic, [{ partition: 3, offset: 0 }], 100)
  await client.ask(deleteTopic, { name: 't' })
  await client.pushed((p) => p.some((push) => push.error === 'UNKNOWN_TOPIC'))
  client.close()
})

test('retention drops sealed segments, and a reader below the new start is told', async () => {
  await using running = await runBroker()
  const client = await RawClient.ready(running.port)
  const topic = await client.createTopic('t', { segmentEntries: 2, retentionMs: 1000 })
  for (let i = 0; i < 5; i++) await client.send(topic, 0, `${i}`)
  const { id } = await open(client, topic, [{ partition: 0, offset: 0 }], 1)
  await client.pushed((p) => p.length === 1)
  running.clock.advance(1000)
  await eventually(() => running.store.keys().length === 1)
  const refused = await client.fetch(topic, 0, 0)
  assert.deepEqual([refused.error, refused.logStart], ['OFFSET_OUT_OF_RANGE', 4])
  assert.equal((await client.fetch(topic, 0, 4)).error, undefined)
  grant(client, id, 1000)
  await client.pushed((p) => p.some((push) => push.error === 'OFFSET_OUT_OF_RANGE'))
  client.close()
})
