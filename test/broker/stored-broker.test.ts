// The broker on its real log store: what must come back by itself, what must be remembered, what must be gone.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Disk, DiskFile } from '../../src/ports/disk.ts'
import { simDisk } from '../../src/sim/ports/disk.ts'
import { RECORDS_AT } from '../../src/storage/wal/header.ts'
import { settle } from '../storage/support/ports.ts'
import { makeTopic, openStored, plainBatch, produce, readAll } from './support/stored-broker.ts'

const BATCH: Uint8Array = plainBatch(600, 1, 0, 1)

test('damage that only the write-ahead log could show is remembered over every restart', async () => {
  const sim = simDisk()
  const first = await openStored(sim.mount(), 1)
  const topic = await makeTopic(first, 't', { partitions: 1 })
  for (let i = 0; i < 3; i++) await produce(first, topic, 0, BATCH.slice())
  await settle()
  first.clock.advance(25)
  await settle()
  const value = Buffer.from(BATCH.subarray(61, 100))
  const path = sim
    .paths()
    .find((each) => each.startsWith('wal/') && Buffer.from(sim.bytesOf(each)).includes(value))
  assert.ok(path !== undefined)
  sim.flipBit(path, Buffer.from(sim.bytesOf(path)).indexOf(value), 0)
  sim.crash({ keepUnsynced: true })
  for (let start = 0; start < 4; start++) {
    const again = await openStored(sim.mount(), 10 + start)
    const read = await readAll(again, topic, 0)
    assert.equal(read.error?.code, 'DAMAGED', `start ${start}`)
    assert.deepEqual(read.batches, [])
    await assert.rejects(produce(again, topic, 0, BATCH.slice()), { code: 'DAMAGED' })
    // By turns ended in good order and killed.
    if (start % 2 === 0) await again.close()
    sim.crash({ keepUnsynced: start !== 3 })
  }
  const names = await sim.mount().list(`topics/t-${topic}/range-0`)
  assert.ok(
    names.some(({ name }) => name.endsWith('.salvage')),
    'what stood behind the gap is kept',
  )
})

test('a list of damaged segments that cannot be read stops the start and names the way out', async () => {
  const sim = simDisk()
  const first = await openStored(sim.mount(), 1)
  const topic = await makeTopic(first, 't', { partitions: 1 })
  await produce(first, topic, 0, BATCH.slice())
  await first.close()
  const disk = sim.mount()
  const list = await disk.open('damaged', { mode: 'create' })
  await list.write([new Uint8Array(20)], 0)
  const refused = { code: 'DAMAGED', message: /list of damaged segments/, hint: /eastguard repair/ }
  await assert.rejects(openStored(disk, 2), refused)
})

test('a journal that was cut off, or lost its records, stops the start, and no topic is removed', async () => {
  const sim = simDisk()
  const first = await openStored(sim.mount(), 1)
  const topic = await makeTopic(first, 't', { partitions: 1 })
  await produce(first, topic, 0, BATCH.slice())
  await makeTopic(first, 'later', { partitions: 1 })
  await first.close()
  const before = sim.paths().filter((path) => path.startsWith('topics/'))
  assert.ok(before.some((path) => path.endsWith('.log')))
  const whole = sim.snapshot()
  const cut = (length: number) => (file: DiskFile) => file.truncate(length)
  const zeros = async (file: DiskFile): Promise<void> => {
    await file.write([new Uint8Array((await file.size()) - RECORDS_AT)], RECORDS_AT)
  }
  for (const [harm, message] of [
    [cut(5000), /cut off: 5000 of 16384 bytes/],
    [cut(9000), /cut off: 9000 of 16384 bytes/],
    [zeros, /journal\/ holds nothing, but topics\/ holds 1/],
  ] as const) {
    sim.restore(whole)
    const disk = sim.mount()
    for (const { name } of await disk.list('journal')) {
      const file = await disk.open(`journal/${name}`, { mode: 'write' })
      await harm(file)
      await file.sync()
      await file.close()
    }
    for (let start = 0; start < 2; start++) {
      const refused = { code: 'DAMAGED', message }
      await assert.rejects(openStored(disk, 2 + start), refused, `start ${start}`)
    }
    const after = sim.paths().filter((path) => path.startsWith('topics/'))
    assert.deepEqual(after, before)
  }
})

/** The disk with another idea of what is free. */
function withSpace(disk: Disk, free: () => number): Disk {
  const space = async (): Promise<Awaited<ReturnType<Disk['space']>>> => ({
    totalBytes: 1 << 30,
    freeBytes: free(),
  })
  return Object.assign(Object.create(disk) as Disk, { space })
}

