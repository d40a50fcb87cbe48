// A segment as one replica of several has it: it is fenced, ends where others say, and is filled up with copies.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { EastGuardError } from '../../../src/base/errors.ts'
import { prng } from '../../../src/base/prng.ts'
import { ENVELOPE_BYTES, type Entry } from '../../../src/model/entry.ts'
import { type SimDisk, simDisk } from '../../../src/sim/ports/disk.ts'
import { inspectSegment } from '../../../src/storage/segment/inspect.ts'
import type { StoredSegment } from '../../../src/storage/segment/types.ts'
import type { Segment } from '../../../src/storage/segment-log.ts'
import { KIND_FENCE, KIND_SEAL } from '../../../src/storage/wal/types.ts'
import { settle } from '../support/ports.ts'
import { shuffled } from '../support/shuffled.ts'
import {
  appendAll,
  BASE,
  KEY,
  LISTENER,
  Model,
  plain,
  type Rig,
  rig,
  scanAll,
  until,
} from './rig.ts'

const LOG = `${BASE}.log`

function filled(entries: number, bytes: number = 300): Model {
  const model = new Model()
  for (let i = 0; i < entries; i++) model.make(i % 3, bytes)
  return model
}

/** Durable in the WAL, and not committed. */
function appendOnly(r: Rig, segment: StoredSegment, entries: readonly Entry[]): void {
  for (const entry of entries) segment.append(entry)
  r.wal.sync()
}

test('the tail of a fenced segment goes into its file, so that it does not hold the WAL, and is not served', async () => {
  const r = rig(simDisk().mount())
  const segment = r.engine.create(KEY, LISTENER)
  const model = filled(20)
  appendOnly(r, segment, model.entries)
  segment.advance(8)
  await r.engine.flush()
  assert.equal(r.wal.released, 9)
  await segment.fence()
  await r.engine.flush()
  assert.equal(r.wal.released, r.wal.nextLsn)
  assert.deepEqual(plain(await segment.read(0, 0, 1 << 20)), plain(model.read(0, 0, 1 << 20, 8)))
  assert.deepEqual(plain(await scanAll(segment)), plain(model.entries))
  await r.engine.close()
})

test('it goes there in its own time, what was durable before the fence and what is after', async () => {
  for (const durableBefore of [true, false]) {
    const r = rig(simDisk().mount())
    const segment = r.engine.create(KEY, LISTENER)
    for (const entry of filled(3).entries) segment.append(entry)
    if (durableBefore) r.wal.sync()
    await segment.fence()
    if (!durableBefore) r.wal.sync()
    await until(() => {
      r.clock.advance(250)
      return r.wal.released === r.wal.nextLsn
    })
    await r.engine.close()
  }
})

test('a fence answers with the entries before it, once and for all, and is written in the turn in which it is asked for', async () => {
  const written: unknown[] = []
  const r = rig(
    simDisk().mount(),
    {},
    async (kind, key, end) => void written.push([kind, key, end]),
  )
  const segment = r.engine.create(KEY, LISTENER)
  const model = filled(7)
  for (const entry of model.entries.slice(0, 5)) segment.append(entry)
  const answer = segment.fence()
  assert.deepEqual(written, [[4, KEY, 5]])
  for (const entry of model.entries.slice(5)) segment.append(entry)
  assert.equal(segment.fencedAt, 5)
  assert.equal(await answer, 5)
  assert.equal(await segment.fence(), 5)
  assert.equal(written.length, 1)
  await r.engine.close()
})

test('a fence that is not synced is not answered', async () => {
  const r = rig(simDisk().mount(), {}, () => new Promise(() => {}))
  const segment = r.engine.create(KEY, LISTENER)
  let answered = false
  void segment.fence().then(() => (answered = true))
  await settle()
  assert.equal(answered, false)
  await r.engine.close()
})

