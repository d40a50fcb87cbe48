// One bad client after another. For each: the error it gets, whether its connection survives, and that a good client
// beside it is served as before.

import assert from 'node:assert/strict'
import { connect, type Socket } from 'node:net'
import { test } from 'node:test'
import fc from 'fast-check'
import type { ErrorCode } from '../../../src/base/errors.ts'
import { errorCodeOf } from '../../../src/base/errors.ts'
import type { TopicId } from '../../../src/model/ids.ts'
import { createTopic } from '../../../src/wire/native/create-topic.ts'
import { describeCluster } from '../../../src/wire/native/describe-cluster.ts'
import { fetch } from '../../../src/wire/native/fetch.ts'
import { requestFrame, statusOf } from '../../../src/wire/native/header.ts'
import { hello } from '../../../src/wire/native/hello.ts'
import { listTopics } from '../../../src/wire/native/list-topics.ts'
import { produceFrame } from '../../../src/wire/native/produce.ts'
import { eventually, type Running, runBroker } from '../../broker/support/harness.ts'
import { batchOf, RawClient, slotOf } from '../../broker/support/raw-client.ts'

const HELLO = { versionMin: 1, versionMax: 1, clientName: 'test', clusterId: '' }

function raw(operation: number, version: number, id: number, body: Uint8Array): Buffer {
  const frame = Buffer.alloc(10 + body.length)
  frame.writeUInt32BE(6 + body.length, 0)
  frame[4] = operation
  frame[5] = version
  frame.writeUInt32BE(id, 6)
  frame.set(body, 10)
  return frame
}

/** The good client beside all others: what it sends is answered though time stands, so it waits for nobody's time-out. */
async function goodClientIsServed(running: Running, topic: TopicId): Promise<void> {
  const client = await RawClient.ready(running.port)
  assert.ok((await client.send(topic, 0, 'good')) >= 0)
  client.close()
}

/** Lets time pass, and the client do something each time, until its connection has ended. */
async function passesUntilClosed(
  { clock }: Running,
  socket: Socket,
  each: () => void = () => {},
): Promise<void> {
  await eventually(() => {
    if (socket.closed) return true
    each()
    clock.advance(10)
    return false
  })
}

async function withTopic(running: Running): Promise<TopicId> {
  const client = await RawClient.ready(running.port)
  const topic = await client.createTopic('t')
  client.close()
  return topic
}

async function codeOf(client: RawClient, id: number): Promise<ErrorCode> {
  return errorCodeOf(statusOf(await client.answer(id)))
}

test('before the hello: anything else is answered and the connection closed', async () => {
  await using running = await runBroker()
  const cases: [string, Buffer, number, ErrorCode][] = [
    ['a request', raw(7, 1, 5, Buffer.alloc(0)), 5, 'HELLO_REQUIRED'],
    ['HTTP', Buffer.from('GET / HTTP/1.1\r\n\r\n'), 0, 'FRAME_TOO_LARGE'],
    ['a frame too short', Buffer.from([0, 0, 0, 2, 1, 1]), 0, 'MALFORMED_REQUEST'],
    ['a hello cut off', raw(1, 1, 5, Buffer.from([1, 1, 0])), 5, 'MALFORMED_REQUEST'],
    ['a large hello', raw(1, 1, 5, Buffer.alloc(5000)), 0, 'FRAME_TOO_LARGE'],
    [
      'a version of the future',
      Buffer.from(requestFrame(hello, 1, 5, { ...HELLO, versionMin: 9, versionMax: 12 })),
      5,
      'UNSUPPORTED_VERSION',
    ],
    [
      'another cluster',
      Buffer.from(requestFrame(hello, 1, 5, { ...HELLO, clusterId: 'elsewhere' })),
      5,
      'CLUSTER_MISMATCH',
    ],
  ]
  for (const [what, bytes, id, code] of cases) {
    const client = await RawClient.connect(running.port)
    const answer = codeOf(client, id)
    client.socket.write(bytes)
    assert.equal(await answer, code, what)
    await client.closed
  }
})

