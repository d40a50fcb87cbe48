// A log store that is one replica of several, on a disk that dies at any operation. What it told others must hold after the
// crash: entries that it acknowledged, the answer to a fence, copies, what was staged. And what is missing of a sealed segment
// is copied, never damage, however often the copying is cut short.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type Prng, prng } from '../../src/base/prng.ts'
import { placeBatch } from '../../src/model/batch/header.ts'
import type { Entry } from '../../src/model/entry.ts'
import { topicId } from '../../src/model/ids.ts'
import { keyText, type SegmentKey } from '../../src/model/segment-key.ts'
import { type SimDisk, simDisk } from '../../src/sim/ports/disk.ts'
import { openLogStore } from '../../src/storage/log-store.ts'
import type { LogStore, SegmentLog } from '../../src/storage/types.ts'
import { batchOf, plain, scanAll } from './segment/rig.ts'
import { keptLog, type ManualClock, manualClock, seededRandom } from './support/ports.ts'
import { shuffled } from './support/shuffled.ts'
import { CUT, KILL, settleWhileAlive, untilCrash } from './support/until-crash.ts'

const TOPIC = topicId('44'.repeat(16))
const SEGMENTS = 6
const TOKENS = ['a'.repeat(32), 'b'.repeat(32)] as const

/** What all replicas together have of a segment, and what this one has promised of it. */
interface TrueSegment {
  readonly key: SegmentKey
  readonly entries: readonly Entry[]
  /** As the metadata says it. */
  endEntry: number | undefined
  /** So many must be here, whatever happens. */
  promised: number
  /** More cannot be here: never received, or cut off by the seal. */
  most: number
  given: boolean
}

/** The entries that a leader would have appended, with the high watermark that it knew at each. */
function entriesOf(key: SegmentKey, chance: Prng): readonly Entry[] {
  const next = [0, 0, 0]
  let highWatermark = 0
  return Array.from({ length: 10 + chance.below(40) }, (_, entryNumber) => {
    const partition = chance.below(3)
    const baseOffset = next[partition] as number
    next[partition] = baseOffset + 1
    const batch = batchOf(70 + chance.below(900), 1, 0, chance.below(256))
    placeBatch(batch, baseOffset, key.segment)
    if (chance.below(3) === 0) highWatermark += chance.below(entryNumber - highWatermark + 1)
    const rest = { recordCount: 1, logTimeMs: 0, leastKeyHash: 0, greatestKeyHash: 0xffffffff }
    return { entryNumber, partition, baseOffset, highWatermark, batch, ...rest }
  })
}

class Replica {
  readonly disk: SimDisk
  readonly segments: TrueSegment[] = []
  /** `<segment>.<token>` of what was staged and confirmed, and not dropped since. */
  readonly states = new Set<string>()
  readonly tails = new Set<string>()
  clock: ManualClock = manualClock()
  boots = 0
  private readonly digests = new Map<number, string>()
  private settle: () => Promise<void> = async () => undefined

  constructor(seed: number) {
    this.disk = simDisk({ seed, ...(seed % 2 === 0 ? { later: shuffled(seed) } : {}) })
    const chance = prng(seed)
    for (let segment = 1; segment <= SEGMENTS; segment++) {
      const key = { topicId: TOPIC, range: 0, segment }
      const entries = entriesOf(key, chance)
      const fresh = { endEntry: undefined, promised: 0, most: 0, given: false }
      this.segments.push({ key, entries, ...fresh })
    }
  }

  open(): Promise<LogStore> {
    this.boots++
    this.clock = manualClock()
    this.settle = settleWhileAlive(this.disk)
    return openLogStore({
      disk: this.disk.mount(),
      clock: this.clock,
      random: seededRandom(this.boots * 7919),
      log: keptLog(),
      identity: { nodeIdBytes: new Uint8Array(16).fill(2), bootCount: this.boots },
      catalog: {
        topicName: () => 'replicated',
        segments: () =>
          this.segments
            .filter(({ given }) => given)
            .map(({ key, endEntry }) =>
              endEntry === undefined
                ? { key, elsewhere: true }
                : { key, endEntry, elsewhere: true },
            ),
      },
      options: {
        walFileBytes: 32 * 1024,
        cacheBytes: 96 * 1024,
        unflushedBytesMax: 64 * 1024,
        blockBytes: 4 * 1024,
        flushAgeMs: 50,
        walFilesMax: 2,
        reserveBytes: 0,
      },
      listener: { roomAgain: () => {}, failed: (error) => assert.fail(error) },
    })
  }

  /** Opens the store, compares it with what was promised, and does what a starting broker does. */
  async reopen(note: string): Promise<LogStore> {
    const store = await this.open()
    for (const truth of this.segments) if (truth.given) await this.compare(store, truth, note)
    await this.compareStaged(store, note)
    return store
  }

