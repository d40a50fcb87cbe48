// What the simulated disk may lose, and may not: it judges all of storage, so it is judged first.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import type { Disk } from '../../src/ports/disk.ts'
import { type Crash, simDisk } from '../../src/sim/ports/disk.ts'
import { bytes, readAll, refused } from './disk.suite.ts'
import { settle } from './support.ts'

const POWER_CUT: Crash = { keepUnsynced: false }
const KILL: Crash = { keepUnsynced: true }
const SOME: Crash = { keepUnsynced: 'some' }

async function content(disk: Disk, path: string): Promise<Uint8Array> {
  const file = await disk.open(path, { mode: 'read' })
  return readAll(file, 0)
}

async function names(disk: Disk, path: string): Promise<string[]> {
  return (await disk.list(path)).map((entry) => entry.name).sort()
}

test('a power cut keeps what was synced, and its name only if the directory was synced', async () => {
  const sim = simDisk()
  const disk = sim.mount()
  const kept = await disk.open('kept', { mode: 'create' })
  const lost = await disk.open('lost', { mode: 'create' })
  await disk.syncDir('.')
  await kept.write([bytes(1, 2)], 0)
  await kept.sync()
  await kept.write([bytes(9)], 0)
  await lost.write([bytes(3)], 0)
  const nameless = await disk.open('nameless', { mode: 'create' })
  await nameless.write([bytes(4)], 0)
  await nameless.sync()
  sim.crash(POWER_CUT)
  const after = sim.mount()
  assert.deepEqual(await names(after, '.'), ['kept', 'lost'])
  assert.deepEqual(await content(after, 'kept'), bytes(1, 2))
  assert.deepEqual(await content(after, 'lost'), bytes())
})

test('a killed process loses nothing that it wrote; a power cut after that may', async () => {
  const sim = simDisk()
  const file = await sim.mount().open('a', { mode: 'create' })
  await file.write([bytes(1)], 0)
  sim.crash(KILL)
  assert.deepEqual(await content(sim.mount(), 'a'), bytes(1))
  sim.crash(POWER_CUT)
  await refused('not-found', sim.mount().open('a', { mode: 'read' }))
})

test('calls of a crashed process neither happen nor return', async () => {
  const sim = simDisk()
  const disk = sim.mount()
  const file = await disk.open('a', { mode: 'create' })
  await disk.syncDir('.')
  await disk.lock('lock')
  let returned = false
  const mark = (): void => {
    returned = true
  }
  sim.crash(KILL)
  void file.write([bytes(1)], 0).then(mark, mark)
  void disk.remove('a').then(mark, mark)
  await settle()
  assert.equal(returned, false)
  const again = sim.mount()
  assert.deepEqual(await content(again, 'a'), bytes())
  await (await again.lock('lock')).release()
})

test('a durable write survives; the pages of an ordinary one beside it may not', async () => {
  const sim = simDisk()
  const disk = sim.mount()
  const durable = await disk.open('a', { mode: 'create', durable: true })
  const ordinary = await disk.open('a', { mode: 'write' })
  await disk.syncDir('.')
  await durable.allocate(3 * 4096)
  await ordinary.write([new Uint8Array(4096).fill(7)], 0)
  await durable.write([bytes(5)], 4096)
  sim.crash(POWER_CUT)
  const kept = await content(sim.mount(), 'a')
  assert.equal(kept.length, 3 * 4096)
  assert.deepEqual([kept[0], kept[4096]], [0, 5])
})

test('a rename is lost or kept whole, and syncing the wrong directory does not help', async () => {
  const run = async (sync: string): Promise<string[][]> => {
    const sim = simDisk()
    const disk = sim.mount()
    await disk.makeDir('from')
    await disk.makeDir('to')
    await (await disk.open('from/a', { mode: 'create' })).close()
    await disk.syncDir('from')
    await disk.syncDir('.')
    await disk.rename('from/a', 'to/b')
    await disk.syncDir(sync)
    sim.crash(POWER_CUT)
    const after = sim.mount()
    return [await names(after, 'from'), await names(after, 'to')]
  }
  assert.deepEqual(await run('.'), [['a'], []])
  assert.deepEqual(await run('to'), [[], ['b']])
  assert.deepEqual(await run('from'), [[], ['b']])
})