test('after the hello: a whole frame that is wrong is answered and the connection lives on', async () => {
  await using running = await runBroker()
  const topic = await withTopic(running)
  const client = await RawClient.ready(running.port)
  const produce = Buffer.concat(produceFrame(1, 90, 255, 1000, [slotOf(topic, 0, batchOf(['x']))]))
  const body = produce.subarray(10)
  const wrongAcks = Buffer.from(body)
  wrongAcks[0] = 7
  const cases: [string, number, number, Uint8Array, ErrorCode][] = [
    ['an unknown operation', 99, 1, Buffer.alloc(3), 'UNKNOWN_OPERATION'],
    ['a push from a client', 15, 1, Buffer.alloc(3), 'UNKNOWN_OPERATION'],
    ['a second hello', 1, 1, Buffer.alloc(3), 'MALFORMED_REQUEST'],
    ['another version', 7, 2, Buffer.alloc(0), 'UNSUPPORTED_VERSION'],
    ['a produce of another version', 8, 2, body, 'UNSUPPORTED_VERSION'],
    ['bytes too many', 7, 1, Buffer.alloc(1), 'MALFORMED_REQUEST'],
    ['a produce cut off', 8, 1, body.subarray(0, body.length - 1), 'MALFORMED_REQUEST'],
    ['a produce without a batch', 8, 1, Buffer.from([255, 0, 0, 0, 9, 0, 0]), 'MALFORMED_REQUEST'],
    ['unknown acks', 8, 1, wrongAcks, 'INVALID_ACKS'],
    ['a count beyond the frame', 9, 1, Buffer.alloc(16, 0xff), 'MALFORMED_REQUEST'],
  ]
  for (const [what, operation, version, bytes, code] of cases) {
    const id = client.id()
    assert.equal(await client.refusal(raw(operation, version, id, bytes), id), code, what)
  }
  assert.equal(await client.send(topic, 0, 'still here'), 0)
  client.close()
})

test('topic names and replication that are not allowed', async () => {
  await using running = await runBroker()
  const client = await RawClient.ready(running.port)
  const create = async (name: string, policy = {}): Promise<string> => {
    const request = { name, token: '0'.repeat(32), ifNotExists: false, policy }
    return await client.ask(createTopic, request).then(
      () => 'ok',
      (error: { code: string; message: string }) => `${error.code}: ${error.message}`,
    )
  }
  for (const name of ['', '.', '..', 'a b', 'a/b', 'é', 'x'.repeat(250)]) {
    assert.match(await create(name), /^INVALID_TOPIC_NAME/, name)
  }
  assert.equal(await create('x'.repeat(249)), 'ok')
  assert.match(await create('__eastguard_mine'), /^TOPIC_PROTECTED/)
  assert.match(
    await create('three', { replicationFactor: 3 }),
    /^NOT_ENOUGH_BROKERS.*1 broker is alive/,
  )
  assert.match(await create('none', { partitions: 0 }), /^INVALID_POLICY/)
  assert.equal(await create('twice'), 'ok')
  assert.match(await create('twice'), /^TOPIC_EXISTS/)
  client.close()
})

test('an oversized frame is answered and ends the connection, whatever was in flight is answered first', async () => {
  await using running = await runBroker()
  const topic = await withTopic(running)
  const client = await RawClient.ready(running.port)
  const sent = client.send(topic, 0, 'before')
  const refused = codeOf(client, 0)
  client.socket.write(Buffer.from([0x7f, 0, 0, 0, 8, 1]))
  assert.equal(await sent, 0)
  assert.equal(await refused, 'FRAME_TOO_LARGE')
  await client.closed
  await goodClientIsServed(running, topic)
})