test('a seal below entries that are on their way to the file leaves none of them', async () => {
  await fc.assert(
    fc.asyncProperty(fc.integer(), fc.boolean(), async (seed, reopen) => {
      const chance = prng(seed)
      const disk = simDisk({ seed, later: shuffled(seed) })
      const r = rig(disk.mount(), { blockBytes: 700 })
      const segment = r.engine.create(KEY, LISTENER)
      const model = filled(1 + chance.below(25))
      const { length } = model.entries
      appendOnly(r, segment, model.entries)
      const committed = chance.below(length + 1)
      segment.advance(committed)
      if (chance.below(2) === 0) await r.engine.flush()
      await segment.fence()
      const flushing = chance.below(2) === 0 ? r.engine.flush() : undefined
      for (let i = chance.below(4); i > 0; i--) await settle()
      const end = committed + chance.below(length - committed + 1)
      await segment.seal(end)
      await flushing
      await r.engine.flush()
      const kept = model.entries.slice(0, end)
      assert.equal(r.engine.unflushedBytes, 0)
      assert.equal((segment as Segment).writer.flushableBytes, 0)
      assert.equal(r.wal.released, r.wal.nextLsn)
      assert.deepEqual([segment.end, segment.highWatermark, segment.endEntry], [end, end, end])
      assert.deepEqual(plain(await scanAll(segment)), plain(kept))
      await r.engine.close()
      if (!reopen) return
      const again = await rig(disk.mount()).engine.open(KEY, {
        topicName: 't',
        walFirst: undefined,
      })
      assert.deepEqual(plain(await scanAll(again)), plain(kept))
      if (end > 0) assert.equal(again.bytes, segment.bytes)
    }),
    { numRuns: 150 },
  )
})

test('a segment that is dropped while its seal cuts the file leaves no file', async () => {
  await fc.assert(
    fc.asyncProperty(fc.integer(), async (seed) => {
      const chance = prng(seed)
      const disk = simDisk({ seed, later: shuffled(seed) })
      const mounted = disk.mount()
      const r = rig(mounted, { blockBytes: 700 })
      const segment = r.engine.create(KEY, LISTENER)
      appendOnly(r, segment, filled(25).entries)
      await segment.fence()
      await r.engine.flush()
      const sealed = segment.seal(chance.below(25))
      for (let i = chance.below(200); i > 0; i--) await Promise.resolve()
      await segment.retire()
      for (const path of disk.paths()) await mounted.remove(path)
      await sealed.catch(() => {})
      await settle()
      assert.deepEqual(disk.paths(), [])
      await r.engine.close()
    }),
    { numRuns: 150 },
  )
})

/** A fenced segment of 25 entries, which are in its file only; a seal at 5 cuts through a block. */
async function uncut(
  seed: number,
): Promise<{ disk: SimDisk; r: Rig; segment: StoredSegment; model: Model }> {
  const disk = simDisk({ seed })
  const r = rig(disk.mount(), { blockBytes: 1500, cacheBytes: 0, unflushedBytesMax: 0 })
  const segment = r.engine.create(KEY, LISTENER)
  const model = filled(25)
  appendOnly(r, segment, model.entries)
  segment.advance(3)
  await segment.fence()
  await r.engine.flush()
  return { disk, r, segment, model }
}

test('a cut that meets a failed disk stops the broker, and nothing is synced any more that could seem to have succeeded', async () => {
  const faults = [
    ['write', `${BASE}.cut`],
    ['sync', `${BASE}.cut`],
    ['rename', `${BASE}.cut`],
    ['syncDir', ''],
    ['write', LOG],
    ['truncate', LOG],
    ['sync', LOG],
    ['remove', `${BASE}.cut`],
  ] as const
  for (const [operation, path] of faults) {
    const note = `${operation} ${path}`
    const { disk, r, segment } = await uncut(7)
    disk.fail({ operation, path, fault: 'io' })
    await assert.rejects(segment.seal(5), { fault: 'io' }, note)
    assert.equal(r.failures.length, 1, note)
    assert.equal(disk.failures, 1, note)
    const { operations } = disk
    await assert.rejects(segment.seal(5), { fault: 'io' }, note)
    r.clock.advance(100_000)
    await settle()
    assert.equal(disk.operations, operations, note)
    await r.engine.close()
  }
})

test('a seal that waits for a job of the flusher, whose sync fails, does not sync the file again', async () => {
  const disk = simDisk({ trace: true })
  const r = rig(disk.mount())
  const segment = r.engine.create(KEY, LISTENER)
  appendOnly(r, segment, filled(20).entries)
  await segment.fence()
  disk.fail({ operation: 'sync', path: LOG, fault: 'io' })
  const flushed = assert.rejects(r.engine.flush(), { code: 'DISK_FAILED' })
  await assert.rejects(segment.seal(5), { code: 'DISK_FAILED' })
  await flushed
  assert.equal(r.failures.length, 1)
  assert.equal(disk.trace.filter(({ kind }) => kind === 'sync').length, 1)
  await r.engine.close()
})

