import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { xxh32 } from '../../src/base/checksum.ts'
import { prng } from '../../src/base/prng.ts'
import type { Consumer, ConsumerOptions, ConsumerRecord } from '../../src/client/api.ts'
import { code } from './support/code.ts'
import type { FakePartition } from './support/fake-log.ts'
import { ADDRESS, type World, world } from './support/world.ts'

type Batches = readonly (readonly string[])[]

/** Writes batches of values into a partition, key and value alike, timestamps 1000, 1001, ... */
async function fill(w: World, topic: string, partition: number, batches: Batches): Promise<void> {
  const producer = w.client.producer()
  let timestamp = 1000
  for (const values of batches) {
    const records = values.map((value) => ({
      topic,
      partition,
      key: value,
      value,
      timestamp: timestamp++,
    }))
    await w.until(producer.sendBatch(records))
  }
  await w.until(producer.close())
}

/** Topic t, partition 0: records '1' and '2' at their offsets; retention took '0'. */
async function fillAndTrim(w: World): Promise<void> {
  const topic = w.broker.create('t', 1)
  await fill(w, 't', 0, [['0'], ['1'], ['2']])
  const log = topic.partitions[0] as FakePartition
  log.batches.shift()
  log.start = 1
}

async function read(w: World, records: AsyncIterable<ConsumerRecord>): Promise<string[]> {
  const values: string[] = []
  const iterator = records[Symbol.asyncIterator]()
  for (;;) {
    const result = await w.until(iterator.next())
    if (result.done === true) return values
    values.push(textOf(result.value))
  }
}

function textOf(record: ConsumerRecord): string {
  return Buffer.from(record.value ?? []).toString()
}

test('a whole topic is read to the end as it was when the consumer began', async () => {
  const w = await world()
  w.broker.create('t', 3)
  await fill(w, 't', 0, [['a', 'b'], ['c']])
  await fill(w, 't', 2, [['x']])
  const consumer = w.client.consumer({ topic: 't', stopAtEnd: true })
  const first = consumer[Symbol.asyncIterator]().next()
  await w.until(first)
  assert.deepEqual(consumer.partitions(), [0, 1, 2])
  await fill(w, 't', 0, [['too late']])
  const rest = await read(w, consumer)
  assert.deepEqual([textOf((await first).value as ConsumerRecord), ...rest].toSorted(), [
    'a',
    'b',
    'c',
    'x',
  ])
  assert.equal(consumer.position(0), 3)
  await w.until(w.client.close())
})

test('an empty topic ends at once when it is read to its end', async () => {
  const w = await world()
  w.broker.create('t', 2)
  assert.deepEqual(await read(w, w.client.consumer({ topic: 't', stopAtEnd: true })), [])
  await w.until(w.client.close())
})

test('a consumer begins where it is told: earliest, latest, offset, offsets, time', async () => {
  const w = await world()
  w.broker.create('t', 2)
  await fill(w, 't', 0, [
    ['0', '1', '2'],
    ['3', '4'],
  ])
  await fill(w, 't', 1, [['x']])
  const from = async (
    start: Parameters<World['client']['consumer']>[0]['from'],
  ): Promise<string[]> =>
    read(
      w,
      w.client.consumer({
        topic: 't',
        partitions: [0],
        stopAtEnd: true,
        ...(start === undefined ? {} : { from: start }),
      }),
    )
  assert.deepEqual(await from(undefined), ['0', '1', '2', '3', '4'])
  assert.deepEqual(await from('earliest'), ['0', '1', '2', '3', '4'])
  assert.deepEqual(await from('latest'), [])
  assert.deepEqual(await from({ offset: 1 }), ['1', '2', '3', '4'])
  assert.deepEqual(await from({ offsets: { 0: 4 } }), ['4'])
  assert.deepEqual(await from({ offsets: { 1: 1 }, otherwise: 'latest' }), [])
  assert.deepEqual(await from({ timestampMs: 1002 }), ['2', '3', '4'])
  assert.deepEqual(await from({ timestampMs: 9999 }), [])
  await w.until(w.client.close())
})

test('a consumer at the tail gets records as they come, and break ends its stream at the broker', async () => {
  const w = await world()
  w.broker.create('t', 1)
  const consumer = w.client.consumer({ topic: 't', from: 'latest' })
  const iterator = consumer[Symbol.asyncIterator]()
  const next = iterator.next()
  await w.pass(100)
  assert.equal(w.broker.openStreams, 1)
  await fill(w, 't', 0, [['now']])
  assert.equal(textOf((await w.until(next)).value as ConsumerRecord), 'now')
  await iterator.return?.()
  await w.pass(10)
  assert.equal(w.broker.openStreams, 0)
  assert.equal((await w.until(iterator.next())).done, true)
  await w.until(w.client.close())
})

