// Shared by the tests of the log layer: a log that is opened, written and recovered on a simulated disk.

import { type Prng, prng } from '../../../src/base/prng.ts'
import { type SimDisk, simDisk } from '../../../src/sim/ports/disk.ts'
import type { LogOptions } from '../../../src/storage/wal/files.ts'
import { beginRecordLog } from '../../../src/storage/wal/record-log.ts'
import { type RecoveredLog, recoverLog } from '../../../src/storage/wal/recover.ts'
import type { RecordLog } from '../../../src/storage/wal/types.ts'
import { keptLog, type ManualClock, manualClock, seededRandom } from './ports.ts'
import { shuffled } from './shuffled.ts'

export const DIR = 'wal'
export const KIND = 7

export interface World {
  readonly disk: SimDisk
  readonly clock: ManualClock
  readonly failures: Error[]
  boots: number
}

/** With an even seed operations end in any order. */
export function world(seed: number = 1): World {
  const order = seed % 2 === 0 ? { later: shuffled(seed) } : {}
  return {
    disk: simDisk({ seed, trace: true, ...order }),
    clock: manualClock(),
    failures: [],
    boots: 0,
  }
}

export function beginOptions(w: World, fileBytes: number = 64 * 1024): LogOptions {
  w.boots++
  return {
    disk: w.disk.mount(),
    clock: w.clock,
    random: seededRandom(w.boots * 7919),
    log: keptLog(),
    dir: DIR,
    fileBytes,
    identity: { nodeIdBytes: new Uint8Array(16).fill(9), bootCount: w.boots },
    onSpace: () => {},
    onRotated: () => {},
    onFailed: (error) => void w.failures.push(error),
  }
}

export async function openLog(w: World, fileBytes?: number): Promise<RecordLog> {
  return beginRecordLog(await recover(w), beginOptions(w, fileBytes))
}

export function recover(w: World): Promise<RecoveredLog> {
  return recoverLog(w.disk.mount(), DIR)
}

export async function recordsOf(found: RecoveredLog): Promise<Map<number, Uint8Array>> {
  const records = new Map<number, Uint8Array>()
  for await (const chunk of found.replay()) {
    for (const { lsn, payload } of chunk) records.set(lsn, payload.slice())
  }
  return records
}

/** A payload that says which record it is. */
export function payloadOf(lsn: number, chance: Prng = prng(lsn), most: number = 600): Uint8Array {
  const bytes = chance.bytes(8 + chance.below(most))
  bytes.set(new TextEncoder().encode(String(lsn).padStart(8, '0')))
  return bytes
}
