import assert from 'node:assert/strict'
import { cp, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { configOf } from '../../src/app/config/load.ts'
import { startLocalServer } from '../../src/app/server.ts'
import { systemClock } from '../../src/io/clock/system-clock.ts'
import { type FaultyDisk, faultyDisk } from '../../src/io/faults/faulty-disk.ts'
import type { TopicId } from '../../src/model/ids.ts'
import type { DiskSpace } from '../../src/ports/disk.ts'
import type { RunningBroker } from '../../src/server/types.ts'
import { simLog } from '../../src/sim/ports/log.ts'
import { startBroker } from '../../src/testing.ts'
import { deleteTopic } from '../../src/wire/native/delete-topic.ts'
import { batchOf, RawClient, slotOf } from '../broker/support/raw-client.ts'

async function scratch(t: TestContext): Promise<string> {
  const dir = await mkdtemp(join(tmpdir(), 'eastguard-test-'))
  t.after(() => rm(dir, { recursive: true, force: true }))
  return dir
}

async function status(port: number, path: string): Promise<number> {
  const answer = await fetch(`http://127.0.0.1:${port}${path}`)
  await answer.text()
  return answer.status
}

async function temporaries(): Promise<string[]> {
  const names = await readdir(tmpdir())
  return names.filter((name) => name.startsWith(`eastguard-`))
}

test('a test broker is ready within a second', async () => {
  const tookMs: number[] = []
  // The first loads the code, and others may use the machine: what it can do shows in the best.
  for (let i = 0; i < 3; i++) {
    const began = performance.now()
    await using _broker = await startBroker()
    tookMs.push(performance.now() - began)
  }
  assert.ok(Math.min(...tookMs) < 1000, `it took ${tookMs.map(Math.round).join(', ')} ms`)
})

test('a test broker answers health, and leaves nothing behind', async () => {
  await using broker = await startBroker()
  assert.equal(await status(broker.httpPort, '/healthz'), 200)
  assert.equal(await status(broker.httpPort, '/readyz'), 200)
  assert.equal(await status(broker.httpPort, '/metrics'), 200)
  assert.equal(await status(broker.httpPort, '/elsewhere'), 404)
  assert.ok((await temporaries()).some((name) => broker.dataDir.endsWith(name)))
  await broker.stop()
  await broker.stop()
  assert.ok(!(await temporaries()).some((name) => broker.dataDir.endsWith(name)))
  await assert.rejects(fetch(`http://127.0.0.1:${broker.httpPort}/healthz`))
})

test('what was acknowledged is there after a restart at the same address, and is written on', async (t) => {
  const dataDir = await scratch(t)
  let port = 0
  let topic = '' as TopicId
  for (let round = 0; round < 4; round++) {
    await using broker = await startBroker({ dataDir, port })
    port = broker.port
    const client = await RawClient.ready(port)
    if (round === 0) topic = await client.createTopic('t', { partitions: 3 })
    const idempotence = { producerId: 1, producerEpoch: 0, baseSequence: round }
    const batch = slotOf(topic, 1, batchOf(['exactly once'], idempotence))
    for (const again of [0, 1]) {
      assert.equal((await client.produce([batch]))[0]?.baseOffset, round, `again ${again}`)
    }
    assert.equal(await client.send(topic, 0, 'a', 'b'), 2 * round)
    const all = await client.fetch(topic, 0, 0)
    assert.equal(all.highWatermark, 2 * round + 2)
    assert.equal((await client.fetch(topic, 0, 2 * round)).batches.length, 1)
    client.close()
  }
})

test('a retry that crosses a restart is recognised', async (t) => {
  const dataDir = await scratch(t)
  const first = await startBroker({ dataDir })
  const before = await RawClient.ready(first.port)
  const topic = await before.createTopic('t')
  const batch = (sequence: number): Uint8Array =>
    batchOf(['x'], { producerId: 5, producerEpoch: 0, baseSequence: sequence })
  for (let i = 0; i < 3; i++) await before.produce([slotOf(topic, 9, batch(i))])
  before.close()
  await first.stop()
  await using second = await startBroker({ dataDir })
  const client = await RawClient.ready(second.port)
  assert.equal((await client.produce([slotOf(topic, 9, batch(2))]))[0]?.baseOffset, 2)
  assert.equal((await client.produce([slotOf(topic, 9, batch(3))]))[0]?.baseOffset, 3)
  assert.equal(
    (await client.produce([slotOf(topic, 9, batch(5))]))[0]?.error,
    'OUT_OF_ORDER_SEQUENCE',
  )
  client.close()
})

test('a data directory that cannot be used is refused, each with its own error', async (t) => {
  const dir = await scratch(t)
  const dataDir = join(dir, 'data')
  {
    await using broker = await startBroker({ dataDir })
    await assert.rejects(startBroker({ dataDir }), { code: 'DATA_DIR_IN_USE' })
    const port = broker.port
    await assert.rejects(startBroker({ port }), /cannot listen on 127\.0\.0\.1/)
  }
  const node = join(dataDir, 'node.json')
  const good = await readFile(node, 'utf8')
  await writeFile(node, good.replace(/"format": \d+/, '"format": 99'))
  await assert.rejects(startBroker({ dataDir }), { code: 'DATA_DIR_NEWER' })
  await writeFile(node, good.replace('test', 'tset'))
  await assert.rejects(startBroker({ dataDir }), { code: 'DATA_DIR_UNUSABLE' })
  await writeFile(node, good)
  await rm(join(dataDir, 'journal'), { recursive: true })
  await assert.rejects(startBroker({ dataDir }), { code: 'DATA_DIR_MISMATCH' })
  const file = join(dir, 'a-file')
  await writeFile(file, '')
  await assert.rejects(startBroker({ dataDir: file }), { code: 'DATA_DIR_UNUSABLE' })
})

async function topicDirs(dataDir: string): Promise<string[]> {
  return await readdir(join(dataDir, 'topics'))
}

test('deletion frees the disk, and one that a crash cut short is finished at the next start', async (t) => {
  const dir = await scratch(t)
  const dataDir = join(dir, 'data')
  const config = { flush_age_ms: 10 }
  const first = await startBroker({ dataDir, config })
  const before = await RawClient.ready(first.port)
  const topic = await before.createTopic('t')
  await before.send(topic, 0, 'x'.repeat(100_000))
  before.close()
  await first.stop()
  assert.equal((await topicDirs(dataDir)).length, 1)
  await cp(join(dataDir, 'topics'), join(dir, 'kept'), { recursive: true })
  const second = await startBroker({ dataDir, config })
  const client = await RawClient.ready(second.port)
  await client.ask(deleteTopic, { name: 't' })
  assert.deepEqual(await topicDirs(dataDir), [])
  assert.deepEqual(await readdir(join(dataDir, 'trash')).catch(() => []), [])
  client.close()
  await second.stop()
  // The metadata says deleted, the files are still there: as after a crash between the two.
  await cp(join(dir, 'kept'), join(dataDir, 'topics'), { recursive: true })
  await using third = await startBroker({ dataDir, config })
  assert.deepEqual(await topicDirs(dataDir), [])
  const last = await RawClient.ready(third.port)
  await last.createTopic('t')
  last.close()
})

interface Faulty {
  readonly server: RunningBroker
  readonly faults: FaultyDisk['faults']
  /** The disk says so, but the files that the broker has taken can still be written. */
  readonly setNoSpace: (none: boolean) => void
  readonly fatal: Promise<Error>
}

async function onFaultyDisk(dataDir: string): Promise<Faulty> {
  let faults: FaultyDisk['faults'] | undefined
  let noSpace = false
  let tell: ((error: Error) => void) | undefined
  const fatal = new Promise<Error>((resolve) => {
    tell = resolve
  })
  const server = await startLocalServer({
    config: configOf({
      data_dir: dataDir,
      client_port: 0,
      http_port: 0,
      cluster_port: 0,
      data_port: 0,
      wal_file_bytes: '1MiB',
      reserve_bytes: '1MiB',
      drain_timeout_ms: 200,
    }),
    version: '0',
    log: simLog(),
    processMetrics: false,
    hooks: { onFatal: (error) => tell?.(error) },
    wrapDisk: (disk) => {
      const faulty = faultyDisk(disk, systemClock())
      faults = faulty.faults
      const space = async (): Promise<DiskSpace> => {
        const real = await disk.space()
        return noSpace ? { ...real, freeBytes: 0 } : real
      }
      return { ...faulty.disk, space }
    },
  })
  assert.ok(faults !== undefined)
  const setNoSpace = (none: boolean): void => {
    noSpace = none
  }
  return { server, faults, setNoSpace, fatal }
}

test('a failed write is fatal: the owner is told, nothing more is acknowledged, nobody is told ready', async (t) => {
  const { server, faults, fatal } = await onFaultyDisk(await scratch(t))
  const client = await RawClient.ready(server.client.port)
  const topic = await client.createTopic('t')
  await client.send(topic, 0, 'good')
  faults.failNext('write', 'io', 1, 'wal/')
  let answered = false
  void client.send(topic, 0, 'lost').then(
    () => {
      answered = true
    },
    () => {},
  )
  assert.match((await fatal).message, /wal/)
  assert.equal(await status(server.http?.port ?? 0, '/readyz'), 503)
  assert.equal(answered, false)
  await server.stop()
  await client.closed
  assert.equal(answered, false)
})

test('a full disk refuses writes, serves reads, and takes writes again when there is space', async (t) => {
  const { server, setNoSpace } = await onFaultyDisk(await scratch(t))
  const client = await RawClient.ready(server.client.port)
  const topic = await client.createTopic('t')
  await client.send(topic, 0, 'before')
  setNoSpace(true)
  for (;;) {
    const [result] = await client.produce([slotOf(topic, 0, batchOf(['x']))])
    if (result?.error === undefined) continue
    assert.equal(result.error, 'STORAGE_FULL')
    break
  }
  assert.equal((await client.fetch(topic, 0, 0)).batches.length, 1)
  setNoSpace(false)
  for (;;) {
    const [result] = await client.produce([slotOf(topic, 0, batchOf(['after']))])
    if (result?.error === undefined) break
    assert.equal(result.error, 'STORAGE_FULL')
  }
  client.close()
  await server.stop()
})