test('what is fetched ahead is bounded, and everything still comes', async () => {
  const w = await world()
  const topic = w.broker.create('t', 1)
  const value = (i: number): string => `${i}`.padStart(1000, ' ')
  await fill(
    w,
    't',
    0,
    Array.from({ length: 100 }, (_, i) => [value(i)]),
  )
  const consumer = w.client.consumer({ topic: 't', stopAtEnd: true, prefetchBytes: 5000 })
  const iterator = consumer[Symbol.asyncIterator]()
  const batch = topic.partitions[0]?.batches[0]?.batch as Uint8Array
  await w.until(iterator.next())
  await w.pass(1000)
  const pushed = w.broker.pushedBytes
  assert.ok(pushed <= 5000 + 2 * batch.length, `${pushed} bytes`)
  assert.equal((await read(w, consumer)).length, 99)
  await w.until(w.client.close())
})

test('a key span selects by the hash of the key, passes over batches, and ends at the end', async () => {
  const w = await world()
  w.broker.create('t', 1)
  const keys = Array.from({ length: 60 }, (_, i) => `key ${i}`)
  await fill(
    w,
    't',
    0,
    keys.map((key) => [key, `${key} bis`]),
  )
  const keySpan = { least: 0, greatest: 0x3fff_ffff }
  const inSpan = (key: string): boolean => xxh32(Buffer.from(key)) <= keySpan.greatest
  const consumer = w.client.consumer({ topic: 't', keySpan, stopAtEnd: true })
  const expected = keys.flatMap((key) => [key, `${key} bis`]).filter(inSpan)
  assert.deepEqual(await read(w, consumer), expected)
  assert.equal(consumer.position(0), 120)
  await w.until(w.client.close())
})

test('paused partitions hand out nothing; others go on, and resume leaves nothing out', async () => {
  const w = await world()
  w.broker.create('t', 2)
  await fill(w, 't', 0, [['a0', 'a1'], ['a2']])
  await fill(w, 't', 1, [['b0', 'b1']])
  const consumer = w.client.consumer({ topic: 't', stopAtEnd: true })
  const iterator = consumer[Symbol.asyncIterator]()
  const first = textOf((await w.until(iterator.next())).value as ConsumerRecord)
  assert.equal(first, 'a0')
  consumer.pause([0])
  assert.equal(textOf((await w.until(iterator.next())).value as ConsumerRecord), 'b0')
  assert.equal(textOf((await w.until(iterator.next())).value as ConsumerRecord), 'b1')
  let came = false
  const next = iterator.next()
  void next.then(() => {
    came = true
  })
  await w.pass(5000)
  assert.equal(came, false)
  consumer.resume()
  assert.equal(textOf((await w.until(next)).value as ConsumerRecord), 'a1')
  assert.deepEqual(await read(w, consumer), ['a2'])
  await w.until(w.client.close())
})

test('seek goes anywhere, in the middle of a batch too, and before the first record', async () => {
  const w = await world()
  w.broker.create('t', 1)
  await fill(w, 't', 0, [['0', '1', '2', '3'], ['4']])
  const consumer = w.client.consumer({ topic: 't', stopAtEnd: true })
  consumer.seek(0, 2)
  const iterator = consumer[Symbol.asyncIterator]()
  assert.equal(textOf((await w.until(iterator.next())).value as ConsumerRecord), '2')
  consumer.seek(0, 1)
  assert.equal(consumer.position(0), 1)
  assert.deepEqual(await read(w, consumer), ['1', '2', '3', '4'])
  await w.until(w.client.close())
})

test('batches hold the same records, and say where they end', async () => {
  const w = await world()
  w.broker.create('t', 1)
  await fill(w, 't', 0, [['0', '1', '2', '3'], ['4']])
  const consumer = w.client.consumer({ topic: 't', from: { offset: 1 }, stopAtEnd: true })
  const iterator = consumer.batches()[Symbol.asyncIterator]()
  const first = (await w.until(iterator.next())).value
  assert.deepEqual(first?.records.map(textOf), ['1', '2', '3'])
  assert.equal(first?.nextOffset, 4)
  assert.equal(consumer.position(0), 4)
  assert.deepEqual((await w.until(iterator.next())).value?.records.map(textOf), ['4'])
  assert.equal((await w.until(iterator.next())).done, true)
  await w.until(w.client.close())
})

