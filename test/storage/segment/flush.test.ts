import assert from 'node:assert/strict'
import { test } from 'node:test'
import { topicId } from '../../../src/model/ids.ts'
import { simDisk } from '../../../src/sim/ports/disk.ts'
import { CacheBudget, type Evictable } from '../../../src/storage/cache/budget.ts'
import { settle } from '../support/ports.ts'
import {
  appendAll,
  BASE,
  counted,
  KEY,
  LISTENER,
  Model,
  plain,
  rig,
  scanAll,
  until,
} from './rig.ts'

const OTHER = { ...KEY, range: 1 }

test('an empty segment has no file; the first flush makes it and syncs its directories', async () => {
  const disk = simDisk({ trace: true })
  const r = rig(disk.mount())
  const segment = r.engine.create(KEY, LISTENER)
  await r.engine.flush()
  assert.deepEqual(disk.paths(), [])
  appendAll(r, segment, [new Model().make(0, 100)])
  await r.engine.flush()
  assert.deepEqual(disk.paths(), [`${BASE}.index`, `${BASE}.log`])
  for (const dir of ['.', 'topics', `topics/t-${KEY.topicId}`, `topics/t-${KEY.topicId}/range-0`]) {
    const synced = disk.trace.some(({ kind, path }) => kind === 'syncDir' && path === dir)
    assert.ok(synced, `${dir} is synced`)
  }
  await r.engine.close()
})

test('what is above the high watermark is not written, and holds the WAL', async () => {
  const r = rig(simDisk().mount())
  const segment = r.engine.create(KEY, LISTENER)
  const model = new Model()
  for (let i = 0; i < 10; i++) segment.append(model.make(0, 2000))
  r.wal.sync()
  segment.advance(4)
  await r.engine.flush()
  assert.equal(r.wal.released, 5)
  segment.advance(10)
  await r.engine.flush()
  assert.equal(r.wal.released, r.wal.nextLsn)
  await r.engine.close()
})

test('however many segments were written, few of their files are open', async () => {
  const disk = counted(simDisk().mount())
  const r = rig(disk)
  for (let segment = 0; segment < 1200; segment++) {
    appendAll(r, r.engine.create({ ...KEY, segment }, LISTENER), [new Model().make(0, 100)])
    await r.engine.flush()
  }
  await settle()
  assert.ok(disk.openFiles <= 1024, `${disk.openFiles} files are open`)
  await r.engine.close()
  assert.equal(disk.openFiles, 0)
})

test('a full block is written without being asked for, an old entry after its time', async () => {
  const disk = simDisk({ trace: true })
  const r = rig(disk.mount())
  const segment = r.engine.create(KEY, LISTENER)
  const model = new Model()
  appendAll(r, segment, [model.make(0, 300)])
  await settle()
  assert.deepEqual(disk.paths(), [])
  for (let i = 0; i < 8; i++) {
    r.clock.advance(250)
    await settle()
  }
  await until(() => r.wal.released === 2)
  appendAll(
    r,
    segment,
    Array.from({ length: 15 }, () => model.make(0, 300)),
  )
  await until(() => r.engine.unflushedBytes < 15 * 300)
  await r.engine.close()
})

test('segments that wait since the same moment are written a few at a time, all of them in time', async () => {
  const disk = simDisk({ trace: true })
  const r = rig(disk.mount(), {
    flushAgeMs: 10_000,
    cacheBytes: 1 << 21,
    unflushedBytesMax: 1 << 20,
  })
  for (let range = 0; range < 100; range++) {
    appendAll(r, r.engine.create({ ...KEY, range }, LISTENER), [new Model().make(0, 100)])
  }
  const written = (): number => disk.paths().filter((path) => path.endsWith('.log')).length
  let before = 0
  for (let ms = 500; ms <= 10_500; ms += 500) {
    r.clock.advance(500)
    for (let turn = 0; turn < 400; turn++) await settle()
    const now = written()
    assert.ok(now - before <= 10, `${now - before} within half a second`)
    if (ms < 5000) assert.equal(now, 0)
    before = now
  }
  assert.equal(before, 100)
  await r.engine.close()
})

test('a WAL with too many files has the segments of its oldest file flushed, however little they hold', async () => {
  const r = rig(simDisk().mount(), { flushAgeMs: 1_000_000 })
  const idle = r.engine.create(KEY, LISTENER)
  const busy = r.engine.create(OTHER, LISTENER)
  appendAll(r, idle, [new Model().make(0, 100)])
  appendAll(r, busy, [new Model().make(0, 100)])
  r.wal.filesInUse = 5
  r.wal.oldestFileEndLsn = 2
  r.engine.walGrew()
  await until(() => r.wal.released === 2)
  await r.engine.close()
})

