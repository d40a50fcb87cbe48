import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { CODECS } from '../../src/base/codec.ts'
import type { EastGuardError, ErrorCode } from '../../src/base/errors.ts'
import { prng } from '../../src/base/prng.ts'
import type { RecordPlace } from '../../src/client/api.ts'
import { readRecords } from '../../src/model/batch/decode.ts'
import { producerEpoch, recordCount } from '../../src/model/batch/header.ts'
import { partitionOf } from '../../src/model/partitioner.ts'
import { code } from './support/code.ts'
import type { Fate } from './support/fake-broker.ts'
import { FakePartition, type FakeTopic } from './support/fake-log.ts'
import { type World, world } from './support/world.ts'

test('send resolves to the place of the record, and the record is there with all its parts', async () => {
  const w = await world()
  const topic = w.broker.create('t', 4)
  const producer = w.client.producer()
  const place = await w.until(
    producer.send({
      topic: 't',
      key: 'k',
      value: 'v',
      headers: { a: 'b', none: null },
      timestamp: 12_345,
    }),
  )
  const partition = partitionOf(Buffer.from('k'), 4)
  assert.deepEqual(place, { partition, offset: 0, timestamp: 12_345 })
  const { batch } = (topic.partitions[partition] as FakePartition).batches[0] as {
    batch: Uint8Array
  }
  const [record] = readRecords(batch)
  assert.equal(Buffer.from(record?.key ?? []).toString(), 'k')
  assert.equal(Buffer.from(record?.value ?? []).toString(), 'v')
  assert.equal(record?.headers.length, 2)
  assert.equal(record?.headers[1]?.value, null)
  await w.until(w.client.close())
})

test('records sent together leave in one frame with one batch per partition', async () => {
  const w = await world()
  const topic = w.broker.create('t', 4)
  const producer = w.client.producer()
  const sends = Array.from({ length: 400 }, (_, i) =>
    producer.send({ topic: 't', value: `${i}`, partition: i % 4 }),
  )
  await w.until(Promise.all(sends))
  assert.equal(w.broker.produceFrames, 1)
  for (const partition of topic.partitions) assert.equal(partition.batches.length, 1)
  await w.until(w.client.close())
})

test('records without a key stick to one partition per batch and spread over batches', async () => {
  const w = await world()
  const topic = w.broker.create('t', 4)
  const producer = w.client.producer({ maxBatchRecords: 10 })
  const sends = Array.from({ length: 400 }, (_, i) => producer.send({ topic: 't', value: `${i}` }))
  await w.until(Promise.all(sends))
  for (const { batches } of topic.partitions) {
    assert.equal(batches.length, 10)
    for (const { batch } of batches) assert.equal(recordCount(batch), 10)
  }
  await w.until(w.client.close())
})

test('a batch is sent when it is full, when it has records enough, or when its linger is over', async () => {
  const w = await world()
  const topic = w.broker.create('t', 1)
  const batches = (): number => (topic.partitions[0] as FakePartition).batches.length
  const long = w.client.producer({ lingerMs: 10_000, maxBatchRecords: 3, maxBatchBytes: 1000 })
  const first = long.send({ topic: 't', value: 'x' })
  await w.pass(1000)
  assert.equal(batches(), 0)
  const second = long.sendBatch([
    { topic: 't', value: 'x' },
    { topic: 't', value: 'x' },
  ])
  await w.until(Promise.all([first, second]))
  assert.equal(batches(), 1)
  const large = Array.from({ length: 2 }, () => long.send({ topic: 't', value: 'x'.repeat(700) }))
  await w.pass(1000)
  assert.equal(batches(), 2, 'the second did not fit beside the first')
  await w.pass(10_000)
  await w.until(Promise.all(large))
  assert.equal(batches(), 3)
  await w.until(w.client.close())
})

for (const codec of CODECS) {
  test(`batches are compressed with ${codec} and come back whole`, async () => {
    const w = await world()
    const topic = w.broker.create('t', 1)
    const producer = w.client.producer({ codec })
    const values = Array.from({ length: 500 }, (_, i) => `the value of record ${i}`)
    await w.until(producer.sendBatch(values.map((value) => ({ topic: 't', value }))))
    const stored = topic.partitions[0]?.batches[0]?.batch as Uint8Array
    if (codec !== 'none') assert.ok(stored.length < 12_000, `${stored.length} bytes`)
    const read: string[] = []
    for await (const { value } of drive(w, w.client.consumer({ topic: 't', stopAtEnd: true }))) {
      read.push(Buffer.from(value ?? []).toString())
    }
    assert.deepEqual(read, values)
    await w.until(w.client.close())
  })
}

