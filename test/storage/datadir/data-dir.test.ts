import assert from 'node:assert/strict'
import { test } from 'node:test'
import { fromUtf8, utf8 } from '../../../src/base/bytes.ts'
import { EastGuardError, type ErrorCode } from '../../../src/base/errors.ts'
import { prng } from '../../../src/base/prng.ts'
import { type Disk, DiskError } from '../../../src/ports/disk.ts'
import { type Crash, simDisk } from '../../../src/sim/ports/disk.ts'
import { readWhole } from '../../../src/storage/checked-file.ts'
import { type DataDir, openDataDir } from '../../../src/storage/datadir/data-dir.ts'
import { beginRecordLog } from '../../../src/storage/wal/record-log.ts'
import { recoverLog } from '../../../src/storage/wal/recover.ts'
import { keptLog, manualClock, seededRandom } from '../support/ports.ts'
import { untilCrash } from '../support/until-crash.ts'

let seed = 1

function open(disk: Disk): Promise<DataDir> {
  return openDataDir({
    disk,
    random: seededRandom(seed++),
    displayName: 'east-1',
    journalDir: 'journal',
    walDir: 'wal',
    cluster: { clusterId: undefined, metadataShards: 8 },
  })
}

/** A start as a broker makes it: both logs begin, then the start is confirmed. `close` ends it in good order. */
async function start(disk: Disk): Promise<DataDir> {
  const dir = await open(disk)
  for (const part of ['journal', 'wal']) {
    const log = await beginRecordLog(await recoverLog(disk, part), {
      disk,
      clock: manualClock(),
      random: seededRandom(seed++),
      log: keptLog(),
      dir: part,
      fileBytes: 32 * 1024,
      identity: dir.identity,
      onSpace: () => {},
      onRotated: () => {},
      onFailed: (error) => {
        throw error
      },
    })
    await log.close()
  }
  await dir.confirm('journal')
  await dir.confirm('wal')
  return dir
}

async function refuses(run: Promise<unknown>, code: ErrorCode, words: RegExp): Promise<void> {
  await assert.rejects(run, (error: unknown) => {
    assert.ok(error instanceof EastGuardError, String(error))
    assert.equal(error.code, code)
    assert.match(error.message, words)
    return true
  })
}

async function copyDir(disk: Disk, from: string, to: string): Promise<void> {
  await disk.remove(to)
  await disk.makeDir(to)
  for (const { name } of await disk.list(from)) {
    await copyFile(disk, `${from}/${name}`, `${to}/${name}`)
  }
}

async function copyFile(disk: Disk, from: string, to: string): Promise<void> {
  const file = await disk.open(to, { mode: 'create' })
  await file.truncate(0)
  await file.write([await readWhole(disk, from)], 0)
  await file.close()
}

test('the first start makes an identity, and each later one keeps it and counts', async () => {
  const disk = simDisk().mount()
  const first = await start(disk)
  assert.ok(first.fresh)
  assert.equal(first.bootCount, 1)
  await first.close()
  const second = await start(disk)
  assert.ok(!second.fresh)
  assert.equal(second.bootCount, 2)
  assert.deepEqual([second.nodeId, second.clusterId], [first.nodeId, first.clusterId])
  await second.close()
})

test('a directory in use is refused, and free again after close', async () => {
  const disk = simDisk().mount()
  const first = await start(disk)
  await refuses(open(disk), 'DATA_DIR_IN_USE', /in use/)
  await first.close()
  await (await start(disk)).close()
})

test('a start that fails gives the lock back', async () => {
  const disk = simDisk().mount()
  await (await start(disk)).close()
  await disk.remove('wal')
  await refuses(open(disk), 'DATA_DIR_MISMATCH', /wal/)
  await refuses(open(disk), 'DATA_DIR_MISMATCH', /wal/)
})

for (const part of ['journal', 'wal', 'node.json']) {
  test(`a directory whose ${part} was taken away is refused`, async () => {
    const disk = simDisk().mount()
    await (await start(disk)).close()
    await disk.remove(part)
    await refuses(open(disk), 'DATA_DIR_MISMATCH', new RegExp(`${part}.* missing`))
  })
}