test('a cut that meets a full disk leaves the segment as it was, and is done when there is room', async () => {
  const places = [
    ['open', `${BASE}.cut`],
    ['write', `${BASE}.cut`],
    ['rename', `${BASE}.cut`],
    ['write', LOG],
    ['truncate', LOG],
  ] as const
  for (const [operation, path] of places) {
    for (let seed = 1; seed <= 5; seed++) {
      const note = `${operation} ${path}, seed ${seed}`
      const { disk, r, segment, model } = await uncut(seed)
      disk.fail({ operation, path, fault: 'full', times: 2 })
      for (let i = 0; i < 2; i++) {
        await assert.rejects(segment.seal(5), { code: 'STORAGE_FULL' }, note)
        assert.deepEqual([segment.sealed, segment.endEntry], [false, undefined], note)
        assert.deepEqual([segment.end, segment.highWatermark], [25, 3], note)
        // Where nothing of the file has changed it is read; where it has, nobody takes it for damaged.
        if (path === LOG) await assert.rejects(scanAll(segment), { code: 'STORAGE_FULL' }, note)
        else assert.deepEqual(plain(await scanAll(segment)), plain(model.entries), note)
        await assert.rejects(segment.digest(), { code: 'NOT_READY' }, note)
      }
      const kept = model.entries.slice(0, 5)
      await segment.seal(5)
      assert.deepEqual([segment.sealed, segment.endEntry, segment.end], [true, 5, 5], note)
      assert.deepEqual([segment.highWatermark, segment.damage], [5, undefined], note)
      assert.deepEqual(plain(await scanAll(segment)), plain(kept), note)
      assert.deepEqual(disk.paths(), [`${BASE}.index`, LOG], note)
      assert.deepEqual(r.failures, [], note)
      disk.crash({ keepUnsynced: false })
      const again = await rig(disk.mount()).engine.open(KEY, {
        topicName: 't',
        walFirst: undefined,
      })
      assert.deepEqual(plain(await scanAll(again)), plain(kept), note)
    }
  }
})

test('a cut that a full disk has interrupted is done by the next start', async () => {
  for (const keepUnsynced of [true, false, 'some'] as const) {
    for (let seed = 1; seed <= 10; seed++) {
      const { disk, segment, model } = await uncut(seed)
      disk.fail({ operation: 'write', path: LOG, fault: 'full' })
      await assert.rejects(segment.seal(5), { code: 'STORAGE_FULL' })
      disk.crash({ keepUnsynced })
      const again = await rig(disk.mount()).engine.open(KEY, {
        topicName: 't',
        walFirst: undefined,
      })
      const note = `kept ${keepUnsynced}, seed ${seed}`
      assert.deepEqual(plain(await scanAll(again)), plain(model.entries.slice(0, 5)), note)
    }
  }
})

test('a seal that is tried again takes no more of the room that the log keeps for other records', async () => {
  const disk = simDisk()
  const written: number[] = []
  const r = rig(disk.mount(), {}, async (kind) => void written.push(kind))
  const segment = r.engine.create(KEY, LISTENER)
  appendOnly(r, segment, filled(25).entries)
  await segment.fence()
  await r.engine.flush()
  disk.fail({ operation: 'write', path: `${BASE}.cut`, fault: 'full', times: 9 })
  for (let i = 0; i < 9; i++) await assert.rejects(segment.seal(5), { code: 'STORAGE_FULL' })
  await segment.seal(5)
  assert.deepEqual(written, [KIND_FENCE, KIND_SEAL])
  await r.engine.close()
})

test('what a cut cannot read stops nobody, and the seal may be tried again', async () => {
  const { disk, r, segment, model } = await uncut(7)
  disk.fail({ operation: 'read', path: LOG, fault: 'io' })
  await assert.rejects(segment.seal(5), { code: 'DAMAGED' })
  assert.deepEqual([segment.sealed, segment.damage], [false, undefined])
  await segment.seal(5)
  assert.deepEqual(plain(await scanAll(segment)), plain(model.entries.slice(0, 5)))
  assert.deepEqual(r.failures, [])
  await r.engine.close()
})