/** Iterates while virtual time runs. */
export async function* drive<T>(w: World, records: AsyncIterable<T>): AsyncGenerator<T> {
  const iterator = records[Symbol.asyncIterator]()
  for (;;) {
    const result = await w.until(iterator.next())
    if (result.done === true) return
    yield result.value
  }
}

interface Sent {
  readonly value: string
  settled: number
  place?: RecordPlace
  error?: EastGuardError
}

interface Plan {
  readonly seed: number
  readonly records: number
  readonly deliveryTimeoutMs: number
  /** How often, of 100 frames or batches, each goes wrong. */
  readonly resets: number
  readonly silences: number
  /** Stored, and told that there are too few replicas. */
  readonly few: number
  readonly refusals: number
  readonly fatal: number
  readonly quietAfterMs: number
}

/** Sends under faults; checks what must hold whatever happens, and gives back what was sent. */
async function underFaults(plan: Plan): Promise<Sent[]> {
  const chance = prng(plan.seed)
  const w = await world(plan.seed, { requestTimeoutMs: 400 })
  const topic = w.broker.create('t', 3)
  const faulty = (): boolean => w.clock.monotonic() < plan.quietAfterMs
  w.broker.fate = (): Fate => {
    const dice = faulty() ? chance.below(100) : 100
    if (dice < plan.resets) return { kind: 'reset', stored: chance.below(2) === 0 }
    if (dice < plan.resets + plan.silences) {
      return { kind: 'silence', stored: chance.below(2) === 0 }
    }
    if (dice < plan.resets + plan.silences + plan.few) return { kind: 'too few replicas' }
    return { kind: 'answer', delayMs: chance.below(4) }
  }
  w.broker.refuse = () => {
    const dice = faulty() ? chance.below(100) : 100
    if (dice < plan.refusals) return 'STORAGE_FULL'
    if (dice < plan.refusals + plan.fatal) return 'BATCH_TOO_LARGE'
    return undefined
  }
  const { deliveryTimeoutMs } = plan
  const producer = w.client.producer({ maxBatchRecords: 4, lingerMs: 1, deliveryTimeoutMs })
  const all: Sent[] = []
  const sends: Promise<void>[] = []
  for (let i = 0; i < plan.records; i++) {
    const sent: Sent = { value: `${i}`, settled: 0 }
    all.push(sent)
    sends.push(
      producer.send({ topic: 't', value: sent.value, partition: chance.below(3) }).then(
        (place) => {
          sent.settled++
          sent.place = place
        },
        (error: EastGuardError) => {
          sent.settled++
          sent.error = error
        },
      ),
    )
    if (chance.below(3) === 0) await w.pass(chance.below(5))
  }
  await w.until(producer.close())
  await w.until(Promise.all(sends))
  judge(w, topic, all)
  await w.until(w.client.close())
  return all
}

function judge(w: World, topic: FakeTopic, all: readonly Sent[]): void {
  const stored = new Map<string, number>()
  for (const [partition, state] of topic.partitions.entries()) {
    const values = w.broker.values(topic, partition)
    assert.ok(state.unansweredMost <= 5, `${state.unansweredMost} batches in flight`)
    for (const [offset, value] of values.entries()) {
      assert.ok(!stored.has(value), `record ${value} is stored twice`)
      stored.set(value, offset)
      const before = values[offset - 1]
      assert.ok(before === undefined || Number(before) < Number(value), `${value} behind ${before}`)
    }
  }
  for (const sent of all) {
    assert.equal(sent.settled, 1, `record ${sent.value} settled ${sent.settled} times`)
    const offset = stored.get(sent.value)
    if (sent.place !== undefined) assert.equal(sent.place.offset, offset)
    else if (sent.error?.detail['maybeStored'] !== true) {
      assert.equal(offset, undefined, `record ${sent.value} failed for sure, but is stored`)
    }
  }
}

