// What waits in a producer: for room, for its time, and for somebody who gives up.

import assert from 'node:assert/strict'
import { getEventListeners } from 'node:events'
import { test } from 'node:test'
import { code } from './support/code.ts'
import { world } from './support/world.ts'

test('a full buffer makes send wait, and no more than it holds is under way', async () => {
  const w = await world()
  w.broker.create('t', 1)
  w.broker.fate = () => ({ kind: 'answer', delayMs: 100 })
  const bufferBytes = 20_000
  const producer = w.client.producer({ bufferBytes, maxBatchBytes: 4000, lingerMs: 0 })
  const values = Array.from({ length: 200 }, (_, i) => Buffer.alloc(1000, i))
  let settled = 0
  const sends = values.map(async (value) => {
    await producer.send({ topic: 't', value })
    settled++
  })
  await w.pass(50)
  assert.equal(settled, 0)
  assert.ok(w.broker.receivedBytes <= bufferBytes + 4000, `${w.broker.receivedBytes} bytes`)
  await w.until(Promise.all(sends))
  assert.equal(settled, 200)
  await w.until(w.client.close())
})

test('a record that waits for room can be aborted, and is then never sent', async () => {
  const w = await world()
  const topic = w.broker.create('t', 1)
  w.broker.fate = () => ({ kind: 'answer', delayMs: 100 })
  const producer = w.client.producer({ bufferBytes: 1100, lingerMs: 0 })
  const first = producer.send({ topic: 't', value: 'x'.repeat(1000) })
  const abort = new AbortController()
  const second = producer.send({ topic: 't', value: 'y'.repeat(1000) }, { signal: abort.signal })
  await w.pass(20)
  abort.abort()
  await assert.rejects(second, code('ABORTED', false))
  await w.until(first)
  await w.until(producer.close())
  assert.equal(w.broker.values(topic, 0).length, 1)
  await w.until(w.client.close())
})

test('any number of sends share one signal at the cost of one listener, and leave none', async () => {
  const w = await world()
  w.broker.create('t', 1)
  const producer = w.client.producer()
  const { signal } = new AbortController()
  let added = 0
  const add = signal.addEventListener.bind(signal)
  signal.addEventListener = (...given: Parameters<typeof add>): void => {
    added++
    add(...given)
  }
  const sends = Array.from({ length: 20_000 }, (_, i) =>
    producer.send({ topic: 't', value: `${i}` }, { signal }),
  )
  assert.equal(getEventListeners(signal, 'abort').length, 1)
  const places = await w.until(Promise.all(sends))
  assert.deepEqual(
    places.map(({ offset }) => offset),
    places.map((_, i) => i),
  )
  assert.equal(added, 1)
  assert.equal(getEventListeners(signal, 'abort').length, 0)
  await w.until(w.client.close())
})

test('one signal ends all that wait on it, and nothing else', async () => {
  const w = await world()
  w.broker.create('t', 1)
  await w.broker.stop()
  const producer = w.client.producer({ deliveryTimeoutMs: 1000 })
  const abort = new AbortController()
  const { signal } = abort
  const value = 'x'
  const shared = Array.from({ length: 100 }, () => producer.send({ topic: 't', value }, { signal }))
  const other = producer.send({ topic: 't', value })
  const describing = w.client.admin().describeTopic('t', { signal })
  const rejected = Promise.all(
    [...shared, describing].map((waiting) => assert.rejects(waiting, { code: 'ABORTED' })),
  )
  await w.pass(100)
  abort.abort()
  await rejected
  assert.equal(getEventListeners(signal, 'abort').length, 0)
  await assert.rejects(w.until(other), code('TIMEOUT', false))
  await w.until(w.client.close())
})

test('who did not answer, or what is missing, is told with a record whose time is over', async () => {
  const w = await world()
  w.broker.create('t', 1)
  const told = async (idempotent: boolean, what: RegExp): Promise<void> => {
    const producer = w.client.producer({ deliveryTimeoutMs: 1000, idempotent })
    await assert.rejects(w.until(producer.send({ topic: 't', value: 'x' })), what)
  }
  w.broker.fate = () => ({ kind: 'silence', stored: false })
  await told(false, /got no answer from broker:2921 within deliveryTimeoutMs/)
  w.broker.cutOff = true
  await told(true, /the last attempt ended with METADATA_UNAVAILABLE: no leader answers/)
  await w.until(w.client.close())
})

test('records whose time is over are told so, wherever they wait', async () => {
  const w = await world()
  w.broker.create('t', 1)
  await w.broker.stop()
  const producer = w.client.producer({ deliveryTimeoutMs: 500, bufferBytes: 2000 })
  const sends = Array.from({ length: 5 }, () =>
    producer.send({ topic: 't', value: 'x'.repeat(900) }),
  )
  const outcomes = await w.until(Promise.allSettled(sends))
  for (const outcome of outcomes) {
    assert.ok(outcome.status === 'rejected' && code('TIMEOUT', false)(outcome.reason))
  }
  assert.ok(w.clock.monotonic() < 700, `${w.clock.monotonic()} ms`)
  await w.until(w.client.close())
})