test('without space the entries stay readable, other segments go on, and writing resumes by itself', async () => {
  const disk = simDisk({ trace: true })
  const r = rig(disk.mount())
  const poor = r.engine.create(KEY, LISTENER)
  const rich = r.engine.create(OTHER, LISTENER)
  const model = new Model()
  const heal = disk.fail({
    operation: 'write',
    path: `${BASE}.log`,
    fault: 'full',
    times: Number.POSITIVE_INFINITY,
  })
  appendAll(
    r,
    poor,
    Array.from({ length: 20 }, () => model.make(0, 400)),
  )
  appendAll(
    r,
    rich,
    Array.from({ length: 1 }, () => new Model().make(0, 400)),
  )
  await assert.rejects(r.engine.flush(), { code: 'STORAGE_FULL', retriable: true })
  assert.ok(disk.paths().some((path) => path.includes('range-1')))
  assert.deepEqual(plain(poor.readCached(0, 0, 1 << 20)), plain(model.entries))
  heal()
  for (let i = 0; i < 10; i++) {
    r.clock.advance(1000)
    await settle()
  }
  await until(() => r.wal.released === r.wal.nextLsn)
  assert.deepEqual(plain(await scanAll(poor)), plain(model.entries))
  assert.deepEqual(r.failures, [])
  await r.engine.close()
})

test('a failed sync is final: nothing is released, nothing is tried again', async () => {
  for (const operation of ['sync', 'syncDir'] as const) {
    const disk = simDisk({ trace: true })
    const r = rig(disk.mount())
    const segment = r.engine.create(KEY, LISTENER)
    disk.fail({ operation, fault: 'io', times: Number.POSITIVE_INFINITY })
    appendAll(r, segment, [new Model().make(0, 100)])
    await assert.rejects(r.engine.flush(), { code: 'DISK_FAILED' })
    assert.equal(r.failures.length, 1)
    const tries = disk.operations
    r.clock.advance(100_000)
    await settle()
    assert.equal(disk.operations, tries)
    assert.equal(r.wal.released, 0)
    await r.engine.close()
  }
})

test('a file that hangs does not keep the others from being written', async () => {
  const disk = simDisk({ trace: true })
  const r = rig(disk.mount())
  const stuck = r.engine.create(KEY, LISTENER)
  const others = Array.from({ length: 5 }, (_, i) =>
    r.engine.create({ ...KEY, topicId: topicId(`${i}`.padStart(32, '0')) }, LISTENER),
  )
  let free = (): void => {}
  disk.before = ({ kind, path }) =>
    kind === 'write' && path === `${BASE}.log`
      ? new Promise<void>((resolve) => (free = resolve))
      : undefined
  for (const segment of [stuck, ...others]) appendAll(r, segment, [new Model().make(0, 100)])
  const flushed = r.engine.flush()
  await until(() => disk.trace.filter(({ kind }) => kind === 'sync').length === 5)
  disk.before = undefined
  free()
  await flushed
  await r.engine.close()
})

test('a segment that is dropped lets go of memory and WAL, in the middle of a write too', async () => {
  const disk = simDisk({ trace: true })
  const r = rig(disk.mount())
  const segment = r.engine.create(KEY, LISTENER)
  const model = new Model()
  appendAll(
    r,
    segment,
    Array.from({ length: 20 }, () => model.make(0, 400)),
  )
  await segment.retire()
  assert.equal(r.engine.unflushedBytes, 0)
  assert.equal(r.wal.released, r.wal.nextLsn)
  await assert.rejects(segment.read(0, 0, 1))
  await r.engine.close()
})

test('a seal drops what is above it, writes the rest and lets the WAL go', async () => {
  const disk = simDisk({ trace: true })
  const r = rig(disk.mount())
  const segment = r.engine.create(KEY, LISTENER)
  const model = new Model()
  for (let i = 0; i < 10; i++) segment.append(model.make(i % 2, 100))
  r.wal.sync()
  segment.advance(3)
  await segment.seal(7)
  assert.deepEqual([segment.end, segment.highWatermark, segment.sealed], [7, 7, true])
  await until(() => r.wal.released === r.wal.nextLsn)
  assert.deepEqual(plain(await scanAll(segment)), plain(model.entries.slice(0, 7)))
  await r.engine.close()
})

test('the budget is kept by dropping what was written first, and only what was written', () => {
  const budget = new CacheBudget(1000)
  const order: string[] = []
  const tail = (name: string, entries: number): Evictable => {
    let next = 0
    return {
      get start() {
        return next
      },
      evictOne: (end) => {
        if (next >= Math.min(end, entries)) return 0
        order.push(`${name}${next++}`)
        return 100
      },
    }
  }
  const a = tail('a', 5)
  const b = tail('b', 5)
  budget.added(500)
  budget.added(500)
  budget.wrote(b, 2, 200)
  budget.wrote(a, 1, 100)
  assert.deepEqual(order, [])
  budget.added(300)
  assert.deepEqual(order, ['b0', 'b1', 'a0'])
  assert.equal(budget.bytes, 1000)
  budget.added(100)
  assert.equal(budget.bytes, 1100, 'nothing more was written')
  assert.equal(budget.unflushedBytes, 1100)
  budget.wrote(a, 5, 400)
  assert.equal(budget.bytes, 1000)
})
