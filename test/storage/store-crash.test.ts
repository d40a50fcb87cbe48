// The whole log engine on a disk that dies at any operation. Beside it the truth: what was appended, how far the engine said
// it was durable, what was sealed and what was dropped. Whatever is found after a crash must agree with it.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { EastGuardError } from '../../src/base/errors.ts'
import { type Prng, prng } from '../../src/base/prng.ts'
import { placeBatch } from '../../src/model/batch/header.ts'
import type { Entry } from '../../src/model/entry.ts'
import { type TopicId, topicId } from '../../src/model/ids.ts'
import { keyText, type SegmentKey } from '../../src/model/segment-key.ts'
import { DiskError } from '../../src/ports/disk.ts'
import { type Crash, type SimDisk, simDisk } from '../../src/sim/ports/disk.ts'
import { openLogStore } from '../../src/storage/log-store.ts'
import type { LogStore, SegmentLog } from '../../src/storage/types.ts'
import { batchOf, plain, scanAll } from './segment/rig.ts'
import { keptLog, type ManualClock, manualClock, seededRandom } from './support/ports.ts'
import { shuffled } from './support/shuffled.ts'
import { CUT, KILL, settleWhileAlive, untilCrash } from './support/until-crash.ts'

const KEPT = topicId('11'.repeat(16))
const OTHER = topicId('22'.repeat(16))
const DOOMED = topicId('33'.repeat(16))

interface TrueSegment {
  readonly key: SegmentKey
  entries: Entry[]
  durable: number
  /** Entries at or above it are gone for good. */
  sealedAt?: number
  readonly nextOffset: Map<number, number>
}

class World {
  readonly disk: SimDisk
  /** Of the process that runs: with a process its timers die. */
  clock: ManualClock = manualClock()
  readonly topics = new Map<TopicId, string>([
    [KEPT, 'kept'],
    [OTHER, 'other'],
    [DOOMED, 'doomed'],
  ])
  readonly segments = new Map<string, TrueSegment>()
  readonly failures: Error[] = []
  boots = 0
  /** What a broker does when its disk has failed: it ends. */
  failed: () => void = () => undefined
  /** Of the process that runs. */
  private settle: () => Promise<void> = async () => undefined

  constructor(seed: number) {
    // With an even seed operations end in any order.
    this.disk = simDisk({ seed, ...(seed % 2 === 0 ? { later: shuffled(seed) } : {}) })
  }

  open(): Promise<LogStore> {
    this.boots++
    this.clock = manualClock()
    this.settle = settleWhileAlive(this.disk)
    return openLogStore({
      disk: this.disk.mount(),
      clock: this.clock,
      random: seededRandom(this.boots * 104_729),
      log: keptLog(),
      identity: { nodeIdBytes: new Uint8Array(16).fill(1), bootCount: this.boots },
      catalog: {
        topicName: (id) => this.topics.get(id),
        segments: () => this.metadata(),
      },
      options: {
        walFileBytes: 64 * 1024,
        cacheBytes: 256 * 1024,
        unflushedBytesMax: 128 * 1024,
        blockBytes: 8 * 1024,
        flushAgeMs: 50,
        walFilesMax: 3,
        reserveBytes: 0,
      },
      listener: {
        roomAgain: () => {},
        failed: (error) => {
          this.failures.push(error)
          this.failed()
        },
      },
    })
  }

  private metadata(): { key: SegmentKey; endEntry?: number }[] {
    const live = [...this.segments.values()].filter(({ key }) => this.topics.has(key.topicId))
    return live.map(({ key, sealedAt }) =>
      sealedAt === undefined ? { key } : { key, endEntry: sealedAt },
    )
  }

  create(store: LogStore, id: TopicId): { log: SegmentLog; truth: TrueSegment } {
    const key = { topicId: id, range: 0, segment: this.boots }
    const truth: TrueSegment = { key, entries: [], durable: 0, nextOffset: new Map() }
    this.segments.set(keyText(key), truth)
    const log = store.create(key, {
      durable(segment) {
        truth.durable = Math.max(truth.durable, segment.durableEnd)
        if (truth.sealedAt === undefined) segment.advance(segment.durableEnd)
      },
    })
    return { log, truth }
  }

