import assert from 'node:assert/strict'
import { test } from 'node:test'
import { fromUtf8, utf8 } from '../../../src/base/bytes.ts'
import { EastGuardError } from '../../../src/base/errors.ts'
import { type Prng, prng } from '../../../src/base/prng.ts'
import type { Disk } from '../../../src/ports/disk.ts'
import { type Crash, simDisk } from '../../../src/sim/ports/disk.ts'
import { readWhole } from '../../../src/storage/checked-file.ts'
import { type Journal, openJournal } from '../../../src/storage/journal/journal.ts'
import { keptLog, manualClock, seededRandom } from '../support/ports.ts'
import { untilCrash } from '../support/until-crash.ts'

const FILE_BYTES = 32 * 1024
const SHARDS = 3

function open(disk: Disk, boot: number, mayHoldNothing: boolean = false): Promise<Journal> {
  return openJournal({
    disk,
    clock: manualClock(),
    random: seededRandom(boot),
    log: keptLog(),
    fileBytes: FILE_BYTES,
    mayHoldNothing,
    identity: { nodeIdBytes: new Uint8Array(16).fill(3), bootCount: boot },
    onFailed: (error) => {
      throw error
    },
  })
}

/** What a shard has come to: the numbers of its records, whether by snapshot or one by one. */
function contents(journal: Journal, shard: number): number[] {
  const found = journal.recovered.get(shard)
  const snapshot = found?.snapshot === undefined ? [] : numbers(fromUtf8(found.snapshot))
  const records = found?.records ?? []
  return [...snapshot, ...records.map((record) => numbers(fromUtf8(record.bytes))[0] as number)]
}

function numbers(text: string): number[] {
  return text
    .split(',')
    .filter((part) => part.trim() !== '')
    .map(Number)
}

/** Record `number` as bytes; long ones make files rotate. */
function record(number: number, chance: Prng): Uint8Array {
  return utf8(`${number},${' '.repeat(chance.below(3000))}`)
}

/** What the test knows: record number i of the journal went to shard `shards[i]`; the first `acked` were synced. */
interface Truth {
  readonly shards: number[]
  acked: number
}

/** Appends, syncs and takes snapshots; `truth` follows it, also when it never comes to its end. */
async function work(journal: Journal, truth: Truth, chance: Prng, steps: number): Promise<void> {
  const durable = Array.from({ length: SHARDS }, () => 0)
  for (let i = 0; i < steps; i++) {
    for (let n = chance.below(6); n >= 0; n--) {
      const shard = chance.below(SHARDS)
      const position = journal.append(shard, record(truth.shards.length, chance))
      truth.shards.push(shard)
      durable[shard] = position + 1
    }
    const count = truth.shards.length
    await journal.sync()
    truth.acked = count
    if (chance.below(3) === 0) {
      const shard = chance.below(SHARDS)
      const position = durable[shard] as number
      if (position > 0) await journal.saveSnapshot(shard, stateOf(truth, shard), position)
    }
  }
}

function stateOf(truth: Truth, shard: number): Uint8Array {
  const mine = truth.shards.flatMap((one, number) => (one === shard ? [number] : []))
  return utf8(mine.join(','))
}

/** Compares what a journal recovered with the truth, and makes it the truth. */
function compare(journal: Journal, truth: Truth): void {
  const found = new Map<number, number>()
  for (let shard = 0; shard < SHARDS; shard++) {
    let last = -1
    for (const number of contents(journal, shard)) {
      assert.ok(number > last, 'in order, each once')
      last = number
      found.set(number, shard)
    }
  }
  assert.ok(found.size >= truth.acked, `${found.size} of ${truth.acked} acknowledged are there`)
  for (let number = 0; number < found.size; number++) {
    assert.equal(found.get(number), truth.shards[number], `record ${number}, of a prefix`)
  }
  truth.shards.length = found.size
  truth.acked = found.size
}

test('records and snapshots come back, each shard its own, over many starts', async () => {
  const sim = simDisk({ seed: 1 })
  const truth: Truth = { shards: [], acked: 0 }
  const chance = prng(1)
  for (let boot = 1; boot <= 6; boot++) {
    const journal = await open(sim.mount(), boot)
    compare(journal, truth)
    await work(journal, truth, chance, 20)
    await journal.close()
    sim.crash({ keepUnsynced: false })
  }
})

