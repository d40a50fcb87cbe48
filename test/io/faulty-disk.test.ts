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

test('a full disk takes nothing and is read as before, until it is not full', async () => {
  const { disk, faults } = faultyDisk(simDisk().mount(), new SimClock())
  const file = await disk.open('a', { mode: 'create' })
  await file.write([Uint8Array.of(1)], 0)
  faults.setFull(true)
  await refused('full', file.write([Uint8Array.of(2)], 1))
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
