import assert from 'node:assert/strict'
import { test } from 'node:test'
import { fromUtf8, utf8 } from '../../../src/base/bytes.ts'
import { EastGuardError, type ErrorCode } from '../../../src/base/errors.ts'
import { prng } from '../../../src/base/prng.ts'
import { clusterId, type NodeId, nodeId } from '../../../src/model/ids.ts'
import {
  inPast,
  newestStart,
  STARTS_MAX,
  type Start,
  type Starts,
} from '../../../src/model/starts.ts'
import { type Disk, DiskError } from '../../../src/ports/disk.ts'
import { type Crash, simDisk } from '../../../src/sim/ports/disk.ts'
import { readWhole } from '../../../src/storage/checked-file.ts'
import { type DataDir, lockDataDir, openDataDir } from '../../../src/storage/datadir/data-dir.ts'
import { beginRecordLog } from '../../../src/storage/wal/record-log.ts'
import { recoverLog } from '../../../src/storage/wal/recover.ts'
import { keptLog, manualClock, seededRandom } from '../support/ports.ts'
import { untilCrash } from '../support/until-crash.ts'

let seed = 1
const CLUSTER = { id: clusterId('c1'.repeat(16)), foundedMs: 5, shards: 8, founder: true }

function open(disk: Disk): Promise<DataDir> {
  return openDataDir({
    disk,
    random: seededRandom(seed++),
    displayName: 'east-1',
    journalDir: 'journal',
    walDir: 'wal',
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
  assert.equal(first.cluster, undefined)
  await first.joined(CLUSTER)
  assert.deepEqual(first.cluster, CLUSTER)
  await first.close()
  const second = await start(disk)
  assert.ok(!second.fresh)
  assert.equal(second.bootCount, 2)
  assert.deepEqual([second.nodeId, second.cluster], [first.nodeId, CLUSTER])
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
  await write(text.replace('"format": 4', '"format": 5'))
  await refuses(open(disk), 'DATA_DIR_NEWER', /format 5/)
  await write(text.replace('"format": 4', '"format": 3'))
  await refuses(open(disk), 'DATA_DIR_UNUSABLE', /format 3/)
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

const peer = (number: number): NodeId => nodeId(number.toString(16).padStart(32, '0'))
const startOf = (bootCount: number, id: number = bootCount): Start => ({
  bootCount,
  id: id.toString(16).padStart(16, '0'),
})

test('each start has an id of its own, and the last ones are kept', async () => {
  const disk = simDisk().mount()
  const ids: string[] = []
  for (let boot = 1; boot <= STARTS_MAX + 3; boot++) {
    const dir = await start(disk)
    const newest = newestStart(dir.starts)
    assert.equal(newest.bootCount, boot)
    assert.match(newest.id, /^[0-9a-f]{16}$/)
    ids.push(newest.id)
    assert.deepEqual(
      dir.starts.map(({ id }) => id),
      ids.slice(-STARTS_MAX),
    )
    assert.deepEqual(
      dir.starts.map(({ bootCount }) => bootCount),
      Array.from({ length: dir.starts.length }, (_, i) => boot - dir.starts.length + 1 + i),
    )
    await dir.close()
  }
  assert.equal(new Set(ids).size, ids.length)
})

test('the newest start of each node that was met is remembered over restarts', async () => {
  const disk = simDisk().mount()
  const first = await start(disk)
  assert.equal(first.met(peer(1)), undefined)
  await first.remember(peer(1), startOf(5))
  await first.remember(peer(2), startOf(9))
  await first.remember(peer(1), startOf(7))
  await first.remember(peer(1), startOf(6))
  assert.deepEqual(first.met(peer(1)), startOf(7))
  await first.close()
  const second = await start(disk)
  assert.deepEqual(second.met(peer(1)), startOf(7))
  assert.deepEqual(second.met(peer(2)), startOf(9))
  assert.equal(second.met(peer(3)), undefined)
  await second.close()
})

test('only news is written, and what came while a write was under way goes with the next', async () => {
  const sim = simDisk({ trace: true })
  const dir = await start(sim.mount())
  const writes = (): number => sim.trace.filter(({ kind }) => kind === 'rename').length
  sim.forgetTrace()
  await Promise.all(Array.from({ length: 50 }, (_, i) => dir.remember(peer(i), startOf(1))))
  assert.ok(writes() <= 2, `${writes()} writes`)
  sim.forgetTrace()
  await Promise.all(Array.from({ length: 50 }, (_, i) => dir.remember(peer(i), startOf(1))))
  assert.equal(writes(), 0)
})

test('writes of node.json that are asked for at once do not overtake one another', async () => {
  for (let round = 1; round <= 30; round++) {
    const sim = simDisk({ seed: round })
    const dir = await start(sim.mount())
    const chance = prng(round)
    const asked: Promise<void>[] = []
    for (let i = 1; i <= 20; i++) {
      asked.push(i === 10 ? dir.confirm('wal') : dir.remember(peer(chance.below(5)), startOf(i)))
      for (let turns = chance.below(8); turns > 0; turns--) await Promise.resolve()
    }
    const closed = dir.close()
    await Promise.all(asked)
    await closed
    const again = await start(sim.mount())
    for (let i = 0; i < 5; i++) assert.deepEqual(again.met(peer(i)), dir.met(peer(i)))
  }
})

test('those that were met longest ago are forgotten when there are too many', async () => {
  const disk = simDisk().mount()
  const dir = await start(disk)
  const all = Array.from({ length: 4097 }, (_, i) => peer(i))
  const early = all.slice(0, 4095).map((node) => dir.remember(node, startOf(1)))
  // Met again, though it is no news.
  early.push(dir.remember(peer(0), startOf(1)))
  await Promise.all([...early, ...all.slice(4095).map((node) => dir.remember(node, startOf(1)))])
  await dir.close()
  const again = await start(disk)
  assert.deepEqual(again.met(peer(0)), startOf(1))
  assert.equal(again.met(peer(1)), undefined)
  assert.deepEqual(again.met(peer(2)), startOf(1))
  await again.close()
})

test('a start that could not be kept is not taken for kept when it is met again', async () => {
  const sim = simDisk()
  const dir = await start(sim.mount())
  sim.fail({ operation: 'write', path: 'node.json', fault: 'full' })
  await assert.rejects(dir.remember(peer(1), startOf(5)), DiskError)
  await dir.remember(peer(1), startOf(5))
  sim.crash({ keepUnsynced: false })
  const again = await start(sim.mount())
  assert.deepEqual(again.met(peer(1)), startOf(5))
})

test('a directory that was refused as an older copy does not start again, and says why', async () => {
  const disk = simDisk().mount()
  const dir = await start(disk)
  await dir.refuse(peer(1))
  await dir.close()
  const before = fromUtf8(await readWhole(disk, 'node.json'))
  for (let i = 0; i < 2; i++) {
    await refuses(open(disk), 'DATA_DIR_MISMATCH', new RegExp(`older copy of node ${dir.nodeId}`))
  }
  const looked = lockDataDir({
    disk,
    random: seededRandom(seed++),
    displayName: 'east-1',
    journalDir: 'journal',
    walDir: 'wal',
  })
  await refuses(looked, 'DATA_DIR_MISMATCH', /older copy/)
  assert.equal(fromUtf8(await readWhole(disk, 'node.json')), before)
})

test('a crash at each operation of a start and of what it remembers loses nothing that was kept, and bricks nothing', async () => {
  for (let operation = 1; ; operation++) {
    const sim = simDisk({ seed: operation })
    const first = await start(sim.mount())
    await first.remember(peer(1), startOf(3))
    const before = first.starts
    sim.crash({ keepUnsynced: 'some' })
    const kept = new Map([[peer(1), startOf(3)]])
    let told: Starts | undefined
    const at = sim.operations + operation
    const ended = await untilCrash(sim, at, { keepUnsynced: 'some' }, async () => {
      const dir = await start(sim.mount())
      told = dir.starts
      const remember = async (node: NodeId, one: Start): Promise<void> => {
        await dir.remember(node, one)
        kept.set(node, one)
      }
      await remember(peer(2), startOf(1))
      await Promise.all([remember(peer(1), startOf(4)), remember(peer(3), startOf(8))])
      return dir
    })
    if (ended === undefined) {
      const dir = await start(sim.mount())
      for (const [node, one] of kept) {
        const met = dir.met(node)
        assert.ok(met !== undefined && met.bootCount >= one.bootCount, `operation ${operation}`)
      }
      // What a peer can have met is in the past.
      for (const one of [...before, ...(told ?? [])]) assert.ok(inPast(one, dir.starts))
      continue
    }
    sim.crash({ keepUnsynced: 'some' })
    const dir = await start(sim.mount())
    assert.deepEqual(
      [1, 2, 3].map((one) => dir.met(peer(one))?.bootCount),
      [4, 1, 8],
    )
    return
  }
})

test('a crash at each operation of being refused leaves a directory that starts, or one that says that it was', async () => {
  for (let operation = 1; ; operation++) {
    const sim = simDisk({ seed: operation })
    await (await start(sim.mount())).close()
    const dir = await start(sim.mount())
    const at = sim.operations + operation
    const crash = { keepUnsynced: 'some' } as const
    const ended = await untilCrash(sim, at, crash, () => dir.refuse(peer(1)).then(() => true))
    if (ended === true) {
      sim.crash(crash)
      await refuses(open(sim.mount()), 'DATA_DIR_MISMATCH', /older copy/)
      return
    }
    try {
      assert.equal((await start(sim.mount())).bootCount, 3)
    } catch (error) {
      assert.match((error as Error).message, /older copy/)
    }
  }
})
