// A broker that is stopped as asked while records are written: others lead what it led before it goes, and whoever writes sees a
// pause at the most.

import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { EastGuard } from '../../src/index.ts'
import { type LocalBroker, LocalCluster } from '../support/local-cluster.ts'
import { pause, within } from '../support/time.ts'

/** Of everything that the cluster does by itself, on a busy machine. */
const SETTLED_MS = 60_000
const TOPICS = ['stops-a', 'stops-b', 'stops-c']

let cluster: LocalCluster

before(async () => {
  cluster = await LocalCluster.form({ brokers: 3, flags: ['--metadata-shards=8'] })
})

after(() => cluster.close())

/** Writes one record after another. */
class Writer {
  readonly acknowledged: string[] = []
  readonly failures: string[] = []
  private readonly client = new EastGuard({ seeds: cluster.seeds })
  private writing = true
  private readonly done: Promise<void>

  constructor(topic: string) {
    this.done = this.write(topic)
  }

  private async write(topic: string): Promise<void> {
    const producer = this.client.producer({ acks: 'all', deliveryTimeoutMs: SETTLED_MS })
    for (let i = 0; this.writing; i++) {
      const value = `${topic} ${i}`
      try {
        await producer.send({ topic, value, partition: 0 })
        this.acknowledged.push(value)
      } catch (error) {
        this.failures.push(String(error))
      }
      await pause(2)
    }
  }

  async stop(): Promise<void> {
    this.writing = false
    await this.done
    await this.client.close()
  }
}

/** Who leads each topic, by display name. */
async function leaders(): Promise<readonly (string | undefined)[]> {
  await using client = new EastGuard({ seeds: cluster.seeds })
  const admin = client.admin()
  const { brokers } = await admin.describeCluster()
  const topics = await admin.describeTopics(TOPICS)
  return topics.map(({ ranges }) => {
    const leader = ranges[0]?.segments.at(-1)?.replicas[0]
    return brokers.find(({ nodeId }) => nodeId === leader)?.displayName
  })
}

async function replicated(): Promise<void> {
  await within(SETTLED_MS, 'three replicas of every topic', async () => {
    await using client = new EastGuard({ seeds: cluster.seeds })
    const topics = await client.admin().describeTopics(TOPICS)
    return topics.every(({ ranges }) => ranges[0]?.segments.at(-1)?.replicas.length === 3)
  })
}

async function consumed(topic: string): Promise<readonly string[]> {
  await using client = new EastGuard({ seeds: cluster.seeds })
  const values: string[] = []
  for await (const record of client.consumer({ topic, stopAtEnd: true })) {
    values.push(Buffer.from(record.value ?? []).toString())
  }
  return values
}

test('a broker that is stopped as asked leads nothing any more when it goes, and no produce fails', async () => {
  await using client = new EastGuard({ seeds: cluster.seeds })
  for (const name of TOPICS) await client.admin().createTopic(name, { policy: { partitions: 1 } })
  const writers = TOPICS.map((topic) => new Writer(topic))
  await pause(500)
  const [first] = await leaders()
  const broker = cluster.brokers.find(({ name }) => name === first)
  assert.ok(broker !== undefined)
  await stopAndStart(broker)
  for (const writer of writers) await writer.stop()
  for (const [i, { failures, acknowledged }] of writers.entries()) {
    assert.deepEqual(failures, [])
    assert.ok(acknowledged.length > 0)
    assert.deepEqual(await consumed(TOPICS[i] ?? ''), acknowledged)
  }
})

async function stopAndStart(broker: LocalBroker): Promise<void> {
  assert.equal(await broker.end('SIGTERM'), 0)
  assert.ok(!(await leaders()).includes(broker.name), 'it leads nothing')
  await pause(300)
  await cluster.start(broker)
  await broker.ready()
  await replicated()
}
