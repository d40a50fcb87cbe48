// Damage on one replica of several: what is missing of a sealed segment is copied, and a damaged copy is given up and copied
// anew, whatever the process dies of meanwhile. An open segment that may miss something stays marked: nobody may believe it.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { prng } from '../../src/base/prng.ts'
import { placeBatch } from '../../src/model/batch/header.ts'
import type { Entry } from '../../src/model/entry.ts'
import { topicId } from '../../src/model/ids.ts'
import type { SegmentKey } from '../../src/model/segment-key.ts'
import type { Clock } from '../../src/ports/clock.ts'
import { type DiskImage, type SimDisk, simDisk } from '../../src/sim/ports/disk.ts'
import { openLogStore } from '../../src/storage/log-store.ts'
import type { LogStore, SegmentLog } from '../../src/storage/types.ts'
import { batchOf, LISTENER, plain, scanAll } from './segment/rig.ts'
import { keptLog, manualClock, seededRandom, settle } from './support/ports.ts'
import { CUT, KILL, untilCrash } from './support/until-crash.ts'

const KEY: SegmentKey = { topicId: topicId('55'.repeat(16)), range: 0, segment: 1 }
const NEXT: SegmentKey = { ...KEY, segment: 2 }
const LOG = `topics/t-${KEY.topicId}/range-0/00000000000000000001.log`
const TOKEN = 'c'.repeat(32)
const ENTRIES = 60

interface Known {
  readonly endEntry?: number
  readonly elsewhere: boolean
}

let boots = 0

function open(disk: SimDisk, known: Known, clock: Clock = manualClock()): Promise<LogStore> {
  boots++
  return openLogStore({
    disk: disk.mount(),
    clock,
    random: seededRandom(boots),
    log: keptLog(),
    identity: { nodeIdBytes: new Uint8Array(16).fill(3), bootCount: boots },
    catalog: { topicName: () => 't', segments: () => [{ key: KEY, ...known }] },
    options: {
      walFileBytes: 256 * 1024,
      cacheBytes: 512 * 1024,
      unflushedBytesMax: 256 * 1024,
      blockBytes: 4 * 1024,
      flushAgeMs: 50,
      walFilesMax: 3,
      reserveBytes: 0,
    },
    listener: { roomAgain: () => {}, failed: (error) => assert.fail(error) },
  })
}

const SEALED: Known = { endEntry: ENTRIES, elsewhere: true }

function entries(): readonly Entry[] {
  const chance = prng(7)
  return Array.from({ length: ENTRIES }, (_, entryNumber) => {
    const batch = batchOf(300 + chance.below(300), 1, 0, entryNumber)
    placeBatch(batch, entryNumber, 1)
    const place = { entryNumber, partition: 0, baseOffset: entryNumber, recordCount: 1 }
    const highWatermark = Math.floor(entryNumber * 0.8)
    return { ...place, logTimeMs: 0, highWatermark, leastKeyHash: 0, greatestKeyHash: 1, batch }
  })
}

/** A directory with `count` of the entries, in the WAL and, once it is fenced, in the file; killed when the log says so. */
async function written(count: number, fenced: boolean): Promise<SimDisk> {
  const disk = simDisk()
  const clock = manualClock()
  const store = await open(disk, { elsewhere: true }, clock)
  const log = store.create(KEY, LISTENER)
  for (const entry of entries().slice(0, count)) log.append(entry)
  store.commit()
  if (fenced) await log.fence()
  await store.stagePackage(NEXT, TOKEN, {
    state: new Uint8Array(10),
    tail: { of: KEY, entries: entries().slice(-3) },
  })
  if (fenced) await store.flush()
  await settle()
  clock.advance(20)
  await settle()
  disk.crash(KILL)
  return disk
}

/** As a broker repairs it: what is damaged is given up, the rest copied, and all of it proven. */
async function repaired(store: LogStore): Promise<SegmentLog> {
  if (store.find(KEY)?.damage !== undefined) {
    await store.replaceSegment(KEY)
    assert.equal(store.find(KEY), undefined)
  }
  const log = store.find(KEY) ?? store.create(KEY, LISTENER)
  if (!log.sealed) await log.seal(ENTRIES)
  while (log.end < ENTRIES) await log.install(entries().slice(log.end, log.end + 17))
  await log.digest()
  return log
}

async function isWhole(disk: SimDisk, note: string): Promise<void> {
  const store = await open(disk, SEALED)
  const log = store.find(KEY)
  assert.equal(log?.damage, undefined, note)
  assert.ok(log !== undefined, note)
  assert.deepEqual(plain(await scanAll(log)), plain(entries()), note)
  const tail = await store.loadTail(KEY, TOKEN)
  assert.deepEqual(plain(tail), plain(entries().slice(-3)), note)
  assert.ok((await store.loadState(NEXT, TOKEN)) !== undefined, note)
  await store.close()
}