  append({ log, truth }: { log: SegmentLog; truth: TrueSegment }, chance: Prng): void {
    const partition = chance.below(4)
    const baseOffset = truth.nextOffset.get(partition) ?? 0
    const batch = batchOf(
      70 + chance.below(chance.below(5) === 0 ? 9000 : 400),
      1,
      0,
      chance.below(256),
    )
    placeBatch(batch, baseOffset, truth.key.segment)
    truth.nextOffset.set(partition, baseOffset + 1)
    const spot = { entryNumber: log.end, partition, baseOffset, recordCount: 1, logTimeMs: 0 }
    const rest = { highWatermark: log.highWatermark, leastKeyHash: 0, greatestKeyHash: 0xffffffff }
    const entry = { ...spot, ...rest, batch }
    truth.entries.push(entry)
    log.append(entry)
  }

  /** Opens the store and compares it with the truth, which then is what was found. */
  async reopen(note: string): Promise<LogStore> {
    const store = await this.open()
    for (const key of store.keys()) {
      if (!this.topics.has(key.topicId)) await store.dropTopic(key.topicId)
    }
    for (const key of store.keys()) assert.ok(this.segments.has(keyText(key)), `${note}: known`)
    for (const truth of this.segments.values()) await this.compare(store, truth, note)
    const doomed = this.topics.has(DOOMED)
      ? []
      : this.disk.paths().filter((p) => p.includes(DOOMED))
    assert.deepEqual(doomed, [], `${note}: the dropped topic is gone`)
    return store
  }

  private async compare(store: LogStore, truth: TrueSegment, note: string): Promise<void> {
    const at = `${note}, ${keyText(truth.key)}`
    const segment = store.find(truth.key)
    if (!this.topics.has(truth.key.topicId)) {
      assert.equal(segment, undefined, `${at}: not resurrected`)
      return
    }
    const end = segment?.end ?? 0
    assert.equal(segment?.damage, undefined, `${at}: a crash is no damage`)
    assert.ok(end >= truth.durable, `${at}: ${end} of ${truth.durable} durable entries`)
    assert.ok(end <= (truth.sealedAt ?? truth.entries.length), `${at}: nothing that was cut`)
    if (segment !== undefined) {
      const expected = truth.entries.slice(0, end)
      assert.deepEqual(plain(await scanAll(segment)), plain(expected), at)
      // Fenced with one replica: all that was recovered is below the high watermark.
      segment.advance(end)
      for (let partition = 0; partition < 4; partition++) {
        const read: readonly Entry[] = await segment.read(partition, 0, 1 << 30)
        assert.deepEqual(plain(read), plain(expected.filter((e) => e.partition === partition)), at)
      }
    }
    truth.entries = truth.entries.slice(0, end)
    truth.durable = end
  }

  async work(store: LogStore, chance: Prng): Promise<void> {
    const kept = this.create(store, KEPT)
    const other = this.create(store, OTHER)
    const doomed = this.topics.has(DOOMED) ? this.create(store, DOOMED) : undefined
    const open = doomed === undefined ? [kept, other] : [kept, other, doomed]
    for (let step = 0; step < 25; step++) {
      for (let i = chance.below(8); i >= 0; i--) {
        this.append(open[chance.below(open.length)] ?? kept, chance)
      }
      store.commit()
      if (chance.below(2) === 0) await this.settle()
      if (chance.below(4) === 0) this.clock.advance(60)
      if (step === 12) await this.seal(store, other, chance, open)
      if (step === 18 && doomed !== undefined) {
        open.splice(open.indexOf(doomed), 1)
        this.topics.delete(DOOMED)
        await store.dropTopic(DOOMED)
      }
    }
    await store.close()
  }