test('a client that says nothing is closed; an idle one after its hello is not', async () => {
  await using running = await runBroker({ helloTimeoutMs: 60, frameTimeoutMs: 60 })
  const idle = await RawClient.ready(running.port)
  const silent = await RawClient.connect(running.port)
  await passesUntilClosed(running, silent.socket)
  running.clock.advance(100)
  await idle.ask(describeCluster, {})
  idle.close()
})

test('a client that sends a byte now and then is closed when its frame takes too long', async () => {
  await using running = await runBroker({ frameTimeoutMs: 150 })
  const topic = await withTopic(running)
  const slow = await RawClient.ready(running.port)
  const frame = raw(7, 1, 1, Buffer.alloc(100_000))
  let at = 0
  const drip = (): void => {
    slow.socket.write(frame.subarray(at, ++at))
  }
  drip()
  await goodClientIsServed(running, topic)
  await passesUntilClosed(running, slow.socket, drip)
  assert.ok(at < frame.length, 'all of it was taken')
})

test('a client that never closes its end after an error is closed', async () => {
  await using running = await runBroker({ answerTimeoutMs: 80 })
  const stubborn = connect({ port: running.port, host: '127.0.0.1', allowHalfOpen: true })
  stubborn.on('error', () => {}).resume()
  stubborn.write('GET / HTTP/1.1\r\n\r\n')
  await new Promise((resolve) => stubborn.once('end', resolve))
  await passesUntilClosed(running, stubborn, () => stubborn.write('x'))
  assert.ok(running.log.lines.some(({ message }) => message.includes('did not close its end')))
})

test('a frame may be long under way when it was the broker that did not read', async () => {
  await using running = await runBroker({ requestsInFlightMax: 1, frameTimeoutMs: 100 })
  const topic = await withTopic(running)
  const client = await RawClient.ready(running.port)
  running.store.automatic = false
  const [first, second] = [client.id(), client.id()]
  const answers = [client.answer(first), client.answer(second)] as const
  const frameOf = (id: number): Buffer =>
    Buffer.concat(produceFrame(1, id, 255, 5000, [slotOf(topic, 0, batchOf(['x']))]))
  client.socket.write(Buffer.concat([frameOf(first), frameOf(second).subarray(0, 20)]))
  await eventually(() => running.store.keys().length > 0)
  running.clock.advance(250)
  running.store.automatic = true
  running.store.release()
  assert.equal(statusOf(await answers[0]), 0)
  running.clock.advance(99)
  client.socket.write(frameOf(second).subarray(20))
  assert.equal(statusOf(await answers[1]), 0)
  client.close()
})

test('a client that vanishes in the middle of a frame leaves nothing behind', async () => {
  await using running = await runBroker()
  const topic = await withTopic(running)
  const whole = Buffer.concat(produceFrame(1, 9, 255, 1000, [slotOf(topic, 0, batchOf(['half']))]))
  for (let length = 1; length < whole.length; length += 7) {
    const client = await RawClient.ready(running.port)
    client.socket.end(whole.subarray(0, length))
    await client.closed
  }
  const good = await RawClient.ready(running.port)
  assert.equal((await good.fetch(topic, 0, 0)).highWatermark, 0)
  good.close()
  await goodClientIsServed(running, topic)
})

test('a client that vanishes with produces in flight: they are stored, nobody is harmed', async () => {
  await using running = await runBroker()
  const topic = await withTopic(running)
  const client = await RawClient.ready(running.port)
  running.store.automatic = false
  const lost = client.send(topic, 0, 'orphan')
  await eventually(() => running.store.keys().length > 0)
  client.close()
  await assert.rejects(lost, { code: 'CONNECTION_LOST' })
  running.store.automatic = true
  running.store.release()
  const good = await RawClient.ready(running.port)
  assert.equal((await good.fetch(topic, 0, 0)).highWatermark, 1)
  good.close()
})

