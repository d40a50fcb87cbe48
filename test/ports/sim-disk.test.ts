// What the simulated disk may lose, and may not: it judges all of storage, so it is judged first.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import type { Disk } from '../../src/ports/disk.ts'
import { SimClock } from '../../src/sim/ports/clock.ts'
import { type Crash, type SimDisk, simDisk } from '../../src/sim/ports/disk.ts'
import { bytes, filled, readAll, refused } from './disk.suite.ts'
import { driven, settle } from './support.ts'

const PAGE = 4096
const SECTOR = 512
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

/** The disks of so many seeds, each after the same life and a power cut that kept some of it. */
async function outcomes(seeds: number, live: (sim: SimDisk) => Promise<void>): Promise<SimDisk[]> {
  const after: SimDisk[] = []
  for (let seed = 1; seed <= seeds; seed++) {
    const sim = simDisk({ seed })
    await live(sim)
    sim.crash(SOME)
    after.push(sim)
  }
  return after
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

test('what a killed process left unsynced is durable when the next one syncs it', async () => {
  const sim = simDisk()
  await (await sim.mount().open('a', { mode: 'create' })).write([bytes(1)], 0)
  sim.crash(KILL)
  const disk = sim.mount()
  await (await disk.open('a', { mode: 'write' })).sync()
  await disk.syncDir('.')
  sim.crash(POWER_CUT)
  assert.deepEqual(sim.bytesOf('a'), bytes(1))
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
  sim.crash(SOME)
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
  await durable.allocate(3 * PAGE)
  await ordinary.write([filled(PAGE, 7)], 0)
  await durable.write([bytes(5)], PAGE)
  sim.crash(POWER_CUT)
  const kept = await content(sim.mount(), 'a')
  assert.equal(kept.length, 3 * PAGE)
  assert.deepEqual([kept[0], kept[PAGE]], [0, 5])
})

test('a durable write takes no unsynced byte along that shares its page, nor the length', async () => {
  const sim = simDisk()
  const disk = sim.mount()
  const ordinary = await disk.open('a', { mode: 'create' })
  const durable = await disk.open('a', { mode: 'write', durable: true })
  await disk.syncDir('.')
  await ordinary.write([filled(200, 7)], 0)
  await durable.write([filled(10, 5)], 100)
  assert.deepEqual(sim.bytesOf('a').subarray(98, 112), bytes(7, 7, ...filled(10, 5), 7, 7))
  sim.crash(POWER_CUT)
  assert.deepEqual(sim.bytesOf('a'), bytes(...filled(100, 0), ...filled(10, 5)))
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

test('unsynced names survive each by itself, and those of one file in their order', async () => {
  const after = await outcomes(300, async (sim) => {
    const disk = sim.mount()
    for (const path of ['old', 'gone']) await (await disk.open(path, { mode: 'create' })).close()
    await disk.syncDir('.')
    await disk.rename('old', 'moved')
    await disk.rename('moved', 'again')
    await disk.remove('gone')
    await (await disk.open('made', { mode: 'create' })).close()
  })
  const seen = new Set(after.map((sim) => sim.paths().join(' ')))
  const expected: string[] = []
  for (const gone of ['gone', '']) {
    for (const made of ['made', '']) {
      for (const moved of ['old', 'moved', 'again']) {
        expected.push(
          [gone, made, moved]
            .filter((name) => name !== '')
            .sort()
            .join(' '),
        )
      }
    }
  }
  assert.deepEqual([...seen].sort(), expected.sort())
})

test('a directory is removed name by name, and is never gone before what is in it', async () => {
  const seen = new Set<string>()
  for (const sim of await outcomes(200, async (disk) => {
    const mounted = disk.mount()
    await mounted.makeDir('d')
    for (const path of ['d/a', 'd/b']) await (await mounted.open(path, { mode: 'create' })).close()
    await mounted.syncDir('d')
    await mounted.syncDir('.')
    await mounted.remove('d')
  })) {
    const top = await names(sim.mount(), '.')
    seen.add([...top, ...sim.paths()].join(' '))
  }
  assert.deepEqual([...seen].sort(), ['', 'd', 'd d/a', 'd d/a d/b', 'd d/b'])
})

test("after a cut that keeps some, each sector is the old one or a new one, and synced ones don't change", async () => {
  const mixed = { pages: 0, sectors: 0 }
  await fc.assert(
    fc.asyncProperty(fc.nat(), fc.integer({ min: 1, max: 8 }), async (seed, pages) => {
      const sim = simDisk({ seed })
      const disk = sim.mount()
      const file = await disk.open('a', { mode: 'create' })
      await file.write([filled(pages * PAGE, 1)], 0)
      await file.sync()
      await disk.syncDir('.')
      // One write done but not synced, one under way.
      await file.write([filled(pages * PAGE, 2)], 0)
      void file.write([filled(2 * PAGE, 3)], (pages - 1) * PAGE)
      sim.crash(SOME)
      const after = sim.bytesOf('a')
      assert.ok(after.length >= pages * PAGE && after.length <= (pages + 1) * PAGE)
      const seen = new Set<string>()
      for (let page = 0; page < pages; page++) {
        const sectors = new Set<number>()
        for (let at = page * PAGE; at < (page + 1) * PAGE; at += SECTOR) {
          const values = new Set(after.subarray(at, at + SECTOR))
          assert.equal(values.size, 1)
          const [value = 0] = values
          assert.ok(value >= 1 && value <= (page < pages - 1 ? 2 : 3))
          sectors.add(value)
        }
        if (sectors.size > 1) mixed.sectors++
        seen.add([...sectors].join())
      }
      if (seen.size > 1) mixed.pages++
    }),
    { numRuns: 200 },
  )
  assert.ok(mixed.pages > 0 && mixed.sectors > 0)
})

test('a page written twice may come back as it was in between, and so may the length', async () => {
  const after = await outcomes(200, async (sim) => {
    const disk = sim.mount()
    const file = await disk.open('a', { mode: 'create' })
    await disk.syncDir('.')
    await file.write([filled(1, 1)], 0)
    await file.write([filled(3 * PAGE, 2)], 0)
  })
  const seen = new Set(after.map((sim) => `${sim.bytesOf('a')[0]} of ${sim.bytesOf('a').length}`))
  const lengths = new Set(after.map((sim) => sim.bytesOf('a').length))
  assert.deepEqual(lengths, new Set([0, 1, PAGE, 2 * PAGE, 3 * PAGE]))
  assert.ok(seen.has('1 of 1') && seen.has(`1 of ${3 * PAGE}`) && seen.has(`2 of ${3 * PAGE}`))
})

test('a sync promises what was written before it began, and nothing that came later', async () => {
  const clock = new SimClock()
  let delayMs = 0
  const sim = simDisk({ later: (run) => void clock.after(delayMs, run) })
  await driven(clock, async () => {
    const disk = sim.mount()
    const file = await disk.open('a', { mode: 'create' })
    await disk.syncDir('.')
    await file.write([bytes(1, 1)], 0)
    delayMs = 10
    const synced = file.sync()
    delayMs = 0
    await file.write([bytes(2)], 1)
    await file.write([bytes(3)], PAGE)
    await synced
  })
  sim.crash(POWER_CUT)
  assert.deepEqual(sim.bytesOf('a'), bytes(1, 1))
})

test('a crash can be planned for any operation, and one seed crashes alike', async () => {
  const run = async (at: number, seed: number): Promise<string> => {
    const sim = simDisk({ seed })
    const crashed = sim.crashAt(at, SOME)
    void (async () => {
      const disk = sim.mount()
      await disk.makeDir('d')
      const file = await disk.open('d/a', { mode: 'create' })
      await file.write([filled(40_000, 1)], 0)
      await file.sync()
      await disk.syncDir('d')
      await disk.syncDir('.')
      await file.write([filled(40_000, 2)], 20_000)
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

test('an operation that was under way at a kill was done, was not done, or was done in part', async () => {
  const seen = new Map<string, Set<string>>()
  for (let seed = 1; seed <= 100; seed++) {
    const fate = async (what: string, run: (disk: Disk) => void): Promise<void> => {
      const sim = simDisk({ seed })
      const disk = sim.mount()
      await disk.makeDir('d')
      const file = await disk.open('d/a', { mode: 'create' })
      await file.write([filled(2 * PAGE, 1)], 0)
      run(disk)
      sim.crash(KILL)
      const found = [...(await names(sim.mount(), '.')), ...sim.paths()].join(' ')
      seen.set(what, (seen.get(what) ?? new Set()).add(found))
    }
    await fate('rename', (disk) => void disk.rename('d/a', 'b'))
    await fate('remove', (disk) => void disk.remove('d'))
    await fate('open', (disk) => void disk.open('b', { mode: 'create-new' }))
    await fate('makeDir', (disk) => void disk.makeDir('x/y'))
  }
  assert.deepEqual([...(seen.get('rename') ?? [])].sort(), ['b d b', 'd d/a'])
  assert.deepEqual([...(seen.get('remove') ?? [])].sort(), ['', 'd', 'd d/a'])
  assert.deepEqual([...(seen.get('open') ?? [])].sort(), ['b d b d/a', 'd d/a'])
  assert.deepEqual([...(seen.get('makeDir') ?? [])].sort(), ['d d/a', 'd x d/a'])
})

test('a flipped bit stays flipped through sync and crash', async () => {
  const sim = simDisk()
  const disk = sim.mount()
  const file = await disk.open('a', { mode: 'create' })
  await disk.syncDir('.')
  await file.write([filled(2 * PAGE, 0)], 0)
  await file.sync()
  await file.write([bytes(9)], PAGE + 10)
  sim.flipBit('a', PAGE + 5, 3)
  assert.equal(sim.bytesOf('a')[PAGE + 5], 8)
  sim.crash(POWER_CUT)
  const after = sim.bytesOf('a')
  assert.deepEqual([after[PAGE + 5], after[PAGE + 10]], [8, 0])
  assert.throws(() => sim.flipBit('a', 2 * PAGE, 0), /beyond the end/)
})

test('a snapshot is a disk of its own, and can be gone back to', async () => {
  const sim = simDisk()
  const disk = sim.mount()
  const file = await disk.open('a', { mode: 'create' })
  await disk.syncDir('.')
  await file.write([bytes(1)], 0)
  await file.sync()
  await file.write([bytes(2)], 0)
  const image = sim.snapshot()
  const clone = simDisk({ image })
  await file.write([bytes(3)], 0)
  await disk.rename('a', 'b')
  assert.deepEqual(clone.bytesOf('a'), bytes(2))
  clone.crash(POWER_CUT)
  assert.deepEqual(clone.bytesOf('a'), bytes(1))
  assert.deepEqual([sim.paths(), sim.bytesOf('b')], [['b'], bytes(3)])
  sim.restore(image)
  assert.deepEqual([sim.paths(), sim.bytesOf('a')], [['a'], bytes(2)])
  sim.crash(POWER_CUT)
  assert.deepEqual(sim.bytesOf('a'), bytes(1))
})