  /** Seals below entries that are still on their way: they are dropped. */
  private async seal(
    store: LogStore,
    segment: { log: SegmentLog; truth: TrueSegment },
    chance: Prng,
    open: unknown[],
  ): Promise<void> {
    await this.settle()
    const end = segment.log.highWatermark
    for (let i = 0; i < 3; i++) this.append(segment, chance)
    store.commit()
    open.splice(open.indexOf(segment), 1)
    const { truth } = segment
    // Entries at or above the seal may go, durable or not, from the moment that it is asked for.
    truth.durable = end
    await segment.log.seal(end)
    truth.sealedAt = end
    truth.durable = end
  }
}

/** True when it came to its end; the disk has crashed either way, by kill or power cut. */
async function live(world: World, work: number, at: number, chance: Prng): Promise<boolean> {
  // A kill may be followed by a power cut before anything was synced again.
  const crash = chance.below(3) === 0 ? KILL : CUT
  const ended = await untilCrash(world.disk, at, crash, async () => {
    await world.work(await world.reopen(`crash at ${at}`), prng(work))
    return true
  })
  return ended === true
}

test('a crash at every operation, in recovery again and again, loses nothing that was durable and brings nothing back', async () => {
  for (let at = 1; ; at++) {
    const chance = prng(at)
    const world = new World(at)
    if (await live(world, 5, at, chance)) break
    for (let again = 0; again < 2; again++) {
      await live(world, 6 + again, world.disk.operations + 1 + chance.below(60), chance)
    }
    await (await world.reopen(`operation ${at}, end`)).close()
  }
})

test('many lives that end anywhere, each with other work, add up to one history', async () => {
  for (let seed = 1; seed <= 60; seed++) {
    const chance = prng(seed)
    const world = new World(seed)
    for (let life = 0; life < 6; life++) {
      const at = world.disk.operations + 1 + chance.below(life % 2 === 0 ? 400 : 90)
      await live(world, seed * 100 + life, at, chance)
    }
    await (await world.reopen(`seed ${seed}, end`)).close()
  }
})

/** A life on a disk that fails: it ends by that, as a broker ends, or by a crash, or well. */
function ailing(world: World, work: number, at: number, crash: Crash): Promise<void> {
  const { disk } = world
  return new Promise((resolve, reject) => {
    const { crashes } = disk
    const end = (how: Crash): void => {
      if (disk.crashes !== crashes) return
      disk.before = undefined
      disk.crash(how)
      resolve()
    }
    world.failed = () => end(KILL)
    disk.before = ({ number }) => {
      if (number === at) end(crash)
    }
    const life = async (): Promise<void> =>
      world.work(await world.reopen(`until ${at}`), prng(work))
    life().then(
      () => end(KILL),
      (error: unknown) => {
        if (error instanceof DiskError || error instanceof EastGuardError) end(KILL)
        else reject(error as Error)
      },
    )
  })
}

test('what a sync that failed has left readable is not taken for durable by the process after it', async () => {
  for (let seed = 1; seed <= 60; seed++) {
    const chance = prng(seed)
    const world = new World(seed)
    for (let life = 0; life < 6; life++) {
      world.disk.faults = { sync: chance.float() * 0.1, write: chance.float() * 0.03 }
      const at = world.disk.operations + 1 + chance.below(life % 2 === 0 ? 400 : 90)
      await ailing(world, seed * 100 + life, at, chance.below(2) === 0 ? KILL : CUT)
    }
    world.disk.faults = {}
    world.failed = () => undefined
    world.disk.crash(CUT)
    await (await world.reopen(`seed ${seed}, end`)).close()
  }
})

test('the WAL stays within its files while segments are idle, sealed or dropped', async () => {
  const world = new World(1)
  for (let boot = 0; boot < 4; boot++) {
    await world.work(await world.reopen(`boot ${boot}`), prng(boot))
    const files = world.disk.paths().filter((path) => path.startsWith('wal/'))
    assert.ok(files.length <= 8, files.join(' '))
  }
  assert.deepEqual(world.failures, [])
})
