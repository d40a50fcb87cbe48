// A consumer and the replicas that it may read from. Each test shows one rule of consumer/readers.ts; the last searches, with
// a producer beside it.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { prng } from '../../src/base/prng.ts'
import { code } from './support/code.ts'
import { type ClusterWorld, clusterWorld } from './support/world.ts'

const SHAPE = { brokers: 3, partitions: 1, replicationFactor: 3 }

/** Sends values to partition 0, and tells everybody. */
async function fill(w: ClusterWorld, ...values: string[]): Promise<void> {
  const producer = w.client.producer({ lingerMs: 0, maxBatchRecords: 1 })
  await w.until(producer.sendBatch(values.map((value) => ({ topic: 't', partition: 0, value }))))
  await w.until(producer.close())
  w.cluster.spread()
}

interface Reader {
  readonly values: string[]
  /** Of what ended it. */
  error: unknown
}

/** Reads on in the background; offsets must follow one another in each partition. */
function reader(
  w: ClusterWorld,
  options: Partial<Parameters<ClusterWorld['client']['consumer']>[0]> = {},
): Reader {
  const consumer = w.client.consumer({ topic: 't', ...options })
  const found: Reader = { values: [], error: undefined }
  const next = new Map<number, number>()
  const run = async (): Promise<void> => {
    for await (const { partition, offset, value } of consumer) {
      const expected = next.get(partition)
      assert.ok(expected === undefined || expected === offset, `${offset} behind ${expected}`)
      next.set(partition, offset + 1)
      found.values.push(Buffer.from(value ?? []).toString())
    }
  }
  run().catch((error: unknown) => {
    found.error = error
  })
  return found
}

/** The brokers that partition 0 is read from. */
function readFrom(w: ClusterWorld, partition: number = 0): number[] {
  return w.cluster.members.flatMap(({ index, broker }) =>
    broker.streams.readersOf(partition) > 0 ? [index] : [],
  )
}

test('the replica of the same host is read, else one of the same rack, else any, spread by partition', async () => {
  const shape = { brokers: 4, partitions: 8, replicationFactor: 4 }
  for (const [options, expected] of [
    [{ hostLabel: 'host 2', rackLabel: 'rack 1' }, [2]],
    [{ hostLabel: 'elsewhere', rackLabel: 'rack 1' }, [1, 3]],
    [{}, [0, 1, 2, 3]],
  ] as const) {
    const w = await clusterWorld(shape, 1, options)
    const { values } = reader(w)
    await w.pass(100)
    const counts = new Map<number, number>()
    for (let partition = 0; partition < 8; partition++) {
      const [index = -1, ...more] = readFrom(w, partition)
      assert.deepEqual(more, [], 'each partition is read once')
      counts.set(index, (counts.get(index) ?? 0) + 1)
    }
    assert.deepEqual(
      [...counts.keys()].toSorted((a, b) => a - b),
      expected,
    )
    for (const count of counts.values()) assert.equal(count, 8 / expected.length)
    await fill(w, 'a')
    await w.pass(100)
    assert.deepEqual(values, ['a'])
    await w.until(w.client.close())
  }
})

test('a partition whose broker dies goes on at another replica, where it stood, and others do not notice', async () => {
  const w = await clusterWorld({ brokers: 3, partitions: 3, replicationFactor: 3 })
  const { values } = reader(w)
  await fill(w, '0', '1')
  await w.pass(100)
  const [index = -1] = readFrom(w)
  const accepted = w.cluster.members.map(({ broker }) => broker.accepted)
  await w.cluster.down(index)
  await w.pass(100)
  assert.notDeepEqual(readFrom(w), [index])
  assert.equal(readFrom(w).length, 1)
  w.cluster.move(
    0,
    [0, 1, 2].filter((other) => other !== index),
  )
  w.cluster.spread()
  await fill(w, '2')
  await w.pass(100)
  assert.deepEqual(values, ['0', '1', '2'])
  for (const { broker, index: other } of w.cluster.members) {
    if (other !== index)
      assert.equal(broker.accepted, accepted[other], 'no connection was made anew')
  }
  await w.until(w.client.close())
})

