// What the simulated disk does to a process that lives: it fails, fills up, is slow, and lies about syncs.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { SimClock } from '../../src/sim/ports/clock.ts'
import { type Crash, simDisk } from '../../src/sim/ports/disk.ts'
import { bytes, filled, refused } from './disk.suite.ts'
import { driven } from './support.ts'

const PAGE = 4096
const POWER_CUT: Crash = { keepUnsynced: false }

test('after a sync that failed the pages count for clean: they can be read, later syncs lie, a power cut tells', async () => {
  const fates = new Set<string>()
  for (let seed = 1; seed <= 60; seed++) {
    const sim = simDisk({ seed })
    const disk = sim.mount()
    const file = await disk.open('a', { mode: 'create' })
    await disk.syncDir('.')
    await file.write([filled(2 * PAGE, 1)], 0)
    await file.sync()
    await file.write([filled(2 * PAGE, 2)], 0)
    sim.fail({ operation: 'sync', fault: 'io' })
    await refused('io', file.sync())
    const read = sim.bytesOf('a')
    await file.sync()
    sim.crash(POWER_CUT)
    const left = sim.bytesOf('a')
    fates.add([read[0], read[PAGE], left[0], left[PAGE]].join(''))
  }
  // Kept in memory and lost; and dropped from memory at once; and among them pages that stayed dirty.
  for (const fate of ['2211', '1111', '2221']) assert.ok(fates.has(fate), fate)
  for (const fate of fates) assert.match(fate, /^(2222|2221|2212|2211|1111|2121|1212)$/)
})

test('a page that a failed sync forgot is durable again once it is written and synced', async () => {
  const sim = simDisk({ seed: 2 })
  const disk = sim.mount()
  const file = await disk.open('a', { mode: 'create' })
  await disk.syncDir('.')
  await file.write([filled(PAGE, 1)], 0)
  sim.fail({ operation: 'sync', fault: 'io' })
  await refused('io', file.sync())
  await file.write([filled(2 * PAGE, 2)], 0)
  await file.sync()
  sim.crash(POWER_CUT)
  assert.deepEqual(sim.bytesOf('a'), filled(2 * PAGE, 2))
})

test('buffers that change under a write are caught', async () => {
  const file = await simDisk().mount().open('a', { mode: 'create' })
  const buffer = bytes(1, 2, 3)
  const writing = file.write([buffer], 0)
  buffer[0] = 9
  await assert.rejects(writing, /changed before it was done/)
})

test('a full disk refuses to grow, and takes again what removing or more room gave back', async () => {
  const sim = simDisk({ capacityBytes: 100 })
  const disk = sim.mount()
  const file = await disk.open('a', { mode: 'create' })
  await file.write([new Uint8Array(60)], 0)
  await refused('full', file.allocate(101))
  assert.equal(await file.size(), 60)
  await refused('full', file.write([new Uint8Array(50)], 60))
  // A short write came before the error.
  assert.ok((await file.size()) <= 100)
  await file.truncate(60)
  await file.write([new Uint8Array(60)], 0)
  assert.deepEqual(await disk.space(), { totalBytes: 100, freeBytes: 40 })
  await disk.remove('a')
  const other = await disk.open('b', { mode: 'create' })
  await other.write([new Uint8Array(100)], 0)
  await refused('full', other.write([bytes(1)], 100))
  sim.capacityBytes = 200
  await other.allocate(200)
})

test('a planned fault strikes the operations it names, as often as it says, and can be taken back', async () => {
  const sim = simDisk()
  const disk = sim.mount()
  const [a, b] = [
    await disk.open('a', { mode: 'create' }),
    await disk.open('b', { mode: 'create' }),
  ]
  sim.fail({ operation: 'write', path: 'a', fault: 'read-only', spared: 1, times: 2 })
  await b.write([bytes(1)], 0)
  await a.write([bytes(1)], 0)
  await refused('read-only', a.write([bytes(2)], 0))
  await refused('read-only', a.write([bytes(2)], 0))
  await a.write([bytes(3)], 0)
  for (const operation of ['open', 'rename', 'read', 'syncDir'] as const) {
    const heal = sim.fail({ operation, fault: 'io', times: 2 })
    const attempt = (): Promise<unknown> => {
      if (operation === 'open') return disk.open('a', { mode: 'read' })
      if (operation === 'rename') return disk.rename('b', 'c')
      return operation === 'read' ? a.read(new Uint8Array(1), 0) : disk.syncDir('.')
    }
    await refused('io', attempt())
    heal()
    if (operation !== 'rename') await attempt()
  }
})

