// Nothing acknowledged is resurrected after deletion, and deletion frees the disk [I15]: with a broker that is killed
// as soon as the deletion is answered, and with one that runs on.

import assert from 'node:assert/strict'
import { mkdtemp, readdir, rm, stat } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { EastGuard } from '../../src/index.ts'
import { spawnBroker } from '../support/broker-process.ts'
import { within } from '../support/time.ts'

const RECORDS = 4000
/** Files are removed in the background. */
const GONE_MS = 10_000
const VALUE: Buffer = Buffer.alloc(2000, 'x')

async function filesOf(dataDir: string, name: string): Promise<string[]> {
  const found: string[] = []
  for (const root of ['topics', 'trash']) {
    const paths = await readdir(join(dataDir, root), { recursive: true }).catch(() => [])
    for (const path of paths) {
      const file = join(dataDir, root, path)
      const isFile = await stat(file).then(
        (s) => s.isFile(),
        () => false,
      )
      if (isFile && path.includes(`${name}-`)) found.push(file)
    }
  }
  return found
}

async function fill(client: EastGuard, topic: string): Promise<void> {
  await client.admin().createTopic(topic, { policy: { partitions: 2 } })
  const producer = client.producer()
  const records = Array.from({ length: RECORDS }, (_, i) => ({ topic, key: `${i}`, value: VALUE }))
  await producer.sendBatch(records)
  await producer.close()
}

async function assertGone(client: EastGuard, topic: string): Promise<void> {
  assert.deepEqual(await client.admin().listTopics(), ['stays'])
  await client.admin().createTopic(topic, { policy: { partitions: 2 } })
  const ends = await client.admin().listOffsets(topic, 'latest')
  assert.deepEqual(
    ends.map(({ offset }) => offset),
    [0, 0],
  )
}

for (const killed of [false, true]) {
  test(`a deleted topic stays deleted and frees the disk, the broker ${killed ? 'killed at once' : 'running on'}`, async (t) => {
    const dataDir = await mkdtemp(join(tmpdir(), 'eastguard-deletion-'))
    const flags = ['--block-bytes', '256KiB', '--flush-age-ms', '50']
    let broker = await spawnBroker({ dataDir, flags })
    t.after(async () => {
      broker.child.kill('SIGKILL')
      await broker.exited
      await rm(dataDir, { recursive: true, force: true })
    })
    await broker.ready()
    await using client = new EastGuard({ seeds: [`127.0.0.1:${broker.port}`] })
    await fill(client, 'stays')
    await fill(client, 'goes')
    await within(
      GONE_MS,
      'nothing was flushed',
      async () => (await filesOf(dataDir, 'goes')).length > 0,
    )
    await client.admin().deleteTopic('goes')
    if (killed) {
      broker.child.kill('SIGKILL')
      await broker.exited
      broker = await spawnBroker({ dataDir, flags }, broker)
      await broker.ready()
    }
    await within(GONE_MS, 'files stayed', async () => (await filesOf(dataDir, 'goes')).length === 0)
    await assertGone(client, 'goes')
    const ends = await client.admin().listOffsets('stays', 'latest')
    assert.equal(
      ends.reduce((sum, { offset }) => sum + offset, 0),
      RECORDS,
    )
  })
}