test('a client that never reads its answers is held back, then closed; others are not slowed', async () => {
  await using running = await runBroker({ answerTimeoutMs: 200, answerBytesMax: 65_536 })
  const topic = await withTopic(running)
  const filler = await RawClient.ready(running.port)
  for (let i = 0; i < 4; i++) await filler.send(topic, 1, 'x'.repeat(900_000))
  filler.close()
  const client = await RawClient.ready(running.port)
  client.socket.pause()
  const partitions = [{ topicId: topic, partition: 1, offset: 0, maxBytes: 4_000_000 }]
  const request = { maxWaitMs: 0, minBytes: 1, maxBytes: 4_000_000, partitions }
  for (let id = 1; id < 200; id++) client.socket.write(requestFrame(fetch, 1, id, request))
  await goodClientIsServed(running, topic)
  // The kernel tells of the reset only when something is written.
  await passesUntilClosed(running, client.socket, () => {
    client.socket.write(requestFrame(listTopics, 1, 1000, { after: '', limit: 1 }))
  })
  await goodClientIsServed(running, topic)
})

test('more requests than allowed in flight are not read until answers have gone out', async () => {
  await using running = await runBroker({ requestsInFlightMax: 10 })
  const topic = await withTopic(running)
  const client = await RawClient.ready(running.port)
  running.store.automatic = false
  const end = (): number => [...running.store.logs.values()][0]?.end ?? 0
  const sent: Promise<number>[] = []
  for (let i = 0; i < 40; i++) {
    sent.push(client.send(topic, 0, `${i}`))
    // Each in a chunk of its own: what has come with the last one is taken, too.
    if (i < 10) await eventually(() => end() === i + 1)
  }
  const other = await RawClient.ready(running.port)
  await other.fetch(topic, 0, 0)
  assert.equal(end(), 10)
  running.store.automatic = true
  running.store.release()
  assert.deepEqual(
    await Promise.all(sent),
    Array.from({ length: 40 }, (_, i) => i),
  )
  client.close()
  other.close()
})

test('connections beyond the limit are closed, and a place that is free again is given again', async () => {
  await using running = await runBroker({ connectionsMax: 2 })
  const first = await RawClient.ready(running.port)
  const second = await RawClient.ready(running.port)
  const third = await RawClient.connect(running.port)
  await third.closed
  first.close()
  await first.closed
  for (;;) {
    const again = await RawClient.connect(running.port)
    const answer = again.ask(hello, HELLO).then(
      () => true,
      () => false,
    )
    if (await answer) {
      again.close()
      break
    }
  }
  second.close()
})

test('random bytes after the hello harm nobody', async () => {
  await using running = await runBroker()
  const topic = await withTopic(running)
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.uint8Array({ minLength: 1, maxLength: 200 }), { minLength: 1, maxLength: 5 }),
      fc.boolean(),
      async (chunks, framed) => {
        const client = await RawClient.ready(running.port)
        for (const [i, chunk] of chunks.entries()) {
          client.socket.write(framed ? raw(chunk[0] as number, 1, i, chunk.subarray(1)) : chunk)
        }
        client.socket.end()
        await client.closed
      },
    ),
    { numRuns: 60 },
  )
  await goodClientIsServed(running, topic)
})

test('a stop answers what is in flight, and ends long polls and streams', async () => {
  await using running = await runBroker()
  const topic = await withTopic(running)
  const client = await RawClient.ready(running.port)
  running.store.automatic = false
  const sent = client.send(topic, 0, 'last')
  await eventually(() => running.store.keys().length > 0)
  const polled = client.fetch(topic, 1, 0, { maxWaitMs: 60_000 })
  await client.fetch(topic, 0, 0)
  const stopping = running.stop()
  assert.deepEqual((await polled).batches, [])
  running.store.automatic = true
  running.store.release()
  assert.equal(await sent, 0)
  await client.closed
  await stopping
})
