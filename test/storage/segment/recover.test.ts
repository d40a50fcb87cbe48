// Segment files after a crash, a truncation or a flipped bit: what is served is right, or it is an error [I8].

import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { EastGuardError } from '../../../src/base/errors.ts'
import { prng } from '../../../src/base/prng.ts'
import type { Entry } from '../../../src/model/entry.ts'
import type { Disk } from '../../../src/ports/disk.ts'
import { simDisk } from '../../../src/sim/ports/disk.ts'
import { inspectSegment } from '../../../src/storage/segment/inspect.ts'
import type { StoredSegment } from '../../../src/storage/segment/types.ts'
import { CUT, KILL, settleWhileAlive, untilCrash } from '../support/until-crash.ts'
import { appendAll, BASE, KEY, LISTENER, Model, plain, type Rig, rig, scanAll } from './rig.ts'

const LOG = `${BASE}.log`

/** What the log store does at start: opens the segment, replays what the WAL still has, settles. */
async function recover(r: Rig, wal: readonly Entry[]): Promise<StoredSegment> {
  const segment = await r.engine.open(KEY, { topicName: 't', walFirst: wal[0]?.entryNumber })
  for (const entry of wal) segment.recover(entry)
  await segment.settle()
  return segment
}

function inWal(r: Rig): readonly Entry[] {
  return r.wal.records.filter(({ lsn }) => lsn >= r.wal.released).map(({ entry }) => entry)
}

test('crashed at any operation, by kill or power cut, and again while recovering: every synced entry is there', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.integer({ min: 1, max: 60 }),
      fc.integer({ min: 1, max: 12 }),
      fc.boolean(),
      fc.integer(),
      async (crashAt, crashAgain, power, seed) => {
        const sim = simDisk({ seed })
        const crash = power ? CUT : KILL
        const chance = prng(seed)
        const r = rig(sim.mount(), { blockBytes: 1000 })
        const model = new Model()
        await untilCrash(sim, crashAt, crash, async () => {
          const settle = settleWhileAlive(sim)
          const segment = r.engine.create(KEY, LISTENER)
          for (let round = 0; round < 8; round++) {
            const some = Array.from({ length: 1 + chance.below(8) }, () =>
              model.make(chance.below(3), 61 + chance.below(500)),
            )
            appendAll(r, segment, some)
            if (chance.below(2) === 0) await r.engine.flush()
            else await settle()
          }
        })
        const wal = inWal(r)
        await untilCrash(sim, sim.operations + crashAgain, crash, () =>
          recover(rig(sim.mount()), wal),
        )
        const disk = sim.mount()
        const again = await recover(rig(disk), wal)
        assert.equal(again.damage, undefined)
        assert.deepEqual(plain(await scanAll(again)), plain(model.entries))
        again.advance(again.end)
        for (let p = 0; p < 3; p++) {
          assert.deepEqual(
            plain(await again.read(p, 0, 1 << 20)),
            plain(model.read(p, 0, 1 << 20, again.end)),
          )
        }
        const seen = await inspectSegment(disk, LOG, { digest: true })
        assert.equal(seen.fault, undefined)
      },
    ),
    { numRuns: 300 },
  )
})

async function written(disk: Disk, blocks: number): Promise<Model> {
  const r = rig(disk)
  const model = new Model()
  const segment = r.engine.create(KEY, LISTENER)
  for (let b = 0; b < blocks; b++) {
    appendAll(
      r,
      segment,
      Array.from({ length: 6 }, (_, i) => model.make(i % 2, 100 + 10 * i)),
    )
    await r.engine.flush()
  }
  await r.engine.close()
  return model
}

async function cutTo(disk: Disk, path: string, length: number): Promise<void> {
  const file = await disk.open(path, { mode: 'write' })
  await file.truncate(length)
}

test('the last block, not yet synced, may end at any byte: the WAL fills it up again', async () => {
  const sim = simDisk()
  const disk = sim.mount()
  const model = await written(disk, 2)
  const whole = sim.bytesOf(LOG).slice()
  const before = await inspectSegment(disk, LOG, { digest: true })
  assert.ok('blocks' in before)
  const last = before.blocks[1]
  assert.ok(last !== undefined)
  for (let length = last.position; length < whole.length; length++) {
    const file = await disk.open(LOG, { mode: 'write' })
    await file.write([whole], 0)
    await cutTo(disk, LOG, length)
    const r = rig(disk)
    const segment = await recover(r, model.entries.slice(last.firstEntry))
    assert.equal(segment.damage, undefined)
    assert.deepEqual(Buffer.from(sim.bytesOf(LOG)), Buffer.from(whole))
    await r.engine.close()
  }
})

test('a recovery whose sync fails is over, be it of the index: it may tell of blocks that others have replaced', async () => {
  for (const extension of ['log', 'index']) {
    const sim = simDisk()
    const model = await written(sim.mount(), 2)
    sim.fail({ operation: 'sync', path: `${BASE}.${extension}`, fault: 'io' })
    const r = rig(sim.mount())
    await assert.rejects(recover(r, model.entries.slice(6)), { code: 'DISK_FAILED' }, extension)
  }
})

