// A disk whose every sync takes half a second. Writes wait for it, a group at a time; nothing else does.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { EastGuard } from '../../src/index.ts'
import { startRig } from './rig.ts'

const SYNC_MS = 500
const WATCHED_MS = 3000
const READS = 'read'
const PROBE = 'probe'

/** How long each call took, one after another until then, in ms, slowest last. */
async function timesOf(untilMs: number, call: () => Promise<unknown>): Promise<number[]> {
  const times: number[] = []
  while (performance.now() < untilMs) {
    const began = performance.now()
    await call()
    times.push(performance.now() - began)
  }
  return times.sort((a, b) => a - b)
}

function p99(times: readonly number[]): number {
  return times[Math.ceil(times.length * 0.99) - 1] ?? 0
}

async function readAll(client: EastGuard): Promise<void> {
  let count = 0
  const consumer = client.consumer({ topic: READS, from: 'earliest', stopAtEnd: true })
  for await (const { records } of consumer.batches()) count += records.length
  assert.equal(count, 100)
}

test('syncs of 500 ms: acknowledgements come within a few of them, and reads, questions and health do not wait', async (t) => {
  // Large files: a roll or a new WAL file is several syncs, one after another, and no group commit.
  const rig = await startRig(t, ['--wal-file-bytes=16MiB', '--default-segment-bytes=64MiB'])
  const { client } = rig
  const admin = client.admin()
  await admin.createTopic(READS, { policy: { partitions: 1 } })
  await client
    .producer()
    .sendBatch(Array.from({ length: 100 }, (_, i) => ({ topic: READS, value: `record ${i}` })))
  await admin.createTopic(PROBE)
  rig.addWriters()
  await rig.more(2000, 20_000)
  const memoryBefore = await rig.memoryBytes()
  await rig.broker.fault({ kind: 'slow-syncs', ms: SYNC_MS })

  const until = performance.now() + WATCHED_MS
  const before = rig.acknowledged
  const producer = rig.newClient().producer({ lingerMs: 0 })
  const [sends, reads, questions, health] = await Promise.all([
    timesOf(until, () => producer.send({ topic: PROBE, value: 'x' })),
    timesOf(until, () => readAll(client)),
    timesOf(until, () => admin.describeTopics()),
    timesOf(until, () => rig.status('/healthz')),
  ])
  if (rig.writers.failure !== undefined) throw rig.writers.failure
  const told = `sends ${p99(sends)}, reads ${p99(reads)}, questions ${p99(questions)}, health ${p99(health)} ms; ${rig.acknowledged - before} acknowledged`
  t.diagnostic(told)
  // A group a sync, with most of what is in flight.
  assert.ok(rig.acknowledged - before > 100, told)
  assert.ok((sends.at(-1) ?? 0) < 5 * SYNC_MS, told)
  for (const times of [reads, questions, health]) {
    assert.ok(times.length > 20, told)
    // Far below one sync, with room for a busy machine; on an idle one all are below 50 ms.
    assert.ok(p99(times) < SYNC_MS / 2, told)
  }
  const memory = (await rig.memoryBytes()) - memoryBefore
  assert.ok(memory < 128 * 1024 * 1024, `${memory} bytes more are in use`)

  await rig.broker.fault({ kind: 'slow-syncs', ms: 0 })
  await rig.more(2000, 20_000)
  await rig.verifyAll()
})
