import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Operation } from '../../../src/sim/ports/disk-faults.ts'
import { KIND, openLog, payloadOf, recordsOf, recover, type World, world } from '../support/logs.ts'
import { settle } from '../support/ports.ts'

/** Writes of groups: marks are smaller than any of the payloads here. */
function groupWrites(w: World): Operation[] {
  return w.disk.trace.filter(({ kind, bytes = 0 }) => kind === 'write' && bytes > 100)
}

test('records that arrive while a group is written leave together in the next', async () => {
  const w = world()
  const log = await openLog(w)
  await settle()
  let release = (): void => {}
  const held = new Promise<void>((resolve) => {
    release = resolve
  })
  w.disk.before = ({ kind }) => (kind === 'write' ? held : undefined)
  w.disk.forgetTrace()
  log.append(KIND, payloadOf(1))
  log.commit()
  await settle()
  for (let i = 2; i <= 50; i++) {
    log.append(KIND, payloadOf(i))
    log.commit()
  }
  release()
  await log.sync()
  assert.equal(groupWrites(w).length, 2)
  await log.close()
})

test('no byte of a group is written before the sync of the one before it returned', async () => {
  const w = world()
  const log = await openLog(w)
  await settle()
  let running = 0
  w.disk.before = async ({ kind }) => {
    if (kind !== 'write') return
    running++
    assert.equal(running, 1)
    await settle()
    running--
  }
  for (let i = 1; i <= 20; i++) {
    log.append(KIND, payloadOf(i))
    log.commit()
    await Promise.resolve()
  }
  await log.sync()
  await log.close()
  assert.deepEqual(w.failures, [])
})

test('what was synced is found again, with its numbers', async () => {
  const w = world()
  const log = await openLog(w)
  for (let i = 1; i <= 400; i++) assert.equal(log.append(KIND, payloadOf(i)), i)
  await log.sync()
  await log.close()
  const found = await recover(w)
  assert.deepEqual(found.lost, [])
  assert.equal(found.endLsn, 401)
  const records = await recordsOf(found)
  for (let i = 1; i <= 400; i++) assert.deepEqual(records.get(i), payloadOf(i))
  assert.equal(found.identity?.bootCount, 1)
})

test('a mark follows when nothing is queued for a while, and the next group is written over it', async () => {
  const w = world()
  const log = await openLog(w)
  for (const i of [1, 2]) {
    w.clock.advance(15)
    log.append(KIND, payloadOf(i))
    await log.sync()
    await settle()
  }
  w.disk.forgetTrace()
  w.clock.advance(19)
  await settle()
  assert.equal(w.disk.trace.length, 0)
  w.clock.advance(1)
  await settle()
  const [mark, ...others] = w.disk.trace
  assert.equal(mark?.kind, 'write')
  assert.deepEqual(others, [])
  log.append(KIND, payloadOf(3))
  await log.sync()
  assert.equal(groupWrites(w).at(-1)?.position, mark?.position)
  await log.close()
})

test('no mark is written while groups follow one another', async () => {
  const w = world()
  const log = await openLog(w)
  await settle()
  w.disk.forgetTrace()
  for (let i = 1; i <= 20; i++) {
    log.append(KIND, payloadOf(i))
    await log.sync()
    w.clock.advance(15)
    await settle()
  }
  assert.equal(w.disk.trace.length, 20)
  await log.close()
})

test('behind a mark damage to the last group is known, after a power cut too', async () => {
  const w = world()
  const log = await openLog(w)
  await settle()
  w.disk.forgetTrace()
  log.append(KIND, payloadOf(1))
  await log.sync()
  await settle()
  const [group] = groupWrites(w)
  w.clock.advance(20)
  await settle()
  w.disk.crash({ keepUnsynced: false })
  w.disk.flipBit(group?.path ?? '', (group?.position ?? 0) + 60, 0)
  const found = await recover(w)
  assert.equal(found.lost.length, 1)
})

test('a failed write is final: nothing is acknowledged after it and nothing is tried again', async () => {
  const w = world()
  const log = await openLog(w)
  log.append(KIND, payloadOf(1))
  await log.sync()
  await settle()
  w.disk.fail({ operation: 'write', fault: 'io' })
  log.append(KIND, payloadOf(2))
  await assert.rejects(log.sync(), /the device reports an error/)
  w.disk.forgetTrace()
  log.append(KIND, payloadOf(3))
  await assert.rejects(log.sync(), /the device reports an error/)
  await settle()
  assert.deepEqual(w.disk.trace, [])
  assert.equal(w.failures.length, 1)
  await assert.rejects(log.close(), /the device reports an error/)
})

test('a mark that could not be written is final too', async () => {
  const w = world()
  const log = await openLog(w)
  log.append(KIND, payloadOf(1))
  await log.sync()
  await settle()
  w.disk.fail({ operation: 'write', fault: 'io' })
  w.clock.advance(1000)
  await settle()
  assert.equal(w.failures.length, 1)
})

test('a group waits for the mark that is being written, in whose place it goes', async () => {
  const w = world()
  const log = await openLog(w)
  log.append(KIND, payloadOf(1))
  await log.sync()
  await settle()
  let release = (): void => {}
  const slow = new Promise<void>((resolve) => {
    release = resolve
  })
  w.disk.before = ({ kind }) => (kind === 'write' ? slow : undefined)
  w.clock.advance(20)
  await settle()
  w.disk.forgetTrace()
  log.append(KIND, payloadOf(2))
  const synced = log.sync()
  await settle()
  assert.deepEqual(groupWrites(w), [])
  release()
  await synced
  assert.equal(groupWrites(w).length, 1)
  await log.close()
  assert.equal((await recover(w)).endLsn, 3)
})

test('a record larger than a file gets a file that holds it', async () => {
  const w = world()
  const log = await openLog(w)
  await settle()
  const large = new Uint8Array(200_000).fill(3)
  assert.ok(log.hasRoom(large.length))
  log.append(KIND, payloadOf(1))
  log.append(KIND, large)
  log.append(KIND, payloadOf(3))
  await log.sync()
  await log.close()
  const records = await recordsOf(await recover(w))
  assert.deepEqual(records.get(2), large)
  assert.deepEqual(records.get(3), payloadOf(3))
})