test('a large batch comes in parts, so that a reader holds few of its records at a time', async () => {
  const w = await world()
  const topic = w.broker.create('t', 1)
  const all = Array.from({ length: 10_000 }, (_, i) => `${i}`)
  await fill(w, 't', 0, [all, ['last']])
  assert.equal(topic.partitions[0]?.batches.length, 2)
  const consumer = w.client.consumer({ topic: 't', from: { offset: 1 }, stopAtEnd: true })
  const values: string[] = []
  for (const iterator = consumer.batches()[Symbol.asyncIterator](); ; ) {
    const { value: part } = await w.until(iterator.next())
    if (part === undefined) break
    assert.ok(part.records.length > 0 && part.records.length <= 4096, `${part.records.length}`)
    values.push(...part.records.map(textOf))
    assert.equal(part.nextOffset, values.length + 1)
    assert.equal(consumer.position(0), values.length + 1)
  }
  assert.deepEqual(values, [...all.slice(1), 'last'])
  await w.until(w.client.close())
})

test('a seek or an abort between the parts of a batch makes the rest of it void', async () => {
  const w = await world()
  w.broker.create('t', 1)
  const all = Array.from({ length: 10_000 }, (_, i) => `${i}`)
  await fill(w, 't', 0, [all])
  const abort = new AbortController()
  const consumer = w.client.consumer({ topic: 't', stopAtEnd: true, signal: abort.signal })
  const iterator = consumer.batches()[Symbol.asyncIterator]()
  const first = async (): Promise<string | undefined> => {
    const [record] = (await w.until(iterator.next())).value?.records ?? []
    return record === undefined ? undefined : textOf(record)
  }
  assert.equal(await first(), '0')
  consumer.seek(0, 9000)
  assert.equal(await first(), '9000')
  consumer.seek(0, 3)
  assert.equal(await first(), '3')
  abort.abort()
  await assert.rejects(w.until(iterator.next()), code('ABORTED'))
  await w.until(w.client.close())
})

test('an offset that retention removed is an error, or the start or the end, as asked', async () => {
  const w = await world()
  await fillAndTrim(w)
  const consumer = (how?: 'earliest' | 'latest'): AsyncIterable<ConsumerRecord> =>
    w.client.consumer({
      topic: 't',
      from: { offset: 0 },
      stopAtEnd: true,
      ...(how === undefined ? {} : { onOffsetOutOfRange: how }),
    })
  await assert.rejects(read(w, consumer()), code('OFFSET_OUT_OF_RANGE'))
  assert.deepEqual(await read(w, consumer('earliest')), ['1', '2'])
  assert.deepEqual(await read(w, consumer('latest')), [])
  await w.until(w.client.close())
})

test('an offset past the end is an error that names the range, or the start or the end, as asked', async () => {
  const w = await world()
  await fillAndTrim(w)
  const consumer = (offset: number, options: Partial<ConsumerOptions>): Consumer =>
    w.client.consumer({ topic: 't', from: { offset }, ...options })
  const beyond = {
    code: 'OFFSET_OUT_OF_RANGE',
    message: "'t', partition 0 has no offset 4: earliest is 1, latest is 3",
    detail: { topic: 't', partition: 0, offset: 4, earliest: 1, latest: 3 },
  }
  for (const stopAtEnd of [true, false]) {
    await assert.rejects(read(w, consumer(4, { stopAtEnd })), beyond)
    const before = consumer(0, { stopAtEnd })
    await assert.rejects(read(w, before), {
      code: 'OFFSET_OUT_OF_RANGE',
      message: /has no offset 0: earliest is 1, latest is 3$/,
    })
    const sought = consumer(1, { stopAtEnd })
    sought.seek(0, 4)
    await assert.rejects(read(w, sought), beyond)
  }
  const stopAtEnd = true
  assert.deepEqual(await read(w, consumer(3, { stopAtEnd })), [])
  const asked = (how: 'earliest' | 'latest'): Promise<string[]> =>
    read(w, consumer(4, { stopAtEnd, onOffsetOutOfRange: how }))
  assert.deepEqual(await asked('earliest'), ['1', '2'])
  assert.deepEqual(await asked('latest'), [])
  await w.until(w.client.close())
})