test('a segment that is sealed above what is here is incomplete, serves what there is, and takes copies up to its end', async () => {
  const r = rig(simDisk().mount())
  const segment = r.engine.create(KEY, LISTENER)
  const model = filled(12)
  appendOnly(r, segment, model.entries.slice(0, 5))
  await segment.seal(10)
  assert.deepEqual([segment.sealed, segment.end, segment.endEntry], [true, 5, 10])
  assert.equal(segment.highWatermark, 5)
  await assert.rejects(segment.digest(), { code: 'NOT_READY' })
  await segment.install(model.entries.slice(5, 8))
  assert.deepEqual([segment.durableEnd, segment.highWatermark], [8, 8])
  await segment.install(model.entries.slice(8, 10))
  assert.deepEqual(plain(await segment.read(1, 0, 1 << 20)), plain(model.read(1, 0, 1 << 20, 10)))
  await assert.rejects(segment.install(model.entries.slice(10)), { code: 'DAMAGED' })
  assert.equal(segment.end, 10)
  await r.engine.flush()
  assert.equal(r.wal.released, r.wal.nextLsn)
  await r.engine.close()
})

test('copies that do not go on where the segment ends are refused, all of them', async () => {
  const r = rig(simDisk().mount())
  const segment = r.engine.create(KEY, LISTENER)
  const model = filled(12)
  appendOnly(r, segment, model.entries.slice(0, 5))
  await segment.fence()
  const { entries } = model
  const moved = { ...(entries[6] as Entry), baseOffset: 77 }
  const refused = [
    entries.slice(6),
    entries.slice(4),
    [...entries.slice(5, 7), ...entries.slice(8)],
    [entries[5] as Entry, moved],
  ]
  for (const some of refused) await assert.rejects(segment.install(some), { code: 'DAMAGED' })
  assert.equal(segment.end, 5)
  await segment.install(entries.slice(5))
  assert.equal(segment.durableEnd, 12)
  // Whether they are committed is not known before the seal.
  assert.equal(segment.highWatermark, 0)
  await r.engine.close()
})

test('an open segment that is not fenced takes no copies', async () => {
  const r = rig(simDisk().mount())
  const segment = r.engine.create(KEY, LISTENER)
  await assert.rejects(segment.install(filled(1).entries), /has no leader/)
  await r.engine.close()
})

test('entries in entry order come from memory as many as fit, whether durable or not, and not from where it does not reach', async () => {
  const r = rig(simDisk().mount(), { cacheBytes: 8 * 1024, unflushedBytesMax: 6 * 1024 })
  const segment = r.engine.create(KEY, LISTENER)
  const model = filled(40)
  const bytes = ENVELOPE_BYTES + 300
  appendAll(r, segment, model.entries.slice(0, 30))
  await r.engine.flush()
  for (const entry of model.entries.slice(30)) segment.append(entry)
  assert.equal(segment.readEntries(0, 1 << 20), undefined)
  const { entries } = model
  assert.deepEqual(plain(segment.readEntries(28, 3 * bytes)), plain(entries.slice(28, 31)))
  assert.deepEqual(plain(segment.readEntries(38, 10 * bytes)), plain(entries.slice(38)))
  assert.deepEqual(plain(segment.readEntries(33, 1)), plain(entries.slice(33, 34)))
  assert.deepEqual(segment.readEntries(40, 1 << 20), [])
  assert.equal(segment.readEntries(33, 1 << 20)?.[0], entries[33])
  await r.engine.close()
})

/** The digest of a segment with these entries that came in pieces, each flushed or not. */
async function digestOf(entries: readonly Entry[], seed: number): Promise<string> {
  const chance = prng(seed)
  const disk = simDisk({ seed })
  const r = rig(disk.mount(), { blockBytes: 300 + chance.below(3000) })
  const segment = r.engine.create(KEY, LISTENER)
  let highWatermark = 0
  for (let at = 0; at < entries.length; ) {
    const some = entries.slice(at, at + 1 + chance.below(9))
    highWatermark += chance.below(2) === 0 ? 0 : at - highWatermark
    appendAll(
      r,
      segment,
      some.map((entry) => ({ ...entry, highWatermark })),
    )
    if (chance.below(3) === 0) await r.engine.flush()
    at += some.length
  }
  await segment.seal(entries.length)
  const digest = await segment.digest()
  await r.engine.flush()
  assert.equal(await segment.digest(), digest, 'whether in memory or in the file')
  await r.engine.close()
  if (entries.length > 0) {
    const seen = await inspectSegment(disk.mount(), LOG, { digest: true })
    assert.ok('digest' in seen && seen.digest === digest, 'and as people are told')
  }
  return digest
}

