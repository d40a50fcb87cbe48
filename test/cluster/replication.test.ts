// Records on three brokers as people run them: they survive the loss of any one of the three, and nobody who writes sees more
// of it than a pause.

import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { EastGuard } from '../../src/index.ts'
import { type LocalBroker, LocalCluster } from '../support/local-cluster.ts'
import { within } from '../support/time.ts'

const SHARDS = 8
/** Of everything that the cluster does by itself, on a busy machine. */
const SETTLED_MS = 60_000
const TOPIC = 'replicated'
const PARTITIONS = 4

let cluster: LocalCluster
/** Acknowledged, in the order of their sending. */
const sent: string[] = []

before(async () => {
  const flags = [`--metadata-shards=${SHARDS}`]
  cluster = await LocalCluster.form({ brokers: 3, flags })
})

after(() => cluster.close())

/** So many records more, each acknowledged by all replicas. */
async function produce(count: number): Promise<void> {
  await using client = new EastGuard({ seeds: cluster.seeds })
  const producer = client.producer({ acks: 'all', deliveryTimeoutMs: SETTLED_MS })
  for (let i = 0; i < count; i++) {
    const value = `record ${sent.length}`
    await producer.send({ topic: TOPIC, value, partition: sent.length % PARTITIONS })
    sent.push(value)
  }
}

async function consumed(): Promise<readonly string[]> {
  await using client = new EastGuard({ seeds: cluster.seeds })
  const values: string[] = []
  for await (const record of client.consumer({ topic: TOPIC, stopAtEnd: true })) {
    values.push(Buffer.from(record.value ?? []).toString())
  }
  return values
}

async function assertAllThere(): Promise<void> {
  assert.deepEqual((await consumed()).toSorted(), sent.toSorted())
}

/** The replicas of the open segment, leader first. */
async function replicas(): Promise<readonly LocalBroker[]> {
  await using client = new EastGuard({ seeds: cluster.seeds })
  const admin = client.admin()
  const { ranges } = await admin.describeTopic(TOPIC)
  const { brokers } = await admin.describeCluster()
  const nodes = ranges[0]?.segments.at(-1)?.replicas ?? []
  return nodes.map((node) => {
    const name = brokers.find(({ nodeId }) => nodeId === node)?.displayName
    const found = cluster.brokers.find((broker) => broker.name === name)
    assert.ok(found !== undefined, `${node} is a broker`)
    return found
  })
}

async function fullyReplicated(): Promise<void> {
  await within(SETTLED_MS, 'three replicas', async () => (await replicas()).length === 3)
}

test('a topic of a cluster of three has three replicas, and what is acknowledged is read', async () => {
  await using client = new EastGuard({ seeds: cluster.seeds })
  const topic = await client.admin().createTopic(TOPIC, { policy: { partitions: PARTITIONS } })
  assert.equal(topic.policy.replicationFactor, 3)
  await produce(50)
  await assertAllThere()
  assert.equal((await replicas()).length, 3)
})

for (const [who, index] of [
  ['a follower', 1],
  ['the leader', 0],
] as const) {
  test(`when ${who} is killed no acknowledged record is lost, and writing goes on`, async () => {
    const victim = (await replicas())[index]
    assert.ok(victim !== undefined)
    await produce(20)
    await victim.end('SIGKILL')
    await produce(20)
    await assertAllThere()
    await cluster.start(victim)
    await victim.ready()
    await produce(20)
    await fullyReplicated()
    await assertAllThere()
  })
}

test('when all three are killed at once, they come back with all that was acknowledged', async () => {
  await produce(20)
  await Promise.all(cluster.brokers.map((broker) => broker.end('SIGKILL')))
  await Promise.all(cluster.brokers.map((broker) => cluster.start(broker)))
  await Promise.all(cluster.brokers.map((broker) => broker.ready()))
  await produce(20)
  await fullyReplicated()
  await assertAllThere()
})

test('a leader that stands still past its lease has lost nothing and takes nothing back when it goes on', async () => {
  const [leader] = await replicas()
  assert.ok(leader !== undefined)
  await produce(20)
  leader.pause()
  await produce(20)
  leader.resume()
  await produce(20)
  await fullyReplicated()
  await assertAllThere()
})

test('a leader that is told to stop has another lead first', async () => {
  const [leader] = await replicas()
  assert.ok(leader !== undefined)
  const producing = produce(200)
  assert.equal(await leader.end('SIGTERM'), 0)
  await producing
  await cluster.start(leader)
  await leader.ready()
  await fullyReplicated()
  await assertAllThere()
})