async function repairedDespite(image: DiskImage, note: string): Promise<void> {
  for (let at = 1; ; at++) {
    const disk = simDisk({ seed: at, image })
    const crash = at % 3 === 0 ? KILL : CUT
    const done = await untilCrash(disk, disk.operations + at, crash, async () => {
      const store = await open(disk, SEALED)
      await repaired(store)
      await store.close()
      return true
    })
    const store = await open(disk, SEALED)
    await repaired(store)
    await store.close()
    await isWhole(disk, `${note}, crash at ${at}`)
    if (done === true) return
  }
}

test('a sealed segment of which the end is missing is no damage, and is filled up, whatever crashes meanwhile', async () => {
  for (const fenced of [false, true]) {
    const disk = await written(40, fenced)
    const image = disk.snapshot()
    const store = await open(disk, SEALED)
    assert.equal(store.find(KEY)?.damage, undefined)
    assert.equal(store.find(KEY)?.end, 40)
    disk.crash(KILL)
    await repairedDespite(image, `fenced ${fenced}`)
  }
})

test('with no other replica, what is missing of a sealed segment is damage', async () => {
  const disk = await written(40, true)
  const store = await open(disk, { endEntry: ENTRIES, elsewhere: false })
  assert.match(store.find(KEY)?.damage ?? '', /sealed at 60 entries, 40 are left/)
  await store.close()
})

test('a damaged copy is given up and copied anew, whatever crashes meanwhile; states and tails stay', async () => {
  const disk = await written(ENTRIES, true)
  // All of it is in the file, and the WAL has been begun anew.
  await (await open(disk, SEALED)).close()
  disk.flipBit(LOG, 9000, 3)
  const store = await open(disk, SEALED)
  const log = store.find(KEY)
  await log?.seal(ENTRIES)
  await assert.rejects(log?.digest() ?? Promise.resolve(), { code: 'DAMAGED' })
  disk.crash(KILL)
  // Cut off in the middle of a block, it is damaged at every start.
  const file = await disk.mount().open(LOG, { mode: 'write' })
  await file.truncate(9000)
  await file.sync()
  await file.close()
  const marked = await open(disk, SEALED)
  assert.ok(marked.find(KEY)?.damage !== undefined)
  await marked.close()
  await repairedDespite(disk.snapshot(), 'damaged')
})

test('entries of a copy that was given up, which the WAL still has, are no obstacle to the new one', async () => {
  const disk = await written(ENTRIES, false)
  const store = await open(disk, SEALED)
  const log = store.create({ ...KEY, segment: 9 }, LISTENER)
  log.append({ ...(entries()[0] as Entry) })
  await store.replaceSegment(KEY)
  const fresh = store.create(KEY, LISTENER)
  await fresh.seal(ENTRIES)
  await fresh.install(entries().slice(0, 20))
  // Given up again, with its entries in the WAL and nothing of it in a file.
  await store.replaceSegment(KEY)
  const again = store.create(KEY, LISTENER)
  await again.seal(ENTRIES)
  await again.install(entries().slice(0, 7))
  await again.install(entries().slice(7, 30))
  disk.crash(CUT)
  const reopened = await open(disk, SEALED)
  assert.equal(reopened.find(KEY)?.damage, undefined)
  assert.equal(reopened.find(KEY)?.end, 30)
  await repaired(reopened)
  await reopened.close()
  await isWhole(disk, 'given up twice')
})

test('a copy that is made anew while the one before is being removed keeps its file, whenever it comes', async () => {
  const others = [3, 4].map((segment) => ({ ...KEY, segment }))
  for (let turns = 0; turns < 40; turns++) {
    const note = `after ${turns} turns`
    const disk = await written(ENTRIES, true)
    const store = await open(disk, SEALED)
    for (const key of others) {
      store.create(key, LISTENER).append({ ...(entries()[0] as Entry) })
    }
    store.commit()
    const dropped = store.dropSegments([...others, KEY])
    for (let i = 0; i < turns; i++) await Promise.resolve()
    const fresh = store.create(KEY, LISTENER)
    await fresh.seal(ENTRIES)
    await fresh.install(entries())
    await store.flush()
    await dropped
    assert.equal(store.find(KEY), fresh, note)
    assert.ok(disk.paths().includes(LOG), note)
    await store.close()
    const reopened = await open(disk, SEALED)
    const log = reopened.find(KEY)
    assert.ok(log !== undefined && log.damage === undefined, note)
    assert.deepEqual(plain(await scanAll(log)), plain(entries()), note)
    await reopened.close()
  }
})