test('a synced block that is cut short is damage, and is said to be', async () => {
  const sim = simDisk()
  const disk = sim.mount()
  const model = await written(disk, 2)
  await cutTo(disk, LOG, sim.bytesOf(LOG).length - 1)
  const segment = await recover(rig(disk), [])
  assert.match(String(segment.damage), /damaged at byte/)
  assert.equal(segment.readCached(0, 0, 1), undefined)
  await assert.rejects(segment.read(0, 0, 1), { code: 'DAMAGED' })
  assert.equal(segment.end, model.entries.length / 2)
})

test('a gap between file and WAL is damage', async () => {
  const sim = simDisk()
  const disk = sim.mount()
  const model = await written(disk, 1)
  const later = { ...model.make(0, 100), entryNumber: 9 }
  assert.match(String((await recover(rig(disk), [later])).damage), /lost/)
})

test('a bit flipped anywhere: the right entries or an error, never wrong ones', async () => {
  const sim = simDisk()
  const disk = sim.mount()
  const model = await written(disk, 2)
  const size = sim.bytesOf(LOG).length
  for (let byte = 0; byte < size; byte += byte > 64 && byte < 4090 ? 61 : 1) {
    const bit = byte % 8
    sim.flipBit(LOG, byte, bit)
    const r = rig(disk)
    const segment = await r.engine.open(KEY, { topicName: 't', walFirst: undefined })
    segment.advance(segment.end)
    let refused = segment.damage !== undefined
    for (let p = 0; p < 2; p++) {
      try {
        const got = await segment.read(p, 0, 1 << 20)
        assert.deepEqual(plain(got), plain(model.read(p, 0, 1 << 20, segment.end)))
      } catch (error) {
        if (!(error instanceof EastGuardError)) throw error
        assert.equal(error.code, 'DAMAGED')
        refused = true
      }
    }
    const seen = await inspectSegment(disk, LOG, { digest: false })
    assert.ok(seen.fault !== undefined, `nothing noticed at byte ${byte}`)
    // What the header page says the blocks say as well.
    assert.ok(refused || segment.end === model.entries.length, `byte ${byte}`)
    await r.engine.close()
    sim.flipBit(LOG, byte, bit)
  }
})

test('a bad entry marks the segment, and the message says where', async () => {
  const sim = simDisk()
  const disk = sim.mount()
  await written(disk, 1)
  const bytes = sim.bytesOf(LOG)
  sim.flipBit(LOG, bytes.length - 1, 3)
  const r = rig(disk)
  const segment = await r.engine.open(KEY, { topicName: 't', walFirst: undefined })
  segment.advance(segment.end)
  await assert.rejects(
    segment.read(1, 0, 1 << 20),
    /00000000000000000001\.log is damaged at byte \d+/,
  )
  assert.ok(segment.damage !== undefined)
  await assert.rejects(segment.read(0, 0, 1), { code: 'DAMAGED' })
})

test('a segment is cut at every entry, crashed at every operation of it, and ends exactly there', async () => {
  const first = simDisk()
  const model = await written(first.mount(), 2)
  const image = first.snapshot()
  for (let end = 0; end <= 12; end++) {
    for (let crash = 1; ; crash++) {
      const sim = simDisk({ seed: end * 100 + crash, image })
      let segment = await recover(rig(sim.mount()), [])
      const cut = await untilCrash(sim, sim.operations + crash, CUT, async () => {
        await segment.cut(end)
        return true
      })
      const whole = cut === true
      const r = rig(sim.mount())
      segment = await recover(r, [])
      assert.equal(segment.damage, undefined)
      assert.ok(whole ? segment.end === end : segment.end === end || segment.end === 12)
      await segment.cut(end)
      assert.equal(segment.end, end)
      assert.equal(
        segment.bytes,
        model.entries.slice(0, end).reduce((sum, e) => sum + 88 + e.batch.length, 0),
      )
      assert.deepEqual(plain(await scanAll(segment)), plain(model.entries.slice(0, end)))
      segment.advance(segment.end)
      assert.deepEqual(
        plain(await segment.read(1, 0, 1 << 20)),
        plain(model.read(1, 0, 1 << 20, end)),
      )
      await r.engine.close()
      if (whole) break
    }
  }
})

test('the digest of a segment does not depend on how its entries were grouped into blocks', async () => {
  const digests = new Set<string | undefined>()
  const model = new Model()
  const entries = Array.from({ length: 60 }, (_, i) => model.make((i * 5) % 7, 61 + i))
  for (const perFlush of [1, 7, 60]) {
    const sim = simDisk()
    const disk = sim.mount()
    const r = rig(disk)
    const segment = r.engine.create(KEY, LISTENER)
    for (let i = 0; i < 60; i += perFlush) {
      appendAll(r, segment, entries.slice(i, i + perFlush))
      await r.engine.flush()
    }
    const seen = await inspectSegment(disk, LOG, { digest: true })
    assert.ok('digest' in seen)
    assert.equal(seen.entries, 60)
    digests.add(seen.digest)
    await r.engine.close()
  }
  assert.equal(digests.size, 1)
})
