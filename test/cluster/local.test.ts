// A cluster as people run one: real brokers that found it, join it, die, come back, are drained and removed.

import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { EXIT_REMOVED } from '../../src/app/exit-codes.ts'
import { EastGuardError } from '../../src/base/errors.ts'
import { unsettled } from '../../src/cli/commands/settled.ts'
import { EastGuard } from '../../src/index.ts'
import { type LocalBroker, LocalCluster } from '../support/local-cluster.ts'

/** Few, so that nothing takes long. */
const SHARDS = 32
/** Of everything that the cluster does by itself, on a busy machine. */
const SETTLED_MS = 30_000
const WORKS_MS = 3000
const MEANWHILE = 24

let cluster: LocalCluster

before(async () => {
  cluster = await LocalCluster.make({ flags: [`--metadata-shards=${SHARDS}`] })
})

after(() => cluster.close())

function broker(number: number): LocalBroker {
  const found = cluster.brokers[number - 1]
  assert.ok(found !== undefined, `there is a broker ${number}`)
  return found
}

/** Not one of them lacks a topic. */
async function seenBy(names: readonly string[], brokers: readonly LocalBroker[]): Promise<void> {
  for (const { address } of brokers) {
    await using client = new EastGuard({ seeds: [address] })
    const found = await client.admin().describeTopics(names)
    assert.deepEqual(
      found.map(({ name }) => name),
      names,
    )
  }
}

test('three brokers become one cluster that spreads its metadata evenly', async () => {
  for (let i = 0; i < 3; i++) await cluster.add()
  const info = await cluster.until('three brokers', SETTLED_MS)
  assert.deepEqual(
    info.brokers.map(({ nodeNumber, displayName, shards }) => [nodeNumber, displayName, shards]),
    [1, 2, 3].map((number) => [number, `broker-${number}`, SHARDS]),
  )
})

test('a topic that was made at one broker is there at all others at once', async () => {
  await using client = new EastGuard({ seeds: [broker(2).address] })
  const names = Array.from({ length: 8 }, (_, i) => `at-once-${i}`)
  for (const name of names) {
    await client.admin().createTopic(name)
    await seenBy([name], [broker(1), broker(3)])
  }
})

test('when a broker is killed the others make topics within three seconds, and it learns of them', async () => {
  await broker(1).end('SIGKILL')
  const names = Array.from({ length: MEANWHILE }, (_, i) => `meanwhile-${i}`)
  // Its first seed is the one that is down.
  await using client = new EastGuard({ seeds: cluster.seeds })
  const admin = client.admin()
  // Of every shard, those that it led too.
  await Promise.all(names.map((name) => admin.createTopic(name, { timeoutMs: WORKS_MS })))
  await cluster.start(broker(1))
  await broker(1).ready()
  await seenBy(names, cluster.brokers)
  await cluster.until('it is back', SETTLED_MS)
})

test('a fourth broker takes its part, gives it back when drained, and is gone when removed', async () => {
  await cluster.add()
  const four = await cluster.until('a fourth', SETTLED_MS)
  const [, , , added] = four.brokers
  assert.ok(added !== undefined && added.shards > 0, unsettled(four).join())
  // Those that have lost a shard to it know so too.
  for (const { address } of cluster.brokers) {
    await cluster.until(`a fourth, at ${address}`, SETTLED_MS, undefined, [address])
  }
  await using client = new EastGuard({ seeds: [broker(1).address] })
  await client.admin().setBrokerRole(added.nodeId, 'draining')
  await cluster.until('it is drained', SETTLED_MS, (info) =>
    info.brokers.some(({ nodeId, shards }) => nodeId === added.nodeId && shards === 0),
  )
  await client.admin().setBrokerRole(added.nodeId, 'removed')
  const removed = cluster.brokers.pop()
  assert.ok(removed !== undefined)
  assert.equal(await removed.ended(), EXIT_REMOVED, 'it stops by itself')
  const three = await cluster.until('it is removed', SETTLED_MS)
  assert.deepEqual(
    three.brokers.filter(({ role }) => role === 'member').map(({ shards }) => shards),
    [SHARDS, SHARDS, SHARDS],
  )
  await cluster.start(removed)
  assert.equal(await removed.ended(), EXIT_REMOVED, 'and says so when it is started again')
  assert.match(removed.process?.log() ?? '', /was removed from its cluster for good/)
})

test('a broker that waits for the others says so, and stops when it is told to', async () => {
  const codes = await Promise.all(cluster.brokers.map((each) => each.end('SIGTERM')))
  assert.deepEqual(codes, [0, 0, 0])
  await cluster.start(broker(2))
  await broker(2).begun()
  await assert.rejects(broker(2).ready(500), /was not ready/)
  assert.equal(await broker(2).end('SIGTERM'), 0)
})

test('when all were stopped, all come back, whoever starts last, and nothing is lost', async () => {
  await using before = new EastGuard({ seeds: cluster.seeds })
  await assert.rejects(
    before.admin().listTopics({ timeoutMs: 500 }),
    (error) => error instanceof EastGuardError && error.retriable,
  )
  await cluster.start(broker(3))
  await cluster.start(broker(2))
  await Promise.all([broker(2).ready(), broker(3).ready()])
  // The founder.
  await cluster.start(broker(1))
  await broker(1).ready()
  for (const { address } of cluster.brokers) {
    await using client = new EastGuard({ seeds: [address] })
    assert.equal((await client.admin().listTopics()).length, 8 + MEANWHILE)
  }
  await cluster.until('all are back', SETTLED_MS)
})
