// A producer while leaders move and brokers die. Each test shows one rule of producer/target.ts or producer/flights.ts; the
// last searches.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { EastGuardError } from '../../src/base/errors.ts'
import type { Producer } from '../../src/client/api.ts'
import { code } from './support/code.ts'
import { clusterWorld } from './support/world.ts'

const SHAPE = { brokers: 3, partitions: 1, replicationFactor: 2 }

type ClusterWorld = Awaited<ReturnType<typeof clusterWorld>>

/** The partition has another leader, and the old one has not heard of it. */
function moveUnheard({ cluster }: ClusterWorld): void {
  cluster.member(0).lags = true
  cluster.move(0, [1, 2])
  cluster.spread()
}

/** The second record. */
async function sendsWithin(w: ClusterWorld, producer: Producer, ms: number): Promise<void> {
  const beganMs = w.clock.monotonic()
  assert.equal((await w.until(producer.send({ topic: 't', value: '1' }))).offset, 1)
  const tookMs = w.clock.monotonic() - beganMs
  assert.ok(tookMs < ms, `${tookMs} ms`)
}

test('a batch goes on at once to the leader that the old one names, and the route is looked up beside', async () => {
  const w = await clusterWorld(SHAPE)
  const producer = w.client.producer({ lingerMs: 0 })
  await w.until(producer.send({ topic: 't', value: '0' }))
  w.cluster.move(0, [1, 2])
  w.cluster.spread()
  const beganMs = w.clock.monotonic()
  const place = await w.until(producer.send({ topic: 't', value: '1' }))
  assert.equal(place.offset, 1)
  // Two round trips and a connection; a pause would be 25 ms at least.
  assert.ok(w.clock.monotonic() - beganMs < 20, `${w.clock.monotonic() - beganMs} ms`)
  assert.deepEqual(w.cluster.values(0), ['0', '1'])
  await w.until(w.client.close())
})

test('a broker that lags sends nobody back to a leader of an earlier segment', async () => {
  const w = await clusterWorld(SHAPE)
  const producer = w.client.producer({ lingerMs: 0, deliveryTimeoutMs: 10_000 })
  await w.until(producer.send({ topic: 't', value: '0' }))
  // The new leader has not heard yet, and names the old one.
  w.cluster.member(1).lags = true
  w.cluster.move(0, [1, 2])
  w.cluster.spread()
  const sent = producer.send({ topic: 't', value: '1' })
  await w.pass(500)
  const { produceFrames } = w.cluster.member(0).broker
  assert.ok(produceFrames <= 2, `${produceFrames} frames to the old leader`)
  w.cluster.member(1).lags = false
  w.cluster.spread()
  assert.equal((await w.until(sent)).offset, 1)
  await w.until(w.client.close())
})

test('where leaders are is asked of others when a broker is cut off from them', async () => {
  const w = await clusterWorld(SHAPE)
  const producer = w.client.producer({ lingerMs: 0, deliveryTimeoutMs: 10_000 })
  await w.until(producer.send({ topic: 't', value: '0' }))
  // It is reached still, and has heard of nothing.
  const { broker } = w.cluster.member(0)
  broker.cutOff = true
  broker.fate = () => ({ kind: 'silence', stored: false })
  moveUnheard(w)
  await sendsWithin(w, producer, 3000)
  await w.until(w.client.close())
})

test('a broker that still tells that the leader leads who says itself that it does not is left for another', async () => {
  const w = await clusterWorld(SHAPE)
  const producer = w.client.producer({ lingerMs: 0, deliveryTimeoutMs: 10_000 })
  await w.until(producer.send({ topic: 't', value: '0' }))
  // It is the leader itself, cut off from the others: it answers by what it knew before.
  moveUnheard(w)
  await sendsWithin(w, producer, 500)
  await w.until(w.client.close())
})

test('where the records of a partition end is asked of another when its leader says that it leads no more', async () => {
  const w = await clusterWorld(SHAPE)
  const producer = w.client.producer({ lingerMs: 0 })
  await w.until(producer.send({ topic: 't', value: '0' }))
  moveUnheard(w)
  const listed = w.client.admin().listOffsets('t', 'latest', { timeoutMs: 5000 })
  assert.equal((await w.until(listed))[0]?.offset, 1)
  await w.until(w.client.close())
})

