// Topics that come and go, in waves of many alive at once: some empty, some with records in the WAL only, some in segment
// files, some with sealed segments and range states beside them. When all are gone, disk and memory are as they were.
//
// EASTGUARD_CHURN_TOPICS=100000 makes it as many; the default is what the time of a test run allows.

import assert from 'node:assert/strict'
import type { Admin, Producer } from '../../src/client/api.ts'
import type { EastGuardClient } from '../../src/client/client.ts'
import { driven } from '../ports/support.ts'
import { testApart } from './apart.ts'
import { heapBytes, Living } from './living.ts'

const TOPICS = Number(process.env['EASTGUARD_CHURN_TOPICS'] ?? 1500)
const WAVE = 500
/** Of a topic that has left nothing: what engines and their compilers keep is not of its making. */
const HEAP_BYTES_PER_TOPIC = 100
const HEAP_BYTES_NOISE = 3 * 1024 * 1024

const PROMISE = 'topics that were created and deleted leave nothing on disk or in memory'

await testApart(import.meta.url, PROMISE, async (tell) => {
  const living = new Living(11, { walFileBytes: 256 * 1024, flushAgeMs: 50 })
  await driven(living.world.clock, async () => {
    await living.start()
    const client = living.client()
    const admin = client.admin()
    const producer = client.producer({ lingerMs: 1 })
    await admin.createTopic('stays', { policy: { partitions: 1 } })
    await producer.send({ topic: 'stays', value: 'here' })
    // What is made once, whatever the number of topics, is made by the first waves.
    await wave(living, client, producer, -2 * WAVE)
    await wave(living, client, producer, -WAVE)
    await living.pause(120_000)
    const before = await standing(living, admin)
    const began = performance.now()
    for (let made = 0; made < TOPICS; made += WAVE) {
      await wave(living, client, producer, made)
      if ((made / WAVE) % 4 === 3) tell(`${made} topics: ${heapBytes()} B`)
    }
    const seconds = (performance.now() - began) / 1000
    // Routes and time-outs of the last wave have had their time.
    await living.pause(120_000)
    const after = await standing(living, admin)
    tell(`${TOPICS} topics in ${seconds.toFixed(1)} s`)
    tell(`before ${JSON.stringify(before)}`)
    tell(`after  ${JSON.stringify(after)}`)
    assert.deepEqual(after.paths, before.paths)
    assert.equal(after.topics, 1)
    assert.equal(after.segments, 1)
    assert.ok(after.wal <= (living.settings.walFilesMax + 2) * living.settings.walFileBytes)
    // In use at most a few; of those released eight are kept.
    assert.ok(after.journal <= 12 * living.settings.journalFileBytes)
    // The simulated disk lies in memory too.
    const grown =
      after.heap - after.wal - after.journal - (before.heap - before.wal - before.journal)
    const most = HEAP_BYTES_NOISE + TOPICS * HEAP_BYTES_PER_TOPIC
    assert.ok(grown < most, `the heap grew by ${grown} bytes over ${TOPICS} topics`)
    await client.close()
    await living.stop()
  })
  assert.deepEqual(living.complaints, [])
})

async function wave(
  living: Living,
  client: EastGuardClient,
  producer: Producer,
  first: number,
): Promise<void> {
  const admin = client.admin()
  const numbers = Array.from({ length: WAVE }, (_, i) => first + i)
  await eachOf(numbers, async (n) => {
    await admin.createTopic(`topic-${n}`, { policy: { partitions: 2, segmentEntries: 2 } })
  })
  await eachOf(numbers, async (n) => {
    // Of five one has segment files and states, one a file, one has records in the WAL only.
    const records = [8, 1, 0, 0, 0][Math.abs(n % 5)] ?? 0
    for (let i = 0; i < records; i++) {
      await producer.send({ topic: `topic-${n}`, partition: i % 2, value: `record ${i}` })
    }
    if (n % 50 === 0) await readAll(client, `topic-${n}`, records)
  })
  await living.pause(200)
  await eachOf(numbers, async (n) => {
    if (Math.abs(n % 5) === 2)
      await producer.send({ topic: `topic-${n}`, partition: 0, value: 'late' })
    // One that is deleted while it is written to: whether the record got there does not matter.
    const topic = `topic-${n}`
    const racing =
      Math.abs(n % 5) === 3 ? [producer.send({ topic, partition: 0, value: 'too late' })] : []
    await Promise.allSettled([...racing, admin.deleteTopic(topic)])
  })
}

async function readAll(client: EastGuardClient, topic: string, records: number): Promise<void> {
  let read = 0
  for await (const _ of client.consumer({ topic, stopAtEnd: true })) read++
  assert.equal(read, records)
}

/** So many at a time as a busy administrator would. */
async function eachOf(
  numbers: readonly number[],
  run: (n: number) => Promise<void>,
): Promise<void> {
  let next = 0
  const worker = async (): Promise<void> => {
    for (let at = next++; at < numbers.length; at = next++) await run(numbers[at] as number)
  }
  await Promise.all(Array.from({ length: 50 }, worker))
}

interface Standing {
  readonly topics: number
  readonly segments: number
  readonly paths: readonly string[]
  readonly wal: number
  readonly journal: number
  readonly heap: number
}

async function standing(living: Living, admin: Admin): Promise<Standing> {
  const { topics, segments } = await admin.describeCluster()
  const paths = living.disk.paths().filter((path) => !/^(wal|journal)\//.test(path))
  const dirs = [...(await living.list('topics')), ...(await living.list('trash'))]
  return {
    topics,
    segments,
    paths: [...paths, ...dirs],
    wal: living.below('wal').bytes,
    journal: living.below('journal').bytes,
    heap: heapBytes(),
  }
}
