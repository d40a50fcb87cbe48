// Seals that cannot be written at once.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Seals } from '../../../src/broker/replica/seals.ts'
import { type SimDisk, simDisk } from '../../../src/sim/ports/disk.ts'
import type { StoredSegment } from '../../../src/storage/segment/types.ts'
import { KEY, LISTENER, Model, type Rig, rig, until } from '../../storage/segment/rig.ts'
import { keptLog, settle } from '../../storage/support/ports.ts'

interface Stage {
  readonly disk: SimDisk
  readonly r: Rig
  readonly segment: StoredSegment
  readonly seals: Seals
  /** How often one was told to be done. */
  sealed: number
}

/** A fenced segment of 25 entries, which are in its file only. */
async function stage(): Promise<Stage> {
  const disk = simDisk()
  const r = rig(disk.mount(), { blockBytes: 1500, cacheBytes: 0, unflushedBytesMax: 0 })
  const segment = r.engine.create(KEY, LISTENER)
  const model = new Model()
  for (let i = 0; i < 25; i++) segment.append(model.make(0, 300))
  r.wal.sync()
  await segment.fence()
  await r.engine.flush()
  const seals = new Seals(r.clock, keptLog())
  const made: Stage = { disk, r, segment, seals, sealed: 0 }
  seals.onSealed = () => void made.sealed++
  return made
}

test('a seal that found no room is tried again until there is some', async () => {
  const s = await stage()
  const roomAgain = s.disk.fail({ operation: 'write', fault: 'full', times: 1e9 })
  s.seals.seal(KEY, s.segment, 5)
  for (let i = 0; i < 10; i++) {
    await settle()
    s.r.clock.advance(10_000)
  }
  await settle()
  assert.deepEqual([s.segment.sealed, s.sealed, s.seals.has(KEY)], [false, 0, true])
  assert.ok(s.disk.failures > 3 && s.disk.failures <= 10, `${s.disk.failures} tries`)
  roomAgain()
  s.r.clock.advance(30_000)
  await until(() => s.sealed === 1)
  assert.deepEqual([s.segment.end, s.segment.sealed, s.seals.has(KEY)], [5, true, false])
  assert.deepEqual(s.r.failures, [])
  await s.r.engine.close()
})

test('none is tried again of a broker that stops, whether it failed before or fails then', async () => {
  for (const before of [true, false]) {
    const s = await stage()
    s.disk.fail({ operation: 'write', fault: 'full', times: 1e9 })
    s.seals.seal(KEY, s.segment, 5)
    if (before) await until(() => s.disk.failures === 1)
    await settle()
    await s.seals.stop()
    const { operations } = s.disk
    s.r.clock.advance(100_000)
    await settle()
    assert.equal(s.disk.operations, operations)
    assert.deepEqual([s.seals.has(KEY), s.sealed], [false, 0])
    await s.r.engine.close()
  }
})

test('of a segment that turns out to be damaged the seal is given up, and told', async () => {
  const s = await stage()
  s.disk.flipBit(s.disk.paths().find((path) => path.endsWith('.log')) ?? '', 7000, 3)
  s.seals.seal(KEY, s.segment, 5)
  await until(() => s.sealed === 1)
  assert.ok(s.segment.damage !== undefined)
  assert.equal(s.seals.has(KEY), false)
  await s.r.engine.close()
})
