// A broker that fails has all ranges rolled in which it had a part, at once: what is staged for them must leave the disk to the log.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { topicId } from '../../src/model/ids.ts'
import type { SegmentKey } from '../../src/model/segment-key.ts'
import type { Disk } from '../../src/ports/disk.ts'
import { simDisk } from '../../src/sim/ports/disk.ts'
import { DurableDirs } from '../../src/storage/durable-dirs.ts'
import { StagedFiles } from '../../src/storage/staged-files.ts'
import { States } from '../../src/storage/states.ts'

const RANGES = 100
/** Of the pool that does what is asked of the disk. */
const THREADS = 4
const TOKENS = ['c', 'd'].map((letter) => letter.repeat(32)) as [string, string]

interface Busy {
  /** Called under way at a time. */
  now: number
  most: number
}

/** Counts what is asked of the directory entries: each staged file asks for these too. */
function counting(disk: Disk, busy: Busy): Disk {
  const counted = async <T>(call: () => Promise<T>): Promise<T> => {
    busy.most = Math.max(busy.most, ++busy.now)
    await new Promise((resolve) => setImmediate(resolve))
    return call().finally(() => busy.now--)
  }
  return {
    ...disk,
    open: (path, options) => counted(() => disk.open(path, options)),
    list: (path) => counted(() => disk.list(path)),
    remove: (path) => counted(() => disk.remove(path)),
    rename: (from, to) => counted(() => disk.rename(from, to)),
    makeDir: (path) => counted(() => disk.makeDir(path)),
    syncDir: (path) => counted(() => disk.syncDir(path)),
  }
}

test('states of many ranges are written and removed a few at a time, and all are there in the end', async () => {
  const busy = { now: 0, most: 0 }
  const disk = counting(simDisk().mount(), busy)
  const catalog = { topicName: () => 't', segments: () => [] }
  const states = new States(new StagedFiles(disk, catalog, new DurableDirs(disk)))
  const keys = Array.from({ length: RANGES }, (_, range): SegmentKey => {
    return { topicId: topicId('66'.repeat(16)), range, segment: 2 }
  })
  const content = (range: number): Uint8Array => new Uint8Array(8).fill(range)
  await Promise.all(
    keys.flatMap((key) => TOKENS.map((token) => states.stage(key, token, content(key.range)))),
  )
  await Promise.all(keys.map((key) => states.keep(key, TOKENS[0])))
  assert.ok(busy.most <= THREADS, `${busy.most} calls at a time`)
  for (const key of keys) {
    assert.deepEqual(await states.load(key, TOKENS[0]), content(key.range))
    assert.equal(await states.load(key, TOKENS[1]), undefined)
  }
})
