// A broker that starts is told of the metadata's changes while it recovers its records: also that a topic of these is no more.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { placeBatch } from '../../src/model/batch/header.ts'
import { topicId } from '../../src/model/ids.ts'
import { type SimDisk, simDisk } from '../../src/sim/ports/disk.ts'
import { openLogStore } from '../../src/storage/log-store.ts'
import type { LogStore } from '../../src/storage/types.ts'
import { batchOf, LISTENER } from './segment/rig.ts'
import { keptLog, manualClock, seededRandom } from './support/ports.ts'

const KEY = { topicId: topicId('66'.repeat(16)), range: 0, segment: 1 }

let boots = 0

/** The catalog knows the topic for so many questions. */
function open(disk: SimDisk, questions: number): Promise<LogStore> {
  boots++
  let asked = 0
  const there = (): boolean => asked++ < questions
  return openLogStore({
    disk: disk.mount(),
    clock: manualClock(),
    random: seededRandom(boots),
    log: keptLog(),
    identity: { nodeIdBytes: new Uint8Array(16).fill(3), bootCount: boots },
    catalog: {
      topicName: () => (there() ? 't' : undefined),
      segments: () => (there() ? [{ key: KEY, elsewhere: true }] : []),
    },
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

test('a broker starts, whenever in its recovery a topic is deleted', async () => {
  let kept = 0
  for (let questions = 0; questions < 12; questions++) {
    const disk = simDisk()
    const log = (await open(disk, 1000)).create(KEY, LISTENER)
    const batch = batchOf(300, 1, 0, 0)
    placeBatch(batch, 0, 1)
    const place = { entryNumber: 0, partition: 0, baseOffset: 0, recordCount: 1 }
    const hashes = { leastKeyHash: 0, greatestKeyHash: 1 }
    log.append({ ...place, logTimeMs: 0, highWatermark: 0, ...hashes, batch })
    await log.fence()
    disk.crash({ keepUnsynced: true })
    const store = await open(disk, questions)
    if (store.find(KEY) !== undefined) kept++
    await store.close()
  }
  assert.ok(kept > 0 && kept < 12)
})