test('replicas with the same entries have the same digest, whatever their blocks and the high watermarks in their envelopes', async () => {
  await fc.assert(
    fc.asyncProperty(fc.integer(), fc.nat(40), async (seed, length) => {
      const chance = prng(seed)
      const model = new Model()
      const most = chance.below(4) === 0 ? 100_000 : 900
      for (let i = 0; i < length; i++) model.make(chance.below(3), 61 + chance.below(most))
      const digest = await digestOf(model.entries, seed)
      assert.equal(await digestOf(model.entries, seed + 1), digest)
      if (length === 0) return
      const at = chance.below(length)
      const entries = [...model.entries]
      const { logTimeMs } = entries[at] as Entry
      entries[at] = { ...(entries[at] as Entry), logTimeMs: logTimeMs + 1 }
      assert.notEqual(await digestOf(entries, seed), digest)
    }),
    { numRuns: 60 },
  )
})

test('a digest reads the file though memory has it all: a bit flipped anywhere in it is damage', async () => {
  const model = filled(8)
  for (let byte = 4096; ; byte += 97) {
    const disk = simDisk()
    const r = rig(disk.mount())
    const segment = r.engine.create(KEY, LISTENER)
    appendAll(r, segment, model.entries)
    await segment.seal(8)
    await r.engine.flush()
    const file = await disk.mount().open(LOG, { mode: 'read' })
    const size = await file.size()
    await file.close()
    if (byte >= size) break
    assert.equal(disk.flipBit(LOG, byte, byte % 8), undefined)
    await assert.rejects(segment.digest(), (error) => {
      return error instanceof EastGuardError && error.code === 'DAMAGED'
    })
    assert.ok(segment.damage !== undefined)
    await r.engine.close()
  }
})

test('who waits for a flush of entries that a seal then drops is let go', async () => {
  const disk = simDisk()
  const r = rig(disk.mount())
  const segment = r.engine.create(KEY, LISTENER)
  appendOnly(r, segment, filled(10).entries)
  await segment.fence()
  let free = (): void => {}
  disk.before = ({ kind, path }) =>
    kind === 'write' && path === LOG ? new Promise<void>((go) => (free = go)) : undefined
  const flushed = r.engine.flush()
  await settle()
  const sealed = segment.seal(0)
  await settle()
  disk.before = undefined
  free()
  await sealed
  await flushed
  await until(() => r.wal.released === r.wal.nextLsn)
  assert.equal(segment.end, 0)
  await r.engine.close()
})

test('a segment that is dropped while it is fenced, sealed or filled up ends all of it, and nothing is left in memory', async () => {
  await fc.assert(
    fc.asyncProperty(fc.integer(), async (seed) => {
      const chance = prng(seed)
      const r = rig(simDisk({ seed, later: shuffled(seed) }).mount(), { blockBytes: 700 })
      const segment = r.engine.create(KEY, LISTENER)
      const model = filled(20)
      appendOnly(r, segment, model.entries.slice(0, 12))
      const work: Promise<unknown>[] = [segment.fence(), r.engine.flush()]
      if (chance.below(2) === 0) work.push(segment.install(model.entries.slice(12, 15)))
      for (let i = chance.below(3); i > 0; i--) await settle()
      const end = chance.below(20)
      const sealFirst = chance.below(2) === 0
      if (sealFirst) work.push(segment.seal(end))
      for (let i = chance.below(3); i > 0; i--) await settle()
      work.push(segment.retire())
      if (!sealFirst) {
        for (let i = chance.below(2); i > 0; i--) await settle()
        work.push(segment.seal(end))
      }
      await Promise.all(work)
      await assert.rejects(segment.install([]), { code: 'OFFSET_OUT_OF_RANGE' })
      assert.equal(r.engine.unflushedBytes, 0)
      assert.equal(r.wal.released, r.wal.nextLsn)
      await r.engine.close()
    }),
    { numRuns: 150 },
  )
})