const SEED = fc.integer({ min: 0, max: 2 ** 31 })

test('property: under passing faults every record is stored once, in order, at the offset that send told', async () => {
  await fc.assert(
    fc.asyncProperty(SEED, async (seed) => {
      const all = await underFaults({
        seed,
        records: 120,
        deliveryTimeoutMs: 60_000,
        resets: 8,
        silences: 4,
        few: 10,
        refusals: 10,
        fatal: 0,
        quietAfterMs: 3000,
      })
      for (const sent of all) assert.ok(sent.place !== undefined, sent.error?.message)
    }),
    { numRuns: 40, includeErrorInReport: true },
  )
})

test('property: refused and overdue batches leave holes, and still nothing is doubled, swapped or told twice', async () => {
  await fc.assert(
    fc.asyncProperty(SEED, async (seed) => {
      await underFaults({
        seed,
        records: 120,
        deliveryTimeoutMs: 300 + (seed % 900),
        resets: 10,
        silences: 10,
        few: 10,
        refusals: 10,
        fatal: 10,
        quietAfterMs: 5000,
      })
    }),
    { numRuns: 40, includeErrorInReport: true },
  )
})

test('a broker that forgot the producer is met with a new epoch, and nothing is lost', async () => {
  const w = await world()
  const topic = w.broker.create('t', 1)
  const log = topic.partitions[0] as FakePartition
  const producer = w.client.producer()
  await w.until(producer.send({ topic: 't', value: '0' }))
  log.producers.clear()
  const place = await w.until(producer.send({ topic: 't', value: '1' }))
  assert.equal(place.offset, 1)
  assert.equal(producerEpoch(log.batches[1]?.batch as Uint8Array), 1)
  assert.deepEqual(w.broker.values(topic, 0), ['0', '1'])
  await w.until(w.client.close())
})

test('a broker that refuses every sequence is not asked for ever', async () => {
  const w = await world()
  w.broker.create('t', 1)
  w.broker.refuse = () => 'OUT_OF_ORDER_SEQUENCE'
  const producer = w.client.producer()
  const sent = producer.send({ topic: 't', value: '0' })
  await assert.rejects(w.until(sent), code('OUT_OF_ORDER_SEQUENCE', false))
  assert.ok(w.broker.produceFrames <= 5, `${w.broker.produceFrames} attempts`)
  await w.until(w.client.close())
})

test('a batch whose answer was lost is never sent under a new epoch', async () => {
  const w = await world(1, { requestTimeoutMs: 200 })
  const topic = w.broker.create('t', 1)
  const log = topic.partitions[0] as FakePartition
  const producer = w.client.producer()
  await w.until(producer.send({ topic: 't', value: '0' }))
  const fates: Fate[] = [{ kind: 'silence', stored: true }]
  w.broker.fate = () => fates.shift() ?? { kind: 'answer' }
  const doubtful = producer.send({ topic: 't', value: '1' })
  doubtful.catch(() => undefined)
  await w.pass(100)
  // Stored, but the broker no longer knows by whom: it would take a renumbered copy.
  log.producers.clear()
  await assert.rejects(w.until(doubtful), code('OUT_OF_ORDER_SEQUENCE', true))
  await w.until(producer.send({ topic: 't', value: '2' }))
  assert.deepEqual(w.broker.values(topic, 0), ['0', '1', '2'])
  await w.until(w.client.close())
})

test('what is larger than a batch may be is refused at once', async () => {
  const w = await world()
  w.broker.create('t', 1, { maxMessageBytes: 2048 })
  const producer = w.client.producer({ maxBatchBytes: 4096 })
  const big = (bytes: number): Promise<RecordPlace> =>
    producer.send({ topic: 't', value: Buffer.alloc(bytes) })
  await assert.rejects(big(5000), code('RECORD_TOO_LARGE', false))
  await assert.rejects(w.until(big(3000)), code('RECORD_TOO_LARGE', false))
  await w.until(big(1900))
  assert.equal(w.broker.produceFrames, 1)
  await w.until(w.client.close())
})