test('a name made, moved away and synced there does not come back', async () => {
  const sim = simDisk()
  const disk = sim.mount()
  await disk.makeDir('to')
  await disk.syncDir('.')
  await (await disk.open('a', { mode: 'create' })).close()
  await disk.rename('a', 'to/a')
  await disk.syncDir('to')
  await disk.syncDir('.')
  sim.crash(POWER_CUT)
  assert.deepEqual(await names(sim.mount(), '.'), ['to'])
  assert.deepEqual(await names(sim.mount(), 'to'), ['a'])
})

test("after a cut that keeps some, each page is the old one or the new one, and synced ones don't change", async () => {
  const PAGE = 4096
  let torn = 0
  await fc.assert(
    fc.asyncProperty(fc.nat(), fc.integer({ min: 1, max: 8 }), async (seed, pages) => {
      const sim = simDisk({ seed })
      const disk = sim.mount()
      const file = await disk.open('a', { mode: 'create' })
      await file.write([new Uint8Array(pages * PAGE).fill(1)], 0)
      await file.sync()
      await disk.syncDir('.')
      // One write done but not synced, one under way.
      await file.write([new Uint8Array(pages * PAGE).fill(2)], 0)
      void file.write([new Uint8Array(2 * PAGE).fill(3)], (pages - 1) * PAGE)
      sim.crash(SOME)
      const after = await content(sim.mount(), 'a')
      assert.ok(after.length >= pages * PAGE && after.length <= (pages + 1) * PAGE)
      const seen = new Set<number>()
      for (let page = 0; page < after.length / PAGE; page++) {
        const values = new Set(after.subarray(page * PAGE, (page + 1) * PAGE))
        assert.equal(values.size, 1)
        const [value = -1] = values
        if (page < pages) seen.add(value)
        assert.ok(page < pages - 1 ? value === 1 || value === 2 : value <= 3)
      }
      if (seen.size > 1) torn++
    }),
  )
  assert.ok(torn > 0)
})

test('a crash can be planned for any operation, and one seed crashes alike', async () => {
  const run = async (at: number, seed: number): Promise<string> => {
    const sim = simDisk({ seed })
    const crashed = sim.crashAt(at, SOME)
    void (async () => {
      const disk = sim.mount()
      await disk.makeDir('d')
      const file = await disk.open('d/a', { mode: 'create' })
      await file.write([new Uint8Array(40_000).fill(1)], 0)
      await file.sync()
      await disk.syncDir('d')
      await disk.syncDir('.')
      await file.write([new Uint8Array(40_000).fill(2)], 20_000)
      await file.sync()
    })()
    await crashed
    const after = sim.mount()
    if (!(await names(after, '.')).includes('d')) return ''
    if (!(await names(after, 'd')).includes('a')) return 'd'
    return Buffer.from(await content(after, 'd/a')).toString('latin1')
  }
  for (let at = 1; at <= 8; at++) assert.equal(await run(at, at), await run(at, at))
  const endings = new Set<string>()
  for (let seed = 0; seed < 10; seed++) endings.add(await run(8, seed))
  assert.ok(endings.size > 1)
})

test('buffers that change under a write are caught', async () => {
  const file = await simDisk().mount().open('a', { mode: 'create' })
  const buffer = bytes(1, 2, 3)
  const writing = file.write([buffer], 0)
  buffer[0] = 9
  await assert.rejects(writing, /changed before it was done/)
})

test('a full disk refuses to grow, and takes again what removing gave back', async () => {
  const disk = simDisk({ totalBytes: 100 }).mount()
  const file = await disk.open('a', { mode: 'create' })
  await file.write([new Uint8Array(60)], 0)
  await refused('full', file.allocate(101))
  await refused('full', file.write([new Uint8Array(50)], 60))
  assert.equal(await file.size(), 60)
  await file.write([new Uint8Array(60)], 0)
  assert.deepEqual(await disk.space(), { totalBytes: 100, freeBytes: 40 })
  await disk.remove('a')
  const other = await disk.open('b', { mode: 'create' })
  await other.write([new Uint8Array(100)], 0)
})