test('a write that fails leaves a prefix of it, whichever; of a durable one nothing is durable', async () => {
  for (const durable of [false, true]) {
    const lengths = new Set<number>()
    for (let seed = 1; seed <= 40; seed++) {
      const sim = simDisk({ seed })
      const disk = sim.mount()
      const file = await disk.open('a', { mode: 'create', durable })
      await disk.syncDir('.')
      sim.fail({ operation: 'write', fault: 'io' })
      await refused('io', file.write([filled(9000, 1)], 0))
      const { length } = sim.bytesOf('a')
      assert.deepEqual(new Set(sim.bytesOf('a')).size, length === 0 ? 0 : 1)
      lengths.add(length)
      await file.write([bytes(2)], 0)
      sim.crash(POWER_CUT)
      assert.ok(sim.bytesOf('a').length <= (durable ? length : 0))
    }
    assert.ok(lengths.size > 20)
  }
})

test('faults by rates follow the seed, and end when the rates do', async () => {
  const run = async (seed: number): Promise<string> => {
    const sim = simDisk({ seed, faults: { write: 0.2, read: 0.1 } })
    const disk = sim.mount()
    const file = await disk.open('a', { mode: 'create' })
    let story = ''
    for (let i = 0; i < 200; i++) {
      const work = i % 2 === 0 ? file.write([bytes(i)], 0) : file.read(new Uint8Array(1), 0)
      story += await work.then(
        () => '.',
        () => (i % 2 === 0 ? 'w' : 'r'),
      )
    }
    sim.faults = {}
    for (let i = 0; i < 50; i++) await file.write([bytes(i)], 0)
    return story
  }
  const first = await run(1)
  assert.equal(await run(1), first)
  assert.notEqual(await run(2), first)
  const failed = (kind: string): number => first.split(kind).length - 1
  assert.ok(failed('w') > 8 && failed('w') < 35 && failed('r') > 2 && failed('r') < 25, first)
})

test('slow operations take their time and are overtaken', async () => {
  const clock = new SimClock()
  const sim = simDisk({
    faults: { slow: 0.5, slowMs: 1000 },
    later: (run, slowMs) => void clock.after(slowMs, run),
  })
  await driven(clock, async () => {
    const file = await sim.mount().open('a', { mode: 'create' })
    const order: number[] = []
    const write = async (i: number): Promise<void> => {
      await file.write([bytes(i)], i)
      order.push(i)
    }
    await Promise.all(Array.from({ length: 20 }, (_, i) => write(i)))
    assert.notDeepEqual(
      order,
      [...order].sort((a, b) => a - b),
    )
  })
  assert.ok(clock.monotonic() > 100)
})

test('each operation can be waited for, made to fail, and found in the trace', async () => {
  const sim = simDisk({ trace: true })
  const disk = sim.mount()
  const file = await disk.open('a', { mode: 'create' })
  let release = (): void => undefined
  sim.before = ({ kind }) =>
    kind === 'write' ? new Promise<void>((resolve) => (release = resolve)) : undefined
  let written = false
  const writing = file.write([bytes(1, 2)], 7).then(() => {
    written = true
  })
  await file.sync()
  assert.equal(written, false)
  release()
  await writing
  sim.before = ({ path }) => {
    if (path === 'a') throw new Error('not this one')
  }
  await assert.rejects(disk.rename('a', 'b'), /not this one/)
  sim.before = undefined
  assert.deepEqual(sim.trace, [
    { number: 1, kind: 'open', path: 'a' },
    { number: 2, kind: 'write', path: 'a', position: 7, bytes: 2 },
    { number: 3, kind: 'sync', path: 'a' },
    { number: 4, kind: 'rename', path: 'a', to: 'b' },
  ])
  sim.forgetTrace()
  assert.deepEqual(sim.trace, [])
})