test('brokers that send a producer in a circle are asked with growing pauses, until the delivery time-out', async () => {
  const w = await clusterWorld(SHAPE)
  const { members } = w.cluster
  // 0 knows that 1 leads, 1 only that 0 does, and neither says as of when.
  w.cluster.vague = true
  w.cluster.member(1).lags = true
  w.cluster.move(0, [1, 0])
  w.cluster.spread()
  const producer = w.client.producer({ lingerMs: 0, deliveryTimeoutMs: 10_000 })
  await assert.rejects(
    w.until(producer.send({ topic: 't', value: '0' })),
    (error: Error) => code('TIMEOUT')(error as never) && /NOT_LEADER/.test(error.message),
  )
  const frames = members.reduce((sum, { broker }) => sum + broker.produceFrames, 0)
  assert.ok(frames < 60, `${frames} frames in 10 s`)
  await w.until(w.client.close())
})

test('a leader that died is left for its successor, and others are not held up meanwhile', async () => {
  const w = await clusterWorld({ brokers: 3, partitions: 3, replicationFactor: 2 })
  const producer = w.client.producer({ lingerMs: 0 })
  const send = (partition: number): Promise<unknown> =>
    producer.send({ topic: 't', partition, value: 'x' })
  await w.until(Promise.all([0, 1, 2].map(send)))
  await w.cluster.down(1)
  const stuck = send(1)
  const beganMs = w.clock.monotonic()
  await w.until(Promise.all([send(0), send(2)]))
  assert.ok(w.clock.monotonic() - beganMs < 20)
  await w.pass(2000)
  w.cluster.move(1, [2, 0])
  w.cluster.spread()
  await w.until(stuck)
  assert.ok(w.clock.monotonic() - beganMs < 4000, `${w.clock.monotonic() - beganMs} ms`)
  assert.deepEqual(w.cluster.values(1), ['x', 'x'])
  await w.until(w.client.close())
})

test('a dead leader may stay without a successor for long: soon after there is one it is written to', async () => {
  for (let deadMs = 300; deadMs <= 6000; deadMs += 300) {
    const w = await clusterWorld(SHAPE, deadMs, { seeds: ['b2:2921'] })
    const producer = w.client.producer({ lingerMs: 0 })
    await w.until(producer.send({ topic: 't', value: '0' }))
    await w.cluster.down(0)
    const sent = producer.send({ topic: 't', value: '1' })
    await w.pass(deadMs)
    w.cluster.move(0, [1, 2])
    w.cluster.spread()
    const beganMs = w.clock.monotonic()
    await w.until(sent)
    const tookMs = w.clock.monotonic() - beganMs
    assert.ok(tookMs < 350, `${tookMs} ms, without a leader for ${deadMs} ms`)
    await w.until(w.client.close())
  }
})

test('a batch that a stopped broker holds is sent to its successor, and stored once though the broker goes on', async () => {
  const w = await clusterWorld({ ...SHAPE, brokers: 4 }, 1, { seeds: ['b3:2921'] })
  const producer = w.client.producer({ lingerMs: 0 })
  await w.until(producer.send({ topic: 't', value: '0' }))
  w.cluster.member(0).broker.setDeaf(true)
  const sent = [
    producer.send({ topic: 't', value: '1' }),
    producer.send({ topic: 't', value: '2' }),
  ]
  await w.pass(2500)
  w.cluster.move(0, [1, 2])
  w.cluster.spread()
  const beganMs = w.clock.monotonic()
  const places = await w.until(Promise.all(sent))
  assert.ok(w.clock.monotonic() - beganMs < 2500, `${w.clock.monotonic() - beganMs} ms`)
  w.cluster.member(0).broker.setDeaf(false)
  await w.until(producer.send({ topic: 't', value: '3' }))
  assert.deepEqual(
    places.map(({ offset }) => offset),
    [1, 2],
  )
  assert.deepEqual(w.cluster.values(0), ['0', '1', '2', '3'])
  await w.until(w.client.close())
})