test('unknown topics and partitions, closed producers and wrong arguments are refused with their code', async () => {
  const w = await world()
  w.broker.create('t', 1)
  const producer = w.client.producer()
  const fails = (send: Promise<unknown>, expected: ErrorCode): Promise<void> =>
    assert.rejects(w.until(send), code(expected, false))
  await fails(producer.send({ topic: 'nobody', value: '' }), 'UNKNOWN_TOPIC')
  await fails(producer.send({ topic: 't', value: '', partition: 1 }), 'UNKNOWN_PARTITION')
  await fails(producer.send({ topic: 't', value: '', partition: -1 }), 'INVALID_ARGUMENT')
  await fails(producer.send({ topic: 't', value: '', timestamp: 0.5 }), 'INVALID_ARGUMENT')
  await fails(producer.send({ topic: '', value: '' }), 'INVALID_ARGUMENT')
  await w.until(producer.close())
  await fails(producer.send({ topic: 't', value: '' }), 'CLOSED')
  await w.until(w.client.close())
  assert.throws(() => w.client.producer(), code('CLOSED'))
})

test('a partition that was added since is found, and those sent to it keep their order', async () => {
  const w = await world()
  const topic = w.broker.create('t', 1)
  const producer = w.client.producer()
  await w.until(producer.send({ topic: 't', value: '', partition: 0 }))
  topic.policy = { ...topic.policy, partitions: 3 }
  topic.partitions.push(new FakePartition(), new FakePartition())
  const places = await w.until(
    Promise.all([0, 1, 2].map(() => producer.send({ topic: 't', value: '', partition: 2 }))),
  )
  assert.deepEqual(
    places.map(({ offset }) => offset),
    [0, 1, 2],
  )
  await assert.rejects(
    w.until(producer.send({ topic: 't', value: '', partition: 3 })),
    code('UNKNOWN_PARTITION', false),
  )
  await w.until(w.client.close())
})

test('deleting a topic fails what is on its way there, and a new one of that name is written to', async () => {
  const w = await world()
  w.broker.create('t', 1)
  const producer = w.client.producer()
  await w.until(producer.send({ topic: 't', value: '0' }))
  w.broker.delete('t')
  await assert.rejects(w.until(producer.send({ topic: 't', value: '1' })), code('UNKNOWN_TOPIC'))
  const again = w.broker.create('t', 1)
  await w.until(producer.send({ topic: 't', value: '2' }))
  assert.deepEqual(w.broker.values(again, 0), ['2'])
  await w.until(w.client.close())
})

test('flush sends at once what lingers, and close loses nothing', async () => {
  const w = await world()
  const topic = w.broker.create('t', 2)
  const producer = w.client.producer({ lingerMs: 100_000 })
  const settled: number[] = []
  const send = (i: number): void => {
    void producer.send({ topic: 't', value: `${i}`, partition: i % 2 }).then(() => settled.push(i))
  }
  for (let i = 0; i < 10; i++) send(i)
  await w.until(producer.flush())
  assert.equal(settled.length, 10)
  assert.ok(w.clock.monotonic() < 1000)
  for (let i = 10; i < 20; i++) send(i)
  await w.until(w.client.close())
  assert.equal(settled.length, 20)
  assert.equal(w.broker.values(topic, 0).length + w.broker.values(topic, 1).length, 20)
})

test('acks 0 resolves when the record is written, without an offset', async () => {
  const w = await world()
  const topic = w.broker.create('t', 1)
  const producer = w.client.producer({ acks: '0' })
  const places = await w.until(
    producer.sendBatch([
      { topic: 't', value: 'a' },
      { topic: 't', value: 'b' },
    ]),
  )
  assert.deepEqual(
    places.map(({ offset }) => offset),
    [-1, -1],
  )
  await w.pass(10)
  assert.deepEqual(w.broker.values(topic, 0), ['a', 'b'])
  await w.until(w.client.close())
})

test('acks 1 keeps the order through refusals though nothing is numbered', async () => {
  const w = await world()
  const topic = w.broker.create('t', 1)
  let refusals = 3
  w.broker.refuse = () => (refusals-- > 0 ? 'NOT_READY' : undefined)
  const producer = w.client.producer({ acks: '1', maxBatchRecords: 1 })
  const values = Array.from({ length: 20 }, (_, i) => `${i}`)
  await w.until(Promise.all(values.map((value) => producer.send({ topic: 't', value }))))
  assert.deepEqual(w.broker.values(topic, 0), values)
  await w.until(w.client.close())
})
