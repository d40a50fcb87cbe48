import assert from 'node:assert/strict'
import { test } from 'node:test'
import { putU32 } from '../../../src/base/bytes.ts'
import { type FileHeader, RECORDS_AT } from '../../../src/storage/wal/header.ts'
import { FRAME_BYTES, GROUP_MAGIC, putGroup } from '../../../src/storage/wal/record.ts'
import { scanFile } from '../../../src/storage/wal/scan.ts'

const MIB = 1 << 20
const HEADER: FileHeader = {
  version: 1,
  identity: { nodeIdBytes: new Uint8Array(16), bootCount: 1 },
  generation: 1,
  sequence: 1,
  salt: 7,
  firstLsn: 1,
  fileBytes: 0,
  floorLsn: 1,
}

/** What a client's batch may hold: frames of records which begin as a group does, each as long as the file. */
function trap(bytes: Uint8Array, from: number, length: number): void {
  for (let at = from; at < from + length; at += FRAME_BYTES + GROUP_MAGIC.length) {
    putU32(bytes, at + 4, bytes.length - at - FRAME_BYTES)
    putU32(bytes, at + 8, 2)
    bytes.set(GROUP_MAGIC, at + FRAME_BYTES)
  }
}

test('no payload makes the search for the next group long', () => {
  const bytes = new Uint8Array(16 * MIB)
  trap(bytes, RECORDS_AT, 256 * 1024)
  const group = { group: 3, syncedLsn: 40, floorLsn: 1, records: 0 }
  putGroup(bytes, bytes.length - 4096, 41, group, HEADER.salt)
  const before = process.cpuUsage()
  const { syncedEnd, runs } = scanFile(bytes, HEADER)
  const { user } = process.cpuUsage(before)
  assert.equal(syncedEnd, 41)
  assert.equal(runs.at(-1)?.endLsn, 1)
  // A checksum over what each frame claims takes a minute.
  assert.ok(user < 5_000_000, `${user} µs`)
})

test('what was not written yet of a file is passed over: nothing can be in zeros', () => {
  const bytes = new Uint8Array(64 * MIB)
  const group = { group: 1, syncedLsn: 0, floorLsn: 1, records: 0 }
  putGroup(bytes, RECORDS_AT, 1, group, HEADER.salt)
  const before = process.cpuUsage()
  const { groups, runs } = scanFile(bytes, HEADER)
  const { user } = process.cpuUsage(before)
  assert.equal(groups, 1)
  assert.equal(runs.length, 1)
  // A search for an LSN, which begins with zeros, takes 400 ms and more.
  assert.ok(user < 150_000, `${user} µs`)
})