test('below the reserve writes are refused and reads go on; with space again writing resumes by itself', async () => {
  let free = 1 << 30
  const reserveBytes = 1 << 20
  const disk = withSpace(simDisk().mount(), () => free)
  const running = await openStored(disk, 1, { reserveBytes })
  const topic = await makeTopic(running, 't', { partitions: 1 })
  assert.equal(await produce(running, topic, 0, BATCH.slice()), 0)
  for (let round = 1; round <= 3; round++) {
    free = reserveBytes
    running.clock.advance(1000)
    await settle()
    await assert.rejects(produce(running, topic, 0, BATCH.slice()), { code: 'STORAGE_FULL' })
    assert.equal((await readAll(running, topic, 0)).batches.length, round)
    free = 1 << 30
    running.clock.advance(1000)
    await settle()
    assert.equal(await produce(running, topic, 0, BATCH.slice()), round)
  }
  await running.close()
})

test('with no space for the next log file nothing acknowledged is lost, and writing resumes by itself', async () => {
  const sim = simDisk({ capacityBytes: 400 * 1024 })
  const disk = sim.mount()
  const running = await openStored(disk, 1, { walFilesMax: 1 })
  const topic = await makeTopic(running, 't', { partitions: 1 })
  await produce(running, topic, 0, BATCH.slice())
  await settle()
  const ballast = await disk.open('ballast', { mode: 'create-new' })
  await ballast.allocate((await disk.space()).freeBytes)
  let acknowledged = 1
  let refused: unknown
  while (refused === undefined) {
    await produce(running, topic, 0, BATCH.slice()).then(
      () => acknowledged++,
      (error: unknown) => {
        refused = error
      },
    )
  }
  assert.equal((refused as { code?: string }).code, 'STORAGE_FULL')
  assert.equal((await readAll(running, topic, 0)).batches.length, acknowledged)
  await ballast.truncate(0)
  for (let i = 0; i < 5; i++) {
    running.clock.advance(1000)
    await settle()
  }
  assert.equal(await produce(running, topic, 0, BATCH.slice()), acknowledged)
  await running.close()
  const again = await openStored(sim.mount(), 2)
  assert.equal((await readAll(again, topic, 0)).batches.length, acknowledged + 1)
})

test('produces that find no room wait, and go on when segments have been written', async () => {
  const limits = { unflushedBytesMax: 2000, blockBytes: 1000, walFileBytes: 64 * 1024 }
  const running = await openStored(simDisk().mount(), 1, limits)
  const topic = await makeTopic(running, 't', { partitions: 1 })
  const all = Array.from({ length: 40 }, () => produce(running, topic, 0, BATCH.slice()))
  assert.deepEqual(
    await Promise.all(all),
    all.map((_, i) => i),
  )
  await running.close()
})

test('a deleted topic of which a crash left only range states or empty directories is swept at the start', async () => {
  const sim = simDisk()
  const disk = sim.mount()
  const first = await openStored(disk, 1)
  const topic = await makeTopic(first, 'gone', { partitions: 1, segmentEntries: 2 })
  for (let i = 0; i < 3; i++) await produce(first, topic, 0, BATCH.slice())
  await settle()
  const states = sim
    .paths()
    .filter((path) => path.endsWith('.state'))
    .map((path) => [path, sim.bytesOf(path).slice()] as const)
  assert.equal(states.length, 1)
  await first.broker.deleteTopic({ topicId: topic })
  await makeTopic(first, 'stays', { partitions: 1 })
  await first.close()
  // The crash: the range state is back, and so is another topic's empty directory.
  for (const [path, bytes] of states) {
    await disk.makeDir(path.slice(0, path.lastIndexOf('/')))
    const file = await disk.open(path, { mode: 'create-new' })
    await file.write([bytes], 0)
    await file.close()
  }
  await disk.makeDir(`topics/empty-${'ab'.repeat(16)}`)
  const again = await openStored(disk, 2)
  assert.deepEqual(await disk.list('topics'), [])
  assert.deepEqual([...again.metadata.state.topicsByName.keys()], ['stays'])
  await again.close()
})

test('a broker whose disk is full stops, also in the moment in which it asks for space again', async () => {
  const sim = simDisk()
  const running = await openStored(sim.mount(), 1)
  const topic = await makeTopic(running, 't', { partitions: 1 })
  await produce(running, topic, 0, BATCH.slice())
  await settle()
  sim.capacityBytes = 0
  // It fits in no log file, and there is no space for a larger one.
  const waiting = produce(running, topic, 0, plainBatch(30_000, 1, 0, 2))
  waiting.catch(() => {})
  await settle()
  running.clock.advance(1000)
  let closed = false
  void running.close().then(() => {
    closed = true
  })
  for (let i = 0; i < 20 && !closed; i++) await settle()
  assert.ok(closed)
  sim.capacityBytes = Number.POSITIVE_INFINITY
  const again = await openStored(sim.mount(), 2)
  assert.equal((await readAll(again, topic, 0)).end, 1)
  await again.close()
})
