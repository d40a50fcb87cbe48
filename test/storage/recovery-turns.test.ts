// A broker that recovers its records leads shards and votes in others already: it must not keep the thread for long.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { openLogStore } from '../../src/storage/log-store.ts'
import { beginOptions, KIND, openLog, world } from './support/logs.ts'
import { keptLog, manualClock, seededRandom } from './support/ports.ts'

const MIB = 1024 * 1024
const FILE_BYTES = 4 * MIB
const LOG_BYTES = 7 * MIB
const RECORD_BYTES = 1000
/** The scan, and two passes over what it found. */
const PASSES = 3

test('recovery of a long log lends the thread to others every megabyte or so, in each of its passes', async () => {
  const w = world()
  const log = await openLog(w, FILE_BYTES)
  for (let bytes = 0; bytes < LOG_BYTES; bytes += RECORD_BYTES) {
    log.append(KIND, new Uint8Array(RECORD_BYTES).fill(7))
    if (bytes % (100 * RECORD_BYTES) === 0) await log.sync()
  }
  await log.sync()
  await log.close()
  const clock = manualClock()
  let turns = 0
  const { identity } = beginOptions(w)
  const store = await openLogStore({
    disk: w.disk.mount(),
    clock: {
      ...clock,
      nextTurn: (run) => {
        turns++
        clock.nextTurn(run)
      },
    },
    random: seededRandom(1),
    log: keptLog(),
    identity,
    catalog: { topicName: () => undefined, segments: () => [] },
    options: {
      walFileBytes: FILE_BYTES,
      cacheBytes: MIB,
      unflushedBytesMax: MIB,
      blockBytes: 8 * 1024,
      flushAgeMs: 50,
      walFilesMax: 3,
      reserveBytes: 0,
    },
    listener: {
      roomAgain: () => {},
      failed: (error) => {
        throw error
      },
    },
  })
  await store.close()
  const least = Math.floor((PASSES * LOG_BYTES) / MIB) - PASSES
  assert.ok(turns >= least, `it waited for ${turns} turns, and should for ${least}`)
})