  private async compare(store: LogStore, truth: TrueSegment, note: string): Promise<void> {
    const at = `${note}, ${keyText(truth.key)}`
    const log = store.find(truth.key)
    const end = log?.end ?? 0
    assert.equal(log?.damage, undefined, `${at}: a crash is no damage`)
    assert.ok(end >= truth.promised, `${at}: ${end} of ${truth.promised} promised entries`)
    assert.ok(end <= truth.most, `${at}: nothing that was cut`)
    if (log === undefined) return
    assert.equal(log.durableEnd, end, at)
    const expected = truth.entries.slice(0, end)
    assert.deepEqual(plain(await scanAll(log)), plain(expected), at)
    assert.equal(log.highWatermark, 0, at)
    const told = expected.at(-1)?.highWatermark ?? 0
    if (truth.endEntry === undefined) assert.equal(log.knownHighWatermark, told, at)
    else assert.ok(log.knownHighWatermark <= truth.endEntry, at)
    truth.promised = end
    // What is here was found by a start, so nothing comes to it but copies.
    log.advance(Math.min(log.knownHighWatermark, end))
    if (truth.endEntry === undefined) return
    await log.seal(truth.endEntry)
    assert.equal(log.end, Math.min(end, truth.endEntry), at)
    truth.promised = log.end
    truth.most = truth.endEntry
  }

  private async compareStaged(store: LogStore, note: string): Promise<void> {
    for (const truth of this.segments) {
      for (const token of TOKENS) {
        const name = `${truth.key.segment}.${token}`
        const state = await store.loadState(truth.key, token)
        if (this.states.has(name)) assert.deepEqual(state, stateOf(truth), `${note}: state ${name}`)
        const tail = await store.loadTail(truth.key, token)
        if (this.tails.has(name)) {
          assert.deepEqual(plain(tail), plain(tailOf(truth)), `${note}: tail ${name}`)
        }
      }
    }
    const { states, tails } = await store.staged()
    const names = (files: typeof states): Set<string> =>
      new Set(files.map(({ key, token }) => `${key.segment}.${token}`))
    for (const name of this.states) assert.ok(names(states).has(name), `${note}: ${name} is listed`)
    for (const name of this.tails) assert.ok(names(tails).has(name), `${note}: ${name} is listed`)
  }

  /** One thing after another to one segment or another, as long as the process lives. */
  async work(store: LogStore, chance: Prng): Promise<void> {
    const followed = new Map<TrueSegment, SegmentLog>()
    for (let step = 0; step < 40; step++) {
      const truth = this.segments[chance.below(this.segments.length)] as TrueSegment
      const log = this.logOf(store, truth, followed)
      const what = chance.below(10)
      if (truth.endEntry !== undefined) await this.fill(log, truth, chance)
      else if (what < 4) this.follow(store, log, truth, followed, chance)
      else if (what === 4) await this.fence(log, truth, followed)
      else if (what === 5) await this.seal(log, truth, chance)
      else if (what === 6) await this.stage(store, truth, chance)
      else if (what === 7) await store.flush()
      else if (log.fencedAt !== undefined) await this.copy(log, truth, chance)
      if (chance.below(2) === 0) await this.settle()
      if (chance.below(4) === 0) this.clock.advance(60)
    }
    await store.close()
  }

  private logOf(
    store: LogStore,
    truth: TrueSegment,
    followed: Map<TrueSegment, SegmentLog>,
  ): SegmentLog {
    const found = store.find(truth.key)
    if (found !== undefined) return found
    truth.given = true
    const log = store.create(truth.key, {
      durable(segment) {
        truth.promised = Math.max(truth.promised, segment.durableEnd)
      },
    })
    if (truth.endEntry === undefined) followed.set(truth, log)
    return log
  }

  /** Entries of the leader; only to what this process has begun and has not fenced. */
  private follow(
    store: LogStore,
    log: SegmentLog,
    truth: TrueSegment,
    followed: ReadonlyMap<TrueSegment, SegmentLog>,
    chance: Prng,
  ): void {
    if (followed.get(truth) !== log) return
    for (let i = 1 + chance.below(8); i > 0; i--) {
      const entry = truth.entries[log.end]
      if (entry === undefined) break
      log.append(entry)
      truth.most = Math.max(truth.most, log.end)
    }
    store.commit()
    const heard = truth.entries[log.end - 1]?.highWatermark ?? 0
    if (chance.below(2) === 0 && heard <= log.durableEnd) log.advance(heard)
  }

