import assert from 'node:assert/strict'
import { test } from 'node:test'
import { putU32 } from '../../../src/base/bytes.ts'
import { crc32c } from '../../../src/base/checksum.ts'
import { prng } from '../../../src/base/prng.ts'
import { decodeHeader, fileName, RECORDS_AT } from '../../../src/storage/wal/header.ts'
import { frameAt, frameKind, frameLsn, KIND_GROUP } from '../../../src/storage/wal/record.ts'
import {
  DIR,
  KIND,
  openLog,
  payloadOf,
  recordsOf,
  recover,
  type World,
  world,
} from '../support/logs.ts'
import { settle } from '../support/ports.ts'

/** A log of three files, closed, so that a mark stands behind its last group. */
async function written(): Promise<{ w: World; end: number }> {
  const w = world()
  const log = await openLog(w)
  while (log.filesInUse < 3) {
    for (let i = 0; i < 5; i++) log.append(KIND, payloadOf(log.nextLsn))
    await log.sync()
  }
  log.append(KIND, payloadOf(log.nextLsn))
  await log.sync()
  await settle()
  const end = log.nextLsn
  await log.close()
  return { w, end }
}

interface Frame {
  readonly path: string
  readonly at: number
  readonly size: number
  readonly kind: number
  readonly lsn: number
}

function frames(w: World): Frame[] {
  const found: Frame[] = []
  for (const path of w.disk.paths()) {
    const bytes = w.disk.bytesOf(path)
    const salt = decodeHeader(bytes)?.salt ?? 0
    for (let at = RECORDS_AT; ; ) {
      const size = frameAt(bytes, at, salt)
      if (size === 0) break
      found.push({ path, at, size, kind: frameKind(bytes, at), lsn: frameLsn(bytes, at) })
      at += size
    }
  }
  return found
}

test('one flipped bit in any record is damage to that record, and to no other', async () => {
  const { w, end } = await written()
  const chance = prng(1)
  for (const frame of frames(w).filter(({ kind }) => kind !== KIND_GROUP)) {
    const byte = frame.at + chance.below(frame.size)
    const bit = chance.below(8)
    w.disk.flipBit(frame.path, byte, bit)
    const found = await recover(w)
    const spans = found.lost.map(({ fromLsn, endLsn }) => [fromLsn, endLsn])
    assert.deepEqual(spans, [[frame.lsn, frame.lsn + 1]], `byte ${byte}`)
    assert.equal(found.endLsn, end)
    const records = await recordsOf(found)
    for (let lsn = 1; lsn < end; lsn++) assert.equal(records.has(lsn), lsn !== frame.lsn)
    w.disk.flipBit(frame.path, byte, bit)
  }
})

test('a flipped bit in a group header costs no record', async () => {
  const { w, end } = await written()
  for (const frame of frames(w).filter(({ kind }) => kind === KIND_GROUP)) {
    w.disk.flipBit(frame.path, frame.at + 3, 1)
    const found = await recover(w)
    assert.deepEqual(found.lost, [])
    assert.equal(found.endLsn, end)
    w.disk.flipBit(frame.path, frame.at + 3, 1)
  }
})

test('wherever bits flip, a record comes back as it was or is reported lost', async () => {
  const { w, end } = await written()
  const chance = prng(2)
  const paths = w.disk.paths()
  for (let round = 0; round < 300; round++) {
    const flips = Array.from({ length: 1 + chance.below(6) }, () => ({
      path: paths[chance.below(paths.length)] as string,
      at: chance.float(),
      bit: chance.below(8),
    })).map(({ path, at, bit }) => ({
      path,
      byte: Math.floor(at * w.disk.bytesOf(path).length),
      bit,
    }))
    for (const { path, byte, bit } of flips) w.disk.flipBit(path, byte, bit)
    const found = await recover(w)
    const records = await recordsOf(found)
    for (const [lsn, payload] of records) assert.deepEqual(payload, payloadOf(lsn))
    for (let lsn = 1; lsn < end; lsn++) {
      const lost = found.lost.some((s) => lsn >= s.fromLsn && lsn < (s.endLsn ?? end))
      // Behind S* the last group cannot be told from one that was torn.
      assert.ok(records.has(lsn) || lost || lsn >= found.endLsn, `round ${round}, record ${lsn}`)
      assert.ok(lsn >= end - 6 || records.has(lsn) || lost, `round ${round}, record ${lsn}`)
    }
    for (const { path, byte, bit } of flips) w.disk.flipBit(path, byte, bit)
  }
})

test('one good header page is enough', async () => {
  const { w, end } = await written()
  for (const path of w.disk.paths()) {
    for (const page of [0, 4096]) {
      w.disk.flipBit(path, page + 20, 0)
      const found = await recover(w)
      assert.deepEqual(found.lost, [])
      assert.equal(found.endLsn, end)
      w.disk.flipBit(path, page + 20, 0)
    }
  }
})

test('a file that is missing or without a header is damage, whichever it is', async () => {
  for (const which of [1, 2, 3]) {
    for (const how of ['missing', 'no header']) {
      const { w, end } = await written()
      const path = `${DIR}/${fileName(which)}`
      const inIt = frames(w).filter((frame) => frame.path === path && frame.kind !== KIND_GROUP)
      if (how === 'missing') await w.disk.mount().remove(path)
      else for (const page of [0, 4096]) w.disk.flipBit(path, page + 20, 0)
      const found = await recover(w)
      for (const { lsn } of inIt) {
        const lost = found.lost.some((s) => lsn >= s.fromLsn && lsn < (s.endLsn ?? end))
        assert.ok(lost, `file ${which} ${how}: record ${lsn}`)
      }
      for (const lsn of (await recordsOf(found)).keys()) {
        assert.ok(!inIt.some((frame) => frame.lsn === lsn))
      }
    }
  }
})

test('a file that was cut off anywhere is damage, and what is missing is told', async () => {
  const { w, end } = await written()
  const whole = w.disk.snapshot()
  for (const path of w.disk.paths()) {
    const fileBytes = w.disk.bytesOf(path).length
    const holdsRecords = frames(w).some((frame) => frame.path === path)
    for (let length = 0; holdsRecords && length < fileBytes; length += 997) {
      const file = await w.disk.mount().open(path, { mode: 'write' })
      await file.truncate(length)
      const found = await recover(w)
      const records = await recordsOf(found)
      for (let lsn = 1; lsn < end; lsn++) {
        const lost = found.lost.some((s) => lsn >= s.fromLsn && lsn < (s.endLsn ?? end))
        assert.ok(records.has(lsn) || lost, `${path} cut at ${length}, record ${lsn}`)
      }
      w.disk.restore(whole)
    }
  }
})

test('a log of a newer format is left alone', async () => {
  const { w } = await written()
  const path = w.disk.paths()[0] as string
  const bytes = w.disk.bytesOf(path)

  for (const page of [0, 4096]) {
    putU32(bytes, page + 12, 99)
    putU32(bytes, page + 8, crc32c(bytes.subarray(page + 12, page + 100)))
  }
  const file = await w.disk.mount().open(path, { mode: 'write' })
  await file.write([bytes], 0)
  await assert.rejects(recover(w), { code: 'DATA_DIR_NEWER' })
})
