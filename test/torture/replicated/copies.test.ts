// What finds differences between replicas is shown some: the data directory of a broker and a copy of it play two brokers.

import assert from 'node:assert/strict'
import { cp, mkdtemp, open, rm, truncate } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { inspectFile } from '../../../src/app/inspect.ts'
import { EastGuard } from '../../../src/index.ts'
import { nodeId } from '../../../src/model/ids.ts'
import type { SegmentView, TopicView } from '../../../src/model/metadata.ts'
import { rangeDir } from '../../../src/storage/segment/paths.ts'
import { spawnBroker } from '../../support/broker-process.ts'
import { compareCopies, type Known, logFile } from './copies.ts'

const TOPIC = 'compared'
const STRANGE = 'strange'
const RECORDS = 40
const ONE = nodeId('1'.repeat(32))
const OTHER = nodeId('2'.repeat(32))

let dir: string
/** As it would be described, with two replicas: its one segment sealed. */
let topic: TopicView
let path: string
/** A segment file that is whole, with other entries. */
let stranger: string

before(async () => {
  dir = await mkdtemp(join(tmpdir(), 'eastguard-copies-'))
  const broker = await spawnBroker({ dataDir: join(dir, ONE) })
  await broker.ready()
  const client = new EastGuard({ seeds: [`127.0.0.1:${broker.port}`] })
  const producer = client.producer({ lingerMs: 0 })
  for (const name of [TOPIC, STRANGE]) {
    await client.admin().createTopic(name, { policy: { partitions: 1 } })
    for (let i = 0; i < RECORDS; i++) await producer.send({ topic: name, value: `record ${i}` })
  }
  const [described, strange] = await client.admin().describeTopics([TOPIC, STRANGE])
  await client.close()
  broker.child.kill('SIGTERM')
  await broker.exited
  assert.ok(described !== undefined && strange !== undefined)
  const [range] = described.ranges
  const [segment] = range?.segments ?? []
  assert.ok(range !== undefined && segment !== undefined)
  const found = await firstFile(described)
  stranger = await firstFile(strange)
  const inspected = await inspectFile(found, true)
  assert.ok(inspected.kind === 'segment')
  const { entries: endEntry, digest = '' } = inspected.segment
  const sealed = { ...segment, state: 'sealed', endEntry, digest, replicas: [ONE, OTHER] } as const
  topic = { ...described, ranges: [{ ...range, segments: [sealed] }] }
  path = found.replace(ONE, OTHER)
})

/** Of the broker that wrote. */
async function firstFile({ name, topicId }: TopicView): Promise<string> {
  const inDir = rangeDir(name, { topicId, range: 0, segment: 1 })
  const found = await logFile(join(dir, ONE, inDir), 1)
  assert.ok(found !== undefined)
  return found
}

after(() => rm(dir, { recursive: true, force: true }))

/** What is said when the other broker's file is changed so. */
async function judged(
  change: () => Promise<void>,
  more: Partial<SegmentView> = {},
): Promise<string> {
  await rm(join(dir, OTHER), { recursive: true, force: true })
  const filter = (file: string): boolean => !file.includes('lock')
  await cp(join(dir, ONE), join(dir, OTHER), { recursive: true, filter })
  await change()
  const ranges = topic.ranges.map((range) => ({
    ...range,
    segments: range.segments.map((segment) => ({ ...segment, ...more })),
  }))
  const { violations } = await compareCopies([{ ...topic, ranges }], (node) => join(dir, node))
  return violations.join('\n')
}

async function flipLastByte(): Promise<void> {
  const file = await open(path, 'r+')
  const { size } = await file.stat()
  const bytes = new Uint8Array(1)
  await file.read(bytes, 0, 1, size - 1)
  bytes[0] = (bytes[0] as number) ^ 1
  await file.write(bytes, 0, 1, size - 1)
  await file.close()
}

test('two copies that are the same are', async () => {
  assert.equal(await judged(async () => {}), '')
})

test('a flipped bit, a file cut off, one that is missing and another digest are found', async () => {
  assert.match(await judged(flipLastByte), /does not match its checksum/)
  assert.match(await judged(() => truncate(path, 5000)), /has 0 entries of/)
  assert.match(await judged(() => rm(path)), /it has no file/)
  const wrong = { digest: '0'.repeat(64) }
  assert.match(await judged(async () => {}, wrong), /the metadata says 0000/)
})

test('what was read before is read again when it has changed', async () => {
  const known: Known = new Map()
  const look = async (map: Known): Promise<string> =>
    (await compareCopies([topic], (node) => join(dir, node), map)).violations.join('\n')
  await judged(async () => {})
  assert.equal(await look(known), '')
  await flipLastByte()
  assert.match(await look(known), /does not match its checksum/)
  assert.equal(await look(known), await look(new Map()))
})

test('entries that are whole and others than those of the other replica are found, in an open segment too', async () => {
  const others = (): Promise<void> => cp(stranger, path)
  for (const state of ['sealed', 'open'] as const) {
    assert.match(await judged(others, { state }), /entry 0 of 2+ is another than that of 1+/)
  }
})

test('a copy that lacks entries is found in a sealed segment only', async () => {
  const cut = (): Promise<void> => truncate(path, 4096)
  assert.match(await judged(cut), /has 0 entries of/)
  assert.equal(await judged(cut, { state: 'open' }), '')
})
