// A segment of which every replica has lost the same record: nobody can end it but an operator, and then everything before that
// record is there, on all of them, and what comes after it goes on from its offset.

import assert from 'node:assert/strict'
import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { test } from 'node:test'
import { EastGuardError } from '../../src/base/errors.ts'
import type { Admin, ForceableEnd } from '../../src/client/api.ts'
import { EastGuard } from '../../src/index.ts'
import { type LocalBroker, LocalCluster } from '../support/local-cluster.ts'
import { within } from '../support/time.ts'

const RECORDS = 60
const LOST = 40
/** Of everything that the cluster does by itself, on a busy machine. */
const WITHIN_MS = 60_000

function valueOf(i: number): string {
  return `record ${i}: ${'x'.repeat(1000)}`
}

/** One bit of the record in the broker's write-ahead log. */
function spoil({ dataDir }: LocalBroker): void {
  for (const name of readdirSync(`${dataDir}/wal`)) {
    const path = `${dataDir}/wal/${name}`
    const bytes = readFileSync(path)
    const at = bytes.indexOf(`record ${LOST}: `)
    if (at < 0) continue
    bytes[at + 500] = 0
    writeFileSync(path, bytes)
    return
  }
  throw new Error(`the log in ${dataDir} has no such record`)
}

async function forceable(admin: Admin): Promise<ForceableEnd | undefined> {
  try {
    return await admin.describeForcedEnd('t', 0)
  } catch (error) {
    if (error instanceof EastGuardError && error.code === 'END_NOT_FORCED') return undefined
    throw error
  }
}

test('what every replica has lost an operator gives up, and nothing before it', async () => {
  const cluster = await LocalCluster.make({ flags: ['--metadata-shards=8'] })
  try {
    for (let i = 0; i < 3; i++) await cluster.add()
    await cluster.until('three brokers', WITHIN_MS)
    await using client = new EastGuard({ seeds: cluster.seeds })
    const admin = client.admin()
    await admin.createTopic('t', { policy: { partitions: 1, replicationFactor: 3 } })
    const producer = client.producer()
    for (let i = 0; i < RECORDS; i++) await producer.send({ topic: 't', value: valueOf(i) })
    assert.equal(await forceable(admin), undefined)
    await Promise.all(cluster.brokers.map((broker) => broker.end('SIGKILL')))
    for (const broker of cluster.brokers) spoil(broker)
    await Promise.all(cluster.brokers.map((broker) => cluster.start(broker)))

    await within(WITHIN_MS, 'nobody is sure', async () => {
      const { answers = [] } = (await forceable(admin)) ?? {}
      return answers.length === 3 && answers.every(({ unsure }) => unsure !== undefined)
    })
    const { unavailable, underReplicated } = await admin.describeCluster()
    assert.equal(unavailable + underReplicated, 1, 'whoever is asked says that it is not well')
    const known = await forceable(admin)
    assert.ok(known !== undefined)
    const { segment } = known
    assert.deepEqual(
      known.answers.map(({ end }) => end),
      [LOST, LOST, LOST],
    )
    assert.ok(known.highWatermark > LOST, 'what is lost was readable')
    assert.ok(known.answers.every(({ unsure = '' }) => unsure.length < 500))
    await admin.forceEnd('t', 0, { segment, end: LOST })
    await within(WITHIN_MS, 'the successor is open', async () => {
      const topic = await admin.describeTopic('t')
      return topic.ranges[0]?.segments.at(-1)?.segment === segment + 1
    })
    // Another producer: of the first one records are gone that it was told are stored, so that it may be in doubt of its next.
    const place = await client.producer().send({ topic: 't', value: 'after' })
    assert.equal(place.offset, LOST)

    const read: string[] = []
    for await (const { value } of client.consumer({ topic: 't', stopAtEnd: true })) {
      read.push(Buffer.from(value ?? []).toString())
    }
    const kept = Array.from({ length: LOST }, (_, i) => valueOf(i))
    assert.deepEqual(read, [...kept, 'after'])
    await within(WITHIN_MS, 'all replicas agree', async () => {
      const topic = await admin.describeTopic('t')
      const sealed = topic.ranges[0]?.segments.find((one) => one.segment === segment)
      return sealed?.endEntry === LOST && (sealed.digest ?? '') !== ''
    })
  } finally {
    await cluster.close()
  }
})
