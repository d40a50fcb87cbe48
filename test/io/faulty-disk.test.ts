import assert from 'node:assert/strict'
import { test } from 'node:test'
import { faultyDisk } from '../../src/io/faults/faulty-disk.ts'
import { SimClock } from '../../src/sim/ports/clock.ts'
import { simDisk } from '../../src/sim/ports/disk.ts'
import { diskSuite, refused } from '../ports/disk.suite.ts'
import { settle } from '../ports/support.ts'

diskSuite('faultless faulty', (body) => body(faultyDisk(simDisk().mount(), new SimClock()).disk))

test('a planned failure hits the operations it names, as often as it says', async () => {
  const { disk, faults } = faultyDisk(simDisk().mount(), new SimClock())
  const [a, b] = [
    await disk.open('a', { mode: 'create' }),
    await disk.open('b', { mode: 'create' }),
  ]
  faults.failNext('sync', 'io', 2, 'a')
  await b.sync()
  await refused('io', a.sync())
  await refused('io', a.sync())
  await a.sync()
})

test('a planned failure of a sync meets a durable write, whose bytes have gone out all the same', async () => {
  const { disk, faults } = faultyDisk(simDisk().mount(), new SimClock())
  const plain = await disk.open('a', { mode: 'create' })
  const durable = await disk.open('a', { mode: 'write', durable: true })
  faults.failNext('sync', 'io', 1, 'a')
  await plain.write([Uint8Array.of(1)], 0)
  await refused('io', durable.write([Uint8Array.of(2)], 1))
  assert.equal(await plain.size(), 2)
  await durable.write([Uint8Array.of(3)], 2)
})

test('a full disk takes nothing new and is read as before, until it is not full', async () => {
  const { disk, faults } = faultyDisk(simDisk().mount(), new SimClock())
  const file = await disk.open('a', { mode: 'create' })
  await file.write([Uint8Array.of(1)], 0)
  faults.setFull(true)
  await refused('full', file.write([Uint8Array.of(2)], 1))
  await refused('full', file.allocate(2))
  await refused('full', disk.makeDir('d'))
  // What a file has already it may write over.
  await file.write([Uint8Array.of(3)], 0)
  assert.equal((await disk.space()).freeBytes, 0)
  assert.equal(await file.read(new Uint8Array(9), 0), 1)
  faults.setFull(false)
  await file.write([Uint8Array.of(2)], 1)
})

test('a slow disk takes as long as it was told', async () => {
  const clock = new SimClock()
  const { disk, faults } = faultyDisk(simDisk().mount(), clock)
  faults.slowDown(100)
  let done = false
  const making = disk.makeDir('d').then(() => {
    done = true
  })
  await clock.advance(99, settle)
  assert.equal(done, false)
  await clock.advance(1, settle)
  await making
})

test('only syncs are slow when only syncs are to be, and a durable write is one', async () => {
  const clock = new SimClock()
  const { disk, faults } = faultyDisk(simDisk().mount(), clock)
  const plain = await disk.open('a', { mode: 'create' })
  const durable = await disk.open('a', { mode: 'write', durable: true })
  faults.slowSyncs(100)
  await plain.write([Uint8Array.of(1)], 0)
  let done = 0
  const count = (): void => {
    done++
  }
  const syncs = [
    plain.sync().then(count),
    durable.write([Uint8Array.of(1)], 1).then(count),
    disk.syncDir('.').then(count),
  ]
  await clock.advance(99, settle)
  assert.equal(done, 0)
  await clock.advance(1, settle)
  await Promise.all(syncs)
})

test('a read-only disk is read and nothing else', async () => {
  const { disk, faults } = faultyDisk(simDisk().mount(), new SimClock())
  const file = await disk.open('a', { mode: 'create' })
  await file.write([Uint8Array.of(1)], 0)
  faults.setReadOnly(true)
  await refused('read-only', file.write([Uint8Array.of(2)], 0))
  await refused('read-only', file.truncate(0))
  await refused('read-only', disk.open('b', { mode: 'create' }))
  await refused('read-only', disk.rename('a', 'b'))
  await refused('read-only', disk.remove('a'))
  await refused('read-only', disk.lock('lock'))
  assert.equal(await (await disk.open('a', { mode: 'read' })).read(new Uint8Array(9), 0), 1)
})
