import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { EastGuardError } from '../../src/base/errors.ts'
import { code } from './support/code.ts'
import type { Fate } from './support/fake-broker.ts'
import { ADDRESS, world } from './support/world.ts'

test('a client that was asked for nothing has no connection, and one connection serves everything', async () => {
  const w = await world()
  w.broker.create('t', 2)
  await w.pass(1000)
  assert.equal(w.broker.accepted, 0)
  const admin = w.client.admin()
  await w.until(
    Promise.all([
      admin.describeTopic('t'),
      admin.describeCluster(),
      admin.listOffsets('t', 'latest'),
    ]),
  )
  await w.until(w.client.producer().send({ topic: 't', value: 'x' }))
  assert.equal(w.broker.accepted, 1)
  await w.until(w.client.close())
})

test('a call waits for a broker that is not there yet', async () => {
  const w = await world()
  w.broker.create('t', 2)
  await w.broker.stop()
  const described = w.client.admin().describeTopic('t')
  await w.pass(3000)
  await w.broker.start(w.network.streams(ADDRESS.host))
  assert.equal((await w.until(described)).policy.partitions, 2)
  await w.until(w.client.close())
})

test('a call gives up at its time-out and says why it failed', async () => {
  const w = await world()
  await w.broker.stop()
  const described = w.client.admin().describeTopic('t', { timeoutMs: 700 })
  await assert.rejects(w.until(described), code('CONNECTION_FAILED'))
  assert.ok(w.clock.monotonic() <= 700, `${w.clock.monotonic()} ms`)
  await w.until(w.client.close())
})

test('attempts to connect come ever further apart', async () => {
  const w = await world()
  await w.broker.stop()
  let attempts = 0
  const streams = w.network.streams(ADDRESS.host)
  const listener = await streams.listen(ADDRESS, (connection) => {
    attempts++
    connection.destroy()
  })
  const described = w.client.admin().describeTopic('t', { timeoutMs: 20_000 })
  described.catch(() => undefined)
  await w.pass(10_000)
  assert.ok(attempts >= 8 && attempts <= 30, `${attempts} attempts in ten seconds`)
  await assert.rejects(w.until(described))
  await listener.close()
  await w.until(w.client.close())
})

test('an aborted call rejects at once', async () => {
  const w = await world()
  await w.broker.stop()
  const abort = new AbortController()
  const described = w.client.admin().describeTopic('t', { signal: abort.signal })
  described.catch(() => undefined)
  await w.pass(100)
  const before = w.clock.monotonic()
  abort.abort(new Error('enough'))
  await assert.rejects(described, code('ABORTED'))
  assert.equal(w.clock.monotonic(), before)
  await w.until(w.client.close())
})

test('closing the client fails what still waits', async () => {
  const w = await world()
  await w.broker.stop()
  const described = w.client.admin().describeTopic('t')
  described.catch(() => undefined)
  await w.pass(100)
  await w.until(w.client.close())
  await assert.rejects(w.until(described), code('CLOSED'))
})

test('a broker of another cluster is refused after the first hello', async () => {
  const w = await world()
  w.broker.create('t', 1)
  const admin = w.client.admin()
  await w.until(admin.describeTopic('t'))
  await w.broker.stop()
  w.broker.clusterId = 'd'.repeat(32)
  await w.broker.start(w.network.streams(ADDRESS.host))
  await assert.rejects(w.until(admin.describeTopic('t')), code('CLUSTER_MISMATCH'))
  await w.until(w.client.close())
})

test('a peer that answers with something else is told apart from one that is away', async () => {
  const w = await world()
  await w.broker.stop()
  const listener = await w.network.streams(ADDRESS.host).listen(ADDRESS, (connection) => {
    connection.handle({ onData: () => undefined, onClose: () => undefined })
    connection.write([Buffer.from('HTTP/1.1 400 Bad Request\r\n\r\n')])
  })
  const described = w.client.admin().describeTopic('t', { timeoutMs: 300 })
  await assert.rejects(w.until(described), (error: EastGuardError) =>
    /no EastGuard broker/.test(error.message),
  )
  await listener.close()
  await w.until(w.client.close())
})

test('a broker that takes the connection and says nothing costs the connect time-out, not for ever', async () => {
  const w = await world(1, { connectTimeoutMs: 200 })
  await w.broker.stop()
  const listener = await w.network.streams(ADDRESS.host).listen(ADDRESS, (connection) => {
    connection.handle({ onData: () => undefined, onClose: () => undefined })
  })
  const described = w.client.admin().describeTopic('t', { timeoutMs: 1000 })
  await assert.rejects(w.until(described))
  assert.ok(w.clock.monotonic() <= 1000)
  await listener.close()
  await w.until(w.client.close())
})

test('the next seed is asked when one is away', async () => {
  const w = await world(1, { seeds: ['nobody:1', 'broker:2921'] })
  w.broker.create('t', 1)
  assert.equal((await w.until(w.client.admin().describeTopic('t'))).name, 't')
  await w.until(w.client.close())
})

test('deleting a topic succeeds when the answer to the first attempt was lost', async () => {
  const w = await world()
  w.broker.create('t', 1)
  const fates: Fate[] = [{ kind: 'reset', stored: true }]
  w.broker.fate = () => fates.shift() ?? { kind: 'answer' }
  await w.until(w.client.admin().deleteTopic('t'))
  assert.equal(w.broker.deletions, 1)
  await assert.rejects(w.until(w.client.admin().deleteTopic('t')), code('UNKNOWN_TOPIC'))
  await w.until(w.client.close())
})

test('creating a topic sends one token however often it is tried', async () => {
  const w = await world()
  const fates: Fate[] = [{ kind: 'reset', stored: true }]
  w.broker.fate = () => fates.shift() ?? { kind: 'answer' }
  const view = await w.until(w.client.admin().createTopic('new'))
  assert.equal(view.name, 'new')
  assert.equal(w.broker.tokens.length, 2)
  assert.equal(new Set(w.broker.tokens).size, 1)
  await assert.rejects(w.client.admin().createTopic('a/b'), code('INVALID_TOPIC_NAME'))
  await w.until(w.client.close())
})

test('seeds and time-outs are checked when the client is made', async () => {
  const bad = [{ seeds: [] }, { seeds: ['a:b'] }, { seeds: ['a:70000'] }, { requestTimeoutMs: 0 }]
  for (const options of bad) await assert.rejects(world(1, options), code('INVALID_ARGUMENT'))
})