test('unknown topics and partitions, wrong arguments and aborts end with their code', async () => {
  const w = await world()
  w.broker.create('t', 1)
  await assert.rejects(read(w, w.client.consumer({ topic: 'no' })), code('UNKNOWN_TOPIC'))
  const partitions = [1]
  const other = w.client.consumer({ topic: 't', partitions })
  await assert.rejects(read(w, other), code('UNKNOWN_PARTITION'))
  assert.throws(() => w.client.consumer({ topic: '' }), code('INVALID_ARGUMENT'))
  assert.throws(() => w.client.consumer({ topic: 't', prefetchBytes: 0 }), code('INVALID_ARGUMENT'))
  const abort = new AbortController()
  const consumer = w.client.consumer({ topic: 't', signal: abort.signal })
  const waiting = consumer[Symbol.asyncIterator]().next()
  waiting.catch(() => undefined)
  await w.pass(100)
  abort.abort()
  await assert.rejects(w.until(waiting), code('ABORTED'))
  await w.until(w.client.close())
})

test('deleting the topic ends its consumers with UNKNOWN_TOPIC, behind what had come', async () => {
  const w = await world()
  w.broker.create('t', 1)
  await fill(w, 't', 0, [['0']])
  const iterator = w.client.consumer({ topic: 't' })[Symbol.asyncIterator]()
  assert.equal(textOf((await w.until(iterator.next())).value as ConsumerRecord), '0')
  const next = iterator.next()
  next.catch(() => undefined)
  w.broker.delete('t')
  await assert.rejects(w.until(next), code('UNKNOWN_TOPIC'))
  await w.until(w.client.close())
})

test('a consumer waits for a broker that is away, but not for ever', async () => {
  const w = await world()
  w.broker.create('t', 1)
  await fill(w, 't', 0, [['0']])
  const consumer = w.client.consumer({ topic: 't', unavailableTimeoutMs: 5000 })
  const iterator = consumer[Symbol.asyncIterator]()
  await w.until(iterator.next())
  await w.broker.stop()
  const next = iterator.next()
  next.catch(() => undefined)
  await w.pass(3000)
  await w.broker.start(w.network.streams(ADDRESS.host))
  await fill(w, 't', 0, [['1']])
  assert.equal(textOf((await w.until(next)).value as ConsumerRecord), '1')
  await w.broker.stop()
  await assert.rejects(w.until(iterator.next()), code('CONNECTION_FAILED'))
  await w.until(w.client.close())
})

test('a damaged batch is an error and never a record', async () => {
  const w = await world()
  const topic = w.broker.create('t', 1)
  await fill(w, 't', 0, [['abc']])
  const bytes = topic.partitions[0]?.batches[0]?.batch as Uint8Array
  bytes[bytes.length - 2] = (bytes.at(-2) ?? 0) ^ 1
  const reading = read(w, w.client.consumer({ topic: 't', stopAtEnd: true }))
  await assert.rejects(reading, code('DECODE_FAILED'))
  await w.until(w.client.close())
})

test('property: connections may break at any moment; each record comes once, in order', async () => {
  await fc.assert(
    fc.asyncProperty(fc.integer({ min: 0, max: 2 ** 31 }), async (seed) => {
      const chance = prng(seed)
      const w = await world(seed)
      w.broker.create('t', 2)
      const producer = w.client.producer({ maxBatchRecords: 3, codec: 'lz4', lingerMs: 0 })
      const sent: string[][] = [[], []]
      const consumer = w.client.consumer({ topic: 't', prefetchBytes: 300 })
      const read: string[][] = [[], []]
      const reading = (async () => {
        for await (const record of consumer) {
          assert.equal(record.offset, read[record.partition]?.length)
          read[record.partition]?.push(textOf(record))
          if ((read[0]?.length ?? 0) + (read[1]?.length ?? 0) === 200) return
          // Sometimes slow, so that credit runs out.
          if (chance.below(20) === 0) await w.sleep(20)
          if (chance.below(20) === 0) consumer.seek(record.partition, record.offset + 1)
          if (chance.below(20) === 0) {
            consumer.pause([record.partition])
            void w.sleep(30).then(() => consumer.resume())
          }
        }
      })()
      const sends: Promise<unknown>[] = []
      for (let i = 0; i < 200; i++) {
        const partition = chance.below(2)
        sent[partition]?.push(`${i}`)
        sends.push(producer.send({ topic: 't', partition, value: `${i}` }))
        if (chance.below(4) === 0) await w.pass(chance.below(10))
        if (chance.below(10) === 0) w.broker.breakConnections()
      }
      await w.until(Promise.all(sends))
      await w.until(reading)
      assert.deepEqual(read, sent)
      await w.until(w.client.close())
    }),
    { numRuns: 40, includeErrorInReport: true },
  )
})