for (const part of ['journal', 'wal']) {
  test(`a ${part} restored from an earlier start, or of another node, is refused`, async () => {
    const disk = simDisk().mount()
    await (await start(disk)).close()
    await copyDir(disk, part, 'backup')
    await (await start(disk)).close()
    await copyDir(disk, 'backup', part)
    await refuses(open(disk), 'DATA_DIR_MISMATCH', new RegExp(`${part}/ is of start 1, behind`))

    const other = simDisk().mount()
    await (await start(other)).close()
    const files = await other.list(part)
    await disk.remove(part)
    await disk.makeDir(part)
    for (const { name } of files) {
      const file = await disk.open(`${part}/${name}`, { mode: 'create' })
      await file.write([await readWhole(other, `${part}/${name}`)], 0)
      await file.close()
    }
    await refuses(open(disk), 'DATA_DIR_MISMATCH', new RegExp(`${part}/ belongs to node`))
  })
}

test('a node.json restored from an earlier start is refused', async () => {
  const disk = simDisk().mount()
  await (await start(disk)).close()
  await copyFile(disk, 'node.json', 'backup')
  await (await start(disk)).close()
  await copyFile(disk, 'backup', 'node.json')
  await refuses(open(disk), 'DATA_DIR_MISMATCH', /node.json restored/)
})

test('a newer format and a damaged node.json are told apart', async () => {
  const disk = simDisk().mount()
  await (await start(disk)).close()
  const text = fromUtf8(await readWhole(disk, 'node.json'))
  const write = async (content: string): Promise<void> => {
    const file = await disk.open('node.json', { mode: 'write' })
    await file.truncate(0)
    await file.write([utf8(content)], 0)
    await file.close()
  }
  await write(text.replace('"format": 2', '"format": 3'))
  await refuses(open(disk), 'DATA_DIR_NEWER', /format 3/)
  await write(text.replace('"format": 2', '"format": 1'))
  await refuses(open(disk), 'DATA_DIR_UNUSABLE', /format 1/)
  await write(text.replace('east-1', 'east-2'))
  await refuses(open(disk), 'DATA_DIR_UNUSABLE', /checksum/)
  await write(text.slice(0, 20))
  await refuses(open(disk), 'DATA_DIR_UNUSABLE', /not JSON/)
  await write('null')
  await refuses(open(disk), 'DATA_DIR_UNUSABLE', /not an object/)
  await write(text)
  await (await start(disk)).close()
})

test('a disk that cannot be written is named as what is unusable', async () => {
  const disk = simDisk().mount()
  for (const fault of ['read-only', 'denied'] as const) {
    const broken: Disk = Object.assign(Object.create(disk) as Disk, {
      lock: () => Promise.reject(new DiskError(fault, 'lock', `cannot open lock: ${fault}`)),
    })
    await refuses(open(broken), 'DATA_DIR_UNUSABLE', new RegExp(fault))
  }
})

test('a start that crashes at any operation, again and again, never bricks the directory', async () => {
  for (let round = 1; round <= 120; round++) {
    const sim = simDisk({ seed: round })
    const chance = prng(round)
    let nodeId: string | undefined
    let boots = 0
    for (let boot = 0; boot < 6; boot++) {
      const keepUnsynced = [true, false, 'some' as const][chance.below(3)] as Crash['keepUnsynced']
      const at = sim.operations + 1 + chance.below(90)
      const dir = await untilCrash(sim, at, { keepUnsynced }, () => start(sim.mount()))
      if (dir === undefined) continue
      // Once a start was confirmed, the identity is known outside and may not change, nor a boot count come twice.
      assert.equal(dir.nodeId, nodeId ?? dir.nodeId)
      assert.ok(dir.bootCount > boots)
      nodeId = dir.nodeId
      boots = dir.bootCount
    }
    const last = await start(sim.mount())
    assert.equal(last.nodeId, nodeId ?? last.nodeId)
    assert.ok(last.bootCount > boots)
  }
})

test('the same crash at each operation of one start in turn leaves a directory that starts', async () => {
  for (let operation = 1; ; operation++) {
    const sim = simDisk({ seed: operation })
    await (await start(sim.mount())).close()
    sim.crash({ keepUnsynced: 'some' })
    const at = sim.operations + operation
    const ended = await untilCrash(sim, at, { keepUnsynced: 'some' }, () => start(sim.mount()))
    if (ended !== undefined) return
    const dir = await start(sim.mount())
    assert.ok(dir.bootCount >= 2)
  }
})