test('a batch for a machine that is off waits for no connection to it once another leads', async () => {
  const w = await clusterWorld({ ...SHAPE, brokers: 4 }, 1, { seeds: ['b3:2921'] })
  // Its partition was not written before: there is no connection yet, and none comes about or fails for 5 s.
  w.network.powerOff('b0')
  const producer = w.client.producer({ lingerMs: 0, acks: '1' })
  const sent = producer.send({ topic: 't', value: '0' })
  await w.pass(2500)
  w.cluster.move(0, [1, 2])
  w.cluster.spread()
  await w.until(sent)
  assert.ok(w.clock.monotonic() < 4500, `${w.clock.monotonic()} ms`)
  await w.until(w.client.close())
})

test('a leader that has not heard of the topic yet is asked again, and nothing fails for it', async () => {
  const w = await clusterWorld({ ...SHAPE, brokers: 4 }, 1, { seeds: ['b3:2921'] })
  w.cluster.member(0).stranger = true
  const producer = w.client.producer({ lingerMs: 0 })
  const sent = producer.send({ topic: 't', value: '0' })
  const next = w.client.consumer({ topic: 't' })[Symbol.asyncIterator]().next()
  await w.pass(2000)
  w.cluster.member(0).stranger = false
  assert.equal((await w.until(sent)).offset, 0)
  w.cluster.spread()
  assert.equal((await w.until(next)).value?.offset, 0)
  await w.until(w.client.close())
})

test('a route that was looked up at a broker that is cut off does not undo a newer one', async () => {
  const w = await clusterWorld({ ...SHAPE, brokers: 4 }, 1, { seeds: ['b3:2921'] })
  const send = (value: string): Promise<unknown> =>
    w.client.producer({ lingerMs: 0, deliveryTimeoutMs: 5000 }).send({ topic: 't', value })
  await w.until(send('0'))
  w.cluster.move(0, [1, 2])
  w.cluster.spread()
  await w.until(send('1'))
  await w.pass(1000)
  // From now on the seed tells what was before, and the old leader is gone.
  w.cluster.member(3).heard = [{ segments: 1, end: 0 }]
  w.cluster.member(3).lags = true
  await w.cluster.down(0)
  let refusals = 2
  w.cluster.member(1).broker.refuse = () => (refusals-- > 0 ? 'NOT_ENOUGH_REPLICAS' : undefined)
  await w.until(send('2'))
  await w.until(w.client.close())
})

test('the seeds may all be gone: brokers that they told of are asked', async () => {
  const w = await clusterWorld({ ...SHAPE, brokers: 4 }, 1, { seeds: ['b3:2921'] })
  const producer = w.client.producer({ lingerMs: 0 })
  await w.until(producer.send({ topic: 't', value: '0' }))
  await w.cluster.down(3)
  await w.cluster.down(0)
  w.cluster.move(0, [1, 2])
  w.cluster.spread()
  await w.until(producer.send({ topic: 't', value: '1' }))
  assert.deepEqual(w.cluster.values(0), ['0', '1'])
  await w.until(w.client.close())
})

test('nobody is asked again and again who leads while the disk of a leader is full', async () => {
  const w = await clusterWorld(SHAPE)
  const { broker } = w.cluster.member(0)
  const producer = w.client.producer({ lingerMs: 0 })
  await w.until(producer.send({ topic: 't', value: '0' }))
  const { lookups } = broker
  broker.refuse = () => 'STORAGE_FULL'
  const sent = producer.send({ topic: 't', value: '1' })
  await w.pass(10_000)
  assert.equal(broker.lookups, lookups)
  broker.refuse = () => undefined
  await w.until(sent)
  assert.deepEqual(w.cluster.values(0), ['0', '1'])
  await w.until(w.client.close())
})

test('NOT_ENOUGH_REPLICAS is tried again until there are enough, or the delivery time-out says why', async () => {
  const w = await clusterWorld(SHAPE)
  const { broker } = w.cluster.member(0)
  broker.refuse = () => 'NOT_ENOUGH_REPLICAS'
  const producer = w.client.producer({ lingerMs: 0, deliveryTimeoutMs: 5000 })
  const late = producer.send({ topic: 't', value: 'lost' })
  await assert.rejects(w.until(late), (error: EastGuardError) => {
    assert.match(error.message, /NOT_ENOUGH_REPLICAS/)
    return code('TIMEOUT', true)(error)
  })
  const sent = producer.send({ topic: 't', value: '0' })
  await w.pass(3000)
  broker.refuse = () => undefined
  await w.until(sent)
  assert.deepEqual(w.cluster.values(0), ['0'])
  await w.until(w.client.close())
})