test('snapshots free the log: it takes a bounded number of files', async () => {
  const sim = simDisk({ seed: 2 })
  const journal = await open(sim.mount(), 1)
  const chance = prng(2)
  const last = [0, 0]
  for (let i = 0; i < 600; i++) {
    last[i % 2] = journal.append(i % 2, record(i, chance))
    await journal.sync()
    if (i % 20 === 0) {
      for (const shard of [0, 1]) {
        await journal.saveSnapshot(shard, utf8(''), (last[shard] as number) + 1)
      }
    }
    assert.ok(journal.filesInUse <= 4, `${journal.filesInUse} files at ${i}`)
  }
  assert.ok(journal.bytesSinceSnapshot(0) < 100_000)
  await journal.close()
})

for (const keepUnsynced of [true, false, 'some'] as const) {
  test(`whatever operation it crashes at (unsynced kept: ${keepUnsynced}), what was synced comes back and nothing else`, async () => {
    for (let operation = 1; ; operation += 1 + (operation % 3)) {
      const sim = simDisk({ seed: operation })
      const truth: Truth = { shards: [], acked: 0 }
      const chance = prng(5)
      const ended = await untilCrash(sim, operation, { keepUnsynced }, async () => {
        const journal = await open(sim.mount(), 1)
        await work(journal, truth, chance, 12)
        await journal.close()
        return true
      })
      if (ended === true) return
      compare(await open(sim.mount(), 2), truth)
    }
  })
}

test('a recovery that crashes is repeated and finds the same, and what it makes is not lost later', async () => {
  for (let seed = 1; seed <= 150; seed++) {
    const sim = simDisk({ seed })
    const truth: Truth = { shards: [], acked: 0 }
    const chance = prng(seed)
    for (let boot = 1; boot <= 8; boot++) {
      const at = sim.operations + 1 + chance.below(chance.below(2) === 0 ? 30 : 200)
      const keepUnsynced = [true, false, 'some' as const][chance.below(3)] as Crash['keepUnsynced']
      await untilCrash(sim, at, { keepUnsynced }, async () => {
        const journal = await open(sim.mount(), boot)
        compare(journal, truth)
        await work(journal, truth, chance, 6)
        await journal.close()
      })
    }
    compare(await open(sim.mount(), 9), truth)
  }
})

test('damage is reported, never skipped: in a snapshot, in what was carried, in the log', async () => {
  const sim = simDisk({ seed: 4 })
  const disk = sim.mount()
  const chance = prng(4)
  const first = await open(disk, 1)
  await work(first, { shards: [], acked: 0 }, chance, 8)
  await first.close()
  await (await open(disk, 2)).close()
  const names = (await disk.list('journal')).map((entry) => entry.name)
  const victims = names.filter((name) => name.endsWith('.snapshot') || name === 'carried')
  assert.ok(victims.includes('carried') && victims.length >= 2)
  for (const name of victims) {
    const path = `journal/${name}`
    const good = (await readWhole(disk, path)).slice()
    const file = await disk.open(path, { mode: 'write' })
    await file.write([Uint8Array.of((good.at(-1) as number) ^ 1)], good.length - 1)
    await assert.rejects(open(disk, 3), isDamage, name)
    await file.write([good], 0)
    await file.close()
  }
  const third = await open(disk, 3)
  for (let i = 0; i < 10; i++) {
    third.append(0, utf8(`${i},`))
    await third.sync()
  }
  await third.close()
  const log = (await disk.list('journal'))
    .map((entry) => entry.name)
    .filter((n) => n.endsWith('.wal'))
  await spoil(disk, log)
  await assert.rejects(open(disk, 4), isDamage)
})

/** Flips a bit of the first record behind the header in the file that has any. */
async function spoil(disk: Disk, names: readonly string[]): Promise<void> {
  for (const name of names) {
    const path = `journal/${name}`
    const bytes = await readWhole(disk, path)
    const at = bytes.indexOf(0x39, 8192)
    if (at < 0 || !fromLatin(bytes.subarray(at, at + 2)).startsWith('9,')) continue
    const first = bytes.subarray(8192, at).lastIndexOf(0x33)
    const file = await disk.open(path, { mode: 'write' })
    await file.write([Uint8Array.of((bytes[8192 + first] as number) ^ 0x10)], 8192 + first)
    await file.close()
  }
}

function fromLatin(bytes: Uint8Array): string {
  return String.fromCharCode(...bytes)
}

function isDamage(error: unknown): boolean {
  return error instanceof EastGuardError && error.code === 'DAMAGED'
}

test('topics without metadata are damage, unless other brokers may keep it', async () => {
  const disk = simDisk().mount()
  await disk.makeDir('topics/orders-0123456789abcdef0123456789abcdef')
  await assert.rejects(open(disk, 1), /holds nothing, but topics\/ holds 1/)
  const journal = await open(disk, 2, true)
  assert.equal(journal.recovered.size, 0)
  await journal.close()
})