test('history is read from those who hold it: each segment from its own replicas', async () => {
  const w = await clusterWorld({ ...SHAPE, replicationFactor: 1, brokers: 4 })
  await fill(w, '0', '1')
  for (const [index, value] of [
    [1, '2'],
    [2, '3'],
    [3, '4'],
  ] as const) {
    w.cluster.move(0, [index])
    w.cluster.spread()
    await fill(w, value)
  }
  const all = reader(w)
  const some = reader(w, { from: { offset: 1 } })
  await w.pass(1000)
  assert.deepEqual(all.values, ['0', '1', '2', '3', '4'])
  assert.deepEqual(some.values, ['1', '2', '3', '4'])
  await w.until(w.client.close())
})

test('out of range is believed of the leader alone: a replica that is behind sends nobody to the start', async () => {
  const w = await clusterWorld(SHAPE, 1, { hostLabel: 'host 1' })
  await fill(w, '0')
  Object.assign(w.cluster.member(1), { lags: true, lies: true })
  await fill(w, '1', '2')
  const read = reader(w, { from: { offset: 2 }, onOffsetOutOfRange: 'earliest' })
  await w.pass(1000)
  assert.deepEqual(read.values, ['2'])
  const beyond = reader(w, { from: { offset: 4 } })
  await w.pass(1000)
  assert.ok(code('OFFSET_OUT_OF_RANGE')(beyond.error as never))
  assert.deepEqual(read.error, undefined)
  await w.until(w.client.close())
})

test('replicas that send a reader in a circle are asked with pauses, and it goes on when one of them knows better', async () => {
  const w = await clusterWorld({ ...SHAPE, replicationFactor: 1 })
  await fill(w, '0')
  // 1 believes that 0 has it, 0 knows that 1 does.
  w.cluster.member(1).lags = true
  w.cluster.move(0, [1])
  w.cluster.spread()
  const read = reader(w, { from: { offset: 1 } })
  await w.pass(10_000)
  assert.deepEqual(read.error, undefined)
  const bytes = w.cluster.members.reduce((sum, { broker }) => sum + broker.receivedBytes, 0)
  assert.ok(bytes < 20_000, `${bytes} bytes in 10 s`)
  w.cluster.member(1).lags = false
  w.cluster.spread()
  await fill(w, '1')
  await w.pass(2000)
  assert.deepEqual(read.values, ['1'])
  await w.until(w.client.close())
})

test('a replica that says nothing any more, and closes nothing, is left for another', async () => {
  const w = await clusterWorld(SHAPE, 1, { hostLabel: 'host 1' })
  const { values } = reader(w)
  await fill(w, '0')
  await w.pass(20_000)
  assert.deepEqual(readFrom(w), [1])
  const { broker } = w.cluster.member(1)
  assert.equal(
    broker.accepted,
    1,
    'a broker that answers keeps its connection, however quiet the log is',
  )
  broker.setDeaf(true)
  w.cluster.member(1).lags = true
  await fill(w, '1')
  await w.pass(10_000)
  assert.deepEqual(values, ['0', '1'])
  await w.until(w.client.close())
})

test('a reader that had to leave the nearest replica goes back to it', async () => {
  const w = await clusterWorld(SHAPE, 1, { hostLabel: 'host 1' })
  const { values } = reader(w)
  await fill(w, '0')
  await w.pass(100)
  assert.deepEqual(readFrom(w), [1])
  await w.cluster.down(1)
  await w.pass(1000)
  assert.notDeepEqual(readFrom(w), [1])
  await w.cluster.up(1)
  await fill(w, '1')
  await w.pass(60_000)
  assert.deepEqual(readFrom(w), [1])
  await fill(w, '2')
  await w.pass(1000)
  assert.deepEqual(values, ['0', '1', '2'])
  await w.until(w.client.close())
})

test('property: leaders move, brokers die, lag and stop; each record is stored once, in order, and read so', async () => {
  await fc.assert(
    fc.asyncProperty(fc.integer({ min: 0, max: 2 ** 31 }), (seed) => underFaults(seed)),
    { numRuns: 25, includeErrorInReport: true },
  )
})

const BROKERS = 4
const PARTITIONS = 3
const RECORDS = 150