  private async fence(
    log: SegmentLog,
    truth: TrueSegment,
    followed: Map<TrueSegment, SegmentLog>,
  ): Promise<void> {
    followed.delete(truth)
    const answer = await log.fence()
    assert.ok(log.durableEnd >= answer, 'what is answered is durable')
    truth.promised = Math.max(truth.promised, answer)
  }

  /** As others say: at, below or above what is here, never below what was committed. */
  private async seal(log: SegmentLog, truth: TrueSegment, chance: Prng): Promise<void> {
    await this.settle()
    const told = truth.entries[Math.max(truth.most, log.end) - 1]?.highWatermark ?? 0
    const least = Math.max(told, log.highWatermark)
    const end = least + chance.below(truth.entries.length - least + 1)
    // From here on entries above it may go.
    truth.endEntry = end
    truth.promised = Math.min(truth.promised, end)
    truth.most = Math.max(truth.most, end)
    const before = Math.min(log.end, end)
    await log.seal(end)
    assert.deepEqual([log.end, log.highWatermark, log.durableEnd], [before, before, before])
    truth.promised = before
    truth.most = end
  }

  /** A part of what a sealed segment misses; when it has all of it, it proves that. */
  private async fill(log: SegmentLog, truth: TrueSegment, chance: Prng): Promise<void> {
    const end = truth.endEntry as number
    if (!log.sealed) await log.seal(end)
    if (log.end < end) {
      await this.install(log, truth, Math.min(end, log.end + 1 + chance.below(15)))
      assert.equal(log.highWatermark, log.end)
    }
    if (log.end < end) return
    const digest = await log.digest()
    const { segment } = truth.key
    assert.equal(digest, this.digests.get(segment) ?? digest, 'the same after every start')
    this.digests.set(segment, digest)
  }

  private async copy(log: SegmentLog, truth: TrueSegment, chance: Prng): Promise<void> {
    await this.install(log, truth, Math.min(truth.entries.length, log.end + chance.below(9)))
  }

  private async install(log: SegmentLog, truth: TrueSegment, end: number): Promise<void> {
    truth.most = Math.max(truth.most, end)
    await log.install(truth.entries.slice(log.end, end))
    assert.equal(log.durableEnd, end)
    truth.promised = Math.max(truth.promised, end)
  }

  private async stage(store: LogStore, truth: TrueSegment, chance: Prng): Promise<void> {
    const token = TOKENS[chance.below(2)] as string
    const next = this.segments[truth.key.segment] as TrueSegment | undefined
    if (next === undefined) return
    const state = `${next.key.segment}.${token}`
    const tail = `${truth.key.segment}.${token}`
    const entries = tailOf(truth)
    await store.stagePackage(next.key, token, {
      state: stateOf(next),
      tail: { of: truth.key, entries },
    })
    this.states.add(state)
    this.tails.add(tail)
    if (chance.below(3) === 0) {
      for (const each of this.states)
        if (each !== state && earlier(each, next)) this.states.delete(each)
      await store.keepState(next.key, token)
    }
    if (chance.below(3) === 0) {
      this.tails.delete(tail)
      await store.dropTail(truth.key, token)
      assert.equal(await store.loadTail(truth.key, token), undefined)
    }
  }
}

function earlier(name: string, { key }: TrueSegment): boolean {
  return Number(name.slice(0, name.indexOf('.'))) <= key.segment
}

function stateOf({ key }: TrueSegment): Uint8Array {
  return new Uint8Array(300).fill(key.segment)
}

function tailOf({ entries }: TrueSegment): readonly Entry[] {
  return entries.slice(-(entries.length % 5))
}

async function live(world: Replica, work: number, at: number, chance: Prng): Promise<boolean> {
  const crash = chance.below(3) === 0 ? KILL : CUT
  const ended = await untilCrash(world.disk, at, crash, async () => {
    await world.work(await world.reopen(`crash at ${at}`), prng(work))
    return true
  })
  return ended === true
}

test('a crash at every operation of a replica, and of its recovery: what it told others holds', async () => {
  for (let at = 1; ; at++) {
    const chance = prng(at)
    const world = new Replica(at)
    if (await live(world, 3, at, chance)) break
    for (let again = 0; again < 2; again++) {
      await live(world, 4 + again, world.disk.operations + 1 + chance.below(80), chance)
    }
    await (await world.reopen(`operation ${at}, end`)).close()
  }
})

test('many lives that end anywhere add up to whole segments, the same on all replicas', async () => {
  for (let seed = 1; seed <= 60; seed++) {
    const chance = prng(seed)
    const world = new Replica(seed)
    for (let life = 0; life < 8; life++) {
      const at = world.disk.operations + 1 + chance.below(life % 2 === 0 ? 300 : 90)
      await live(world, seed * 100 + life, at, chance)
    }
    await (await world.reopen(`seed ${seed}, end`)).close()
  }
})
