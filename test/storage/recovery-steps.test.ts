// A start with many segments takes long: how far it is, is told, so that nobody takes it for stuck.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { topicId } from '../../src/model/ids.ts'
import type { SegmentKey } from '../../src/model/segment-key.ts'
import { type SimDisk, simDisk } from '../../src/sim/ports/disk.ts'
import { openLogStore } from '../../src/storage/log-store.ts'
import type { LogStore } from '../../src/storage/types.ts'
import { batchOf, LISTENER } from './segment/rig.ts'
import { keptLog, manualClock, seededRandom } from './support/ports.ts'

const RANGES = 5
const KEYS: readonly SegmentKey[] = Array.from({ length: RANGES }, (_, range) => ({
  topicId: topicId('55'.repeat(16)),
  range,
  segment: 1,
}))

function open(disk: SimDisk, told: string[]): Promise<LogStore> {
  return openLogStore({
    disk: disk.mount(),
    clock: manualClock(),
    random: seededRandom(1),
    log: keptLog(),
    identity: { nodeIdBytes: new Uint8Array(16).fill(3), bootCount: 1 },
    catalog: { topicName: () => 't', segments: () => KEYS.map((key) => ({ key })) },
    options: {
      walFileBytes: 256 * 1024,
      cacheBytes: 512 * 1024,
      unflushedBytesMax: 256 * 1024,
      blockBytes: 4 * 1024,
      flushAgeMs: 50,
      walFilesMax: 3,
      reserveBytes: 0,
    },
    listener: {
      roomAgain: () => {},
      recovering: (step, done, of) => told.push(`${step}, ${done} of ${of}`),
      failed: (error) => assert.fail(error),
    },
  })
}

test('a recovery tells of each segment that it opens and writes out', async () => {
  const disk = simDisk()
  const first: string[] = []
  const store = await open(disk, first)
  assert.deepEqual(first, [])
  for (const [entryNumber, key] of KEYS.entries()) {
    const batch = batchOf(300, 1, 0, entryNumber)
    const log = store.create(key, LISTENER)
    log.append({
      entryNumber: 0,
      partition: 0,
      baseOffset: 0,
      recordCount: 1,
      logTimeMs: 0,
      highWatermark: 0,
      leastKeyHash: 0,
      greatestKeyHash: 1,
      batch,
    })
  }
  await store.close()
  const told: string[] = []
  await (await open(disk, told)).close()
  const steps = (step: string): readonly string[] =>
    KEYS.map((_, done) => `${step}, ${done} of ${RANGES}`)
  assert.deepEqual(told, [...steps('segments are opened'), ...steps('segments are written out')])
})