async function underFaults(seed: number): Promise<void> {
  const chance = prng(seed)
  const shape = { brokers: BROKERS, partitions: PARTITIONS, replicationFactor: 2 }
  const w = await clusterWorld(seed % 2 === 0 ? shape : { ...shape, replicationFactor: 3 }, seed)
  const { cluster } = w
  const producer = w.client.producer({ maxBatchRecords: 3, lingerMs: 0 })
  const consumer = w.client.consumer({ topic: 't', prefetchBytes: 400 })
  const sent: string[][] = Array.from({ length: PARTITIONS }, () => [])
  const read: string[][] = Array.from({ length: PARTITIONS }, () => [])
  const reading = (async () => {
    let count = 0
    for await (const { partition, offset, value } of consumer) {
      const mine = read[partition] as string[]
      assert.equal(offset, mine.length, `partition ${partition}`)
      mine.push(Buffer.from(value ?? []).toString())
      if (++count === RECORDS) return
      if (chance.below(30) === 0) consumer.seek(partition, offset + 1)
    }
  })()
  // Judged below; until then nobody awaits it.
  reading.catch(() => {})
  const sends: Promise<unknown>[] = []
  for (let i = 0; i < RECORDS; i++) {
    const partition = chance.below(PARTITIONS)
    sent[partition]?.push(`${i}`)
    sends.push(producer.send({ topic: 't', partition, value: `${i}` }))
    if (chance.below(2) === 0) await w.pass(chance.below(200))
    if (chance.below(4) === 0) await trouble(w, chance)
    if (chance.below(3) === 0) cluster.spread()
  }
  await w.pass(chance.below(3000))
  for (const member of cluster.members) {
    Object.assign(member, { lags: false, lies: false })
    member.broker.setDeaf(false)
    member.broker.fate = () => ({ kind: 'answer' })
    if (!member.up) await cluster.up(member.index)
  }
  cluster.spread()
  const settled = w.until(Promise.all(sends))
  await settled
  cluster.spread()
  assert.deepEqual(
    Array.from({ length: PARTITIONS }, (_, partition) => cluster.values(partition)),
    sent,
  )
  await w.until(reading)
  assert.deepEqual(read, sent)
  await w.until(w.client.close())
}

/** One thing goes wrong, or right again. */
async function trouble({ cluster }: ClusterWorld, chance: ReturnType<typeof prng>): Promise<void> {
  const member = cluster.member(chance.below(BROKERS))
  const partition = chance.below(PARTITIONS)
  const dice = chance.below(10)
  if (dice < 4) {
    const first = chance.below(BROKERS)
    const count = cluster.topic.policy.replicationFactor
    cluster.move(
      partition,
      Array.from({ length: count }, (_, i) => (first + i) % BROKERS),
    )
  } else if (dice < 6) {
    if (member.up) await cluster.down(member.index)
    else await cluster.up(member.index)
  } else if (dice === 6) member.lags = !member.lags
  else if (dice === 7) member.lies = !member.lies
  else if (dice === 8) member.broker.setDeaf(chance.below(2) === 0)
  else {
    const fate = { kind: 'reset', stored: chance.below(2) === 0 } as const
    let left = 2
    member.broker.fate = () => (left-- > 0 ? fate : { kind: 'answer' })
  }
}

test('what lost streams have pushed counts: a reader that moves about holds no more than it asked for', async () => {
  const w = await clusterWorld(SHAPE)
  await fill(w, ...Array.from({ length: 40 }, () => 'x'.repeat(1000)))
  const consumer = w.client.consumer({ topic: 't', prefetchBytes: 5000 })
  await w.until(consumer[Symbol.asyncIterator]().next())
  for (let moves = 0; moves < 3; moves++) {
    await w.pass(100)
    for (const { broker } of w.cluster.members) broker.breakConnections()
  }
  await w.pass(1000)
  const pushed = w.cluster.members.reduce((sum, { broker }) => sum + broker.pushedBytes, 0)
  // The credit, what one batch may go beyond it, and one more for each new stream.
  assert.ok(pushed <= 5000 + 6 * 1100, `${pushed} bytes`)
  await w.until(w.client.close())
})
