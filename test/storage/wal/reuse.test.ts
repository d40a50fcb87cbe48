import assert from 'node:assert/strict'
import { test } from 'node:test'
import { fileName } from '../../../src/storage/wal/header.ts'
import type { RecordLog } from '../../../src/storage/wal/types.ts'
import { DIR, KIND, openLog, payloadOf, recordsOf, recover, world } from '../support/logs.ts'
import { settle } from '../support/ports.ts'
import { KILL } from '../support/until-crash.ts'

async function fill(log: RecordLog, files: number): Promise<void> {
  while (log.filesInUse < files) {
    log.append(KIND, payloadOf(log.nextLsn))
    await log.sync()
  }
}

test('a file is reused only after all in it was released', async () => {
  const w = world()
  const log = await openLog(w)
  const boundary = log.nextLsn
  await fill(log, 4)
  await settle()
  assert.equal(log.filesInUse, 4)
  assert.equal(w.disk.paths().length, 5)
  log.releaseBelow(boundary + 1)
  await settle()
  assert.equal(log.filesInUse, 4)
  log.releaseBelow(log.nextLsn)
  await settle()
  assert.equal(log.filesInUse, 1)
  await fill(log, 4)
  await settle()
  assert.equal(w.disk.paths().length, 5)
  await log.close()
})

test('space for the next file is taken a little at a time, each synced before the next', async () => {
  const w = world()
  const log = await openLog(w, 5 * 1024 * 1024)
  await settle()
  w.disk.forgetTrace()
  log.append(KIND, new Uint8Array(3 * 1024 * 1024))
  await log.sync()
  log.append(KIND, new Uint8Array(3 * 1024 * 1024))
  await log.sync()
  for (let i = 0; i < 100; i++) {
    w.clock.advance(10)
    await settle()
  }
  const made = w.disk.trace.filter(({ path }) => path.endsWith('new.tmp'))
  let [length, synced, most] = [0, 0, 0]
  for (const { kind, bytes = 0 } of made) {
    if (kind === 'allocate') length = bytes
    if (kind === 'sync') synced = length
    most = Math.max(most, length - synced)
  }
  assert.ok(most > 0 && most <= 1024 * 1024, `${most} bytes unsynced`)
  assert.equal(w.disk.paths().length, 3)
  await log.close()
})

test('an idle log tells its floor with a mark before it lets files go', async () => {
  const w = world()
  const log = await openLog(w)
  await fill(log, 3)
  await settle()
  w.disk.forgetTrace()
  log.releaseBelow(log.nextLsn)
  await settle()
  const rename = w.disk.trace.findIndex(({ kind }) => kind === 'rename')
  assert.ok(rename > 0)
  assert.ok(w.disk.trace.slice(0, rename).some(({ kind }) => kind === 'write'))
  w.disk.crash(KILL)
  const found = await recover(w)
  assert.deepEqual(found.lost, [])
  assert.equal(found.endLsn, log.nextLsn)
})

test('what an earlier use left in a file never comes back', async () => {
  const w = world()
  const log = await openLog(w)
  await fill(log, 3)
  log.releaseBelow(log.nextLsn)
  await settle()
  await fill(log, 3)
  const floor = log.nextLsn
  log.releaseBelow(floor)
  await settle()
  log.append(KIND, payloadOf(floor))
  await log.sync()
  w.disk.crash(KILL)
  const found = await recover(w)
  assert.deepEqual(found.lost, [])
  assert.equal(found.endLsn, floor + 1)
  for (const [lsn, payload] of await recordsOf(found)) assert.deepEqual(payload, payloadOf(lsn))
})

test('with no space for another file records keep their numbers and wait, and go on when a file is released', async () => {
  const w = world()
  const log = await openLog(w)
  await settle()
  w.disk.capacityBytes = 2 * 64 * 1024
  await fill(log, 2)
  await settle()
  while (log.hasRoom(1000)) {
    log.append(KIND, payloadOf(log.nextLsn))
    await log.sync()
  }
  const before = log.nextLsn
  for (let i = 0; i < 100; i++) log.append(KIND, payloadOf(log.nextLsn))
  const synced = log.sync()
  await settle()
  assert.deepEqual(w.failures, [])
  log.releaseBelow(before)
  await synced
  assert.ok(log.nextLsn === before + 100)
  await log.close()
  const records = await recordsOf(await recover(w))
  for (let lsn = before; lsn < before + 100; lsn++) assert.ok(records.has(lsn))
})

test('with no space, it is asked for again after a while', async () => {
  const w = world()
  const log = await openLog(w)
  await settle()
  w.disk.capacityBytes = 2 * 64 * 1024
  await fill(log, 2)
  for (let i = 0; i < 300; i++) log.append(KIND, payloadOf(log.nextLsn))
  const synced = log.sync()
  await settle()
  w.disk.capacityBytes = Number.POSITIVE_INFINITY
  w.clock.advance(5000)
  await synced
  await log.close()
})

test('a spare below the newest file gets a new name before it is used, so that no file seems to be missing', async () => {
  const w = world()
  const log = await openLog(w)
  await fill(log, 3)
  log.releaseBelow(log.nextLsn)
  await settle()
  await log.close()
  const disk = w.disk.mount()
  const spare = w.disk.paths().at(-1) as string
  await disk.rename(spare, `${DIR}/${fileName(1)}`)
  assert.ok((await recover(w)).spares.some(({ sequence }) => sequence === 1))
  const again = await openLog(w)
  again.append(KIND, payloadOf(again.nextLsn))
  await again.sync()
  await settle()
  await again.close()
  const found = await recover(w)
  assert.deepEqual(found.lost, [])
  assert.equal(found.endLsn, again.nextLsn)
})

test('larger files are wanted and the disk is full: the old ones do', async () => {
  const w = world()
  const small = await openLog(w)
  await fill(small, 3)
  await small.close()
  w.disk.crash(KILL)
  const files = w.disk.paths().length
  const bytesTaken = (): number =>
    w.disk.paths().reduce((sum, path) => sum + w.disk.bytesOf(path).length, 0)
  w.disk.capacityBytes = bytesTaken() + 1000
  const log = await openLog(w, 256 * 1024)
  await settle()
  assert.deepEqual(w.failures, [])
  await fill(log, files - 1)
  assert.ok(log.hasRoom(1000))
  w.disk.capacityBytes = Number.POSITIVE_INFINITY
  log.releaseBelow(log.nextLsn)
  await settle()
  assert.ok(bytesTaken() > 256 * 1024, 'with room again they grow')
  await log.close()
})