test('an open segment is never given up: an empty copy of it would be believed', async () => {
  const disk = await written(40, true)
  const store = await open(disk, { elsewhere: true })
  await assert.rejects(store.replaceSegment(KEY), /only of what is sealed/)
  await store.close()
})

test('an open segment that lost entries is marked, though others have it, and stays so over starts', async () => {
  const disk = await written(ENTRIES, false)
  const wal = disk.paths().filter((path) => path.startsWith('wal/'))
  const bytes = Buffer.from(disk.bytesOf(wal[0] as string))
  // In the middle of the batch of entry 30.
  const at = bytes.indexOf(Buffer.from(entries()[30]?.batch.subarray(61) as Uint8Array))
  assert.ok(at > 0)
  disk.flipBit(wal[0] as string, at + 5, 1)
  for (let start = 0; start < 3; start++) {
    const store = await open(disk, { elsewhere: true })
    assert.match(store.find(KEY)?.damage ?? '', /lost/)
    // What it has seen committed it tells, though it has lost it: no end may lie below.
    if (start === 0) assert.equal(store.find(KEY)?.knownHighWatermark, 47)
    await store.close()
  }
  // Sealed by the others, it is given up.
  await repairedDespite(disk.snapshot(), 'marked')
})

/** Entry 30 is lost in the WAL, and what is behind it. */
async function withoutEnd(): Promise<SimDisk> {
  const disk = await written(ENTRIES, false)
  const wal = disk.paths().filter((path) => path.startsWith('wal/'))
  const bytes = Buffer.from(disk.bytesOf(wal[0] as string))
  const at = bytes.indexOf(Buffer.from(entries()[30]?.batch.subarray(61) as Uint8Array))
  disk.flipBit(wal[0] as string, at + 5, 1)
  return disk
}

async function salvaged(log: SegmentLog | undefined): Promise<readonly Entry[]> {
  const all: Entry[] = []
  if (log !== undefined) for await (const some of log.salvage(0)) all.push(...some)
  return all
}

test('what is there of a marked segment can be had, and the mark goes when it ends there', async () => {
  const disk = await withoutEnd()
  const store = await open(disk, { elsewhere: true })
  const log = store.find(KEY)
  assert.ok(log?.damage !== undefined)
  await assert.rejects(scanAll(log), { code: 'DAMAGED' })
  assert.deepEqual(plain(await salvaged(log)), plain(entries().slice(0, 30)))
  assert.equal(await store.acquit(KEY, 31), false)
  assert.ok(log.damage !== undefined)
  assert.equal(await store.acquit(KEY, 30), true)
  await log.seal(30)
  assert.deepEqual(plain(await scanAll(log)), plain(entries().slice(0, 30)))
  disk.crash(CUT)
  const again = await open(disk, { endEntry: 30, elsewhere: true })
  assert.equal(again.find(KEY)?.damage, undefined)
  assert.deepEqual(
    plain(await scanAll(again.find(KEY) as SegmentLog)),
    plain(entries().slice(0, 30)),
  )
  await again.close()
})

test('a mark stays where something below the end is bad', async () => {
  const disk = await withoutEnd()
  await (await open(disk, { elsewhere: true })).close()
  disk.flipBit(LOG, 9000, 3)
  const store = await open(disk, { elsewhere: true })
  const log = store.find(KEY)
  await assert.rejects(salvaged(log), { code: 'DAMAGED' })
  assert.equal(await store.acquit(KEY, 30), false)
  assert.ok(log?.damage !== undefined)
  assert.equal(await store.acquit(KEY, 1), true)
  await store.close()
})

test('lost records of the WAL do not damage a sealed segment that others have', async () => {
  const disk = await written(ENTRIES, false)
  const wal = disk.paths().filter((path) => path.startsWith('wal/'))
  const bytes = Buffer.from(disk.bytesOf(wal[0] as string))
  const at = bytes.indexOf(Buffer.from(entries()[30]?.batch.subarray(61) as Uint8Array))
  disk.flipBit(wal[0] as string, at + 5, 1)
  const image = disk.snapshot()
  const store = await open(disk, SEALED)
  assert.equal(store.find(KEY)?.damage, undefined)
  assert.equal(store.find(KEY)?.end, 30)
  disk.crash(KILL)
  await repairedDespite(image, 'lost records')
})

test('a fence is found again as long as the WAL has it', async () => {
  const disk = simDisk()
  const before = await open(disk, { elsewhere: true })
  const log = before.create(KEY, LISTENER)
  log.append(entries()[0] as Entry)
  assert.equal(await log.fence(), 1)
  disk.crash(CUT)
  const store = await open(disk, { elsewhere: true })
  assert.equal(store.find(KEY)?.fencedAt, 1)
  await store.close()
})
