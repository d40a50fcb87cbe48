// A log store without a disk, for tests of the broker alone. `sync` says when a group commit returns: at the next turn,
// or when the test lets it.

import { assert } from '../../../src/base/assert.ts'
import { concatBytes } from '../../../src/base/bytes.ts'
import { crc32c } from '../../../src/base/checksum.ts'
import { EastGuardError } from '../../../src/base/errors.ts'
import { systemClock } from '../../../src/io/clock/system-clock.ts'
import { maxTimestamp } from '../../../src/model/batch/header.ts'
import { ENVELOPE_BYTES, type Entry } from '../../../src/model/entry.ts'
import type { TopicId } from '../../../src/model/ids.ts'
import { keyText, parseKeyText, type SegmentKey } from '../../../src/model/segment-key.ts'
import type { Clock } from '../../../src/ports/clock.ts'
import type {
  LogStore,
  Room,
  SegmentListener,
  SegmentLog,
  StagedFile,
  StagedPackage,
} from '../../../src/storage/types.ts'

function stagedFiles(files: ReadonlyMap<string, unknown>): StagedFile[] {
  return Array.from(files.keys(), (name) => {
    const dot = name.indexOf('.')
    return { key: parseKeyText(name.slice(0, dot)), token: name.slice(dot + 1) }
  })
}

export class MemoryLog implements SegmentLog {
  readonly key: SegmentKey
  readonly entries: Entry[] = []
  durableEnd = 0
  highWatermark = 0
  bytes = 0
  firstAppendAt: number | undefined
  sealed = false
  endEntry: number | undefined
  fencedAt: number | undefined
  damage: string | undefined
  /** With damage: entries below can be read. */
  goodTo = 0
  /** Reads go the slow way. */
  cold = false
  private readonly listener: SegmentListener
  /** Whether a fence has to wait for a group commit that the test lets go. */
  private readonly held: () => boolean
  private readonly now: () => number
  private fences: (() => void)[] = []

  constructor(key: SegmentKey, listener: SegmentListener, held: () => boolean, now: () => number) {
    this.key = key
    this.listener = listener
    this.held = held
    this.now = now
  }

  get end(): number {
    return this.entries.length
  }

  append(entry: Entry): void {
    assert(!this.sealed && entry.entryNumber === this.end, 'entries are dense')
    this.entries.push(entry)
    this.bytes += ENVELOPE_BYTES + entry.batch.length
    this.firstAppendAt ??= this.now()
  }

  synced(): void {
    for (const done of this.fences.splice(0)) done()
    if (this.durableEnd === this.end) return
    this.durableEnd = this.end
    this.listener.durable(this)
  }

  advance(highWatermark: number): void {
    assert(highWatermark >= this.highWatermark && highWatermark <= this.durableEnd, 'it moves on')
    this.highWatermark = highWatermark
  }

  get knownHighWatermark(): number {
    return this.highWatermark
  }

  /** Its group commit takes a fence with it, so it waits for no more than that. */
  async fence(): Promise<number> {
    this.fencedAt ??= this.end
    if (this.held()) await new Promise<void>((resolve) => this.fences.push(resolve))
    else this.synced()
    return this.fencedAt
  }

  async seal(end: number): Promise<void> {
    assert(end >= this.highWatermark, 'a seal keeps what was committed')
    this.entries.length = Math.min(end, this.end)
    this.sealed = true
    this.endEntry = end
    this.durableEnd = this.end
    this.highWatermark = this.end
  }

  async install(entries: readonly Entry[]): Promise<void> {
    assert(
      entries.every((entry, i) => entry.entryNumber === this.end + i),
      'entries are dense',
    )
    this.entries.push(...entries)
    this.durableEnd = this.end
    if (this.sealed) this.highWatermark = this.end
  }

  async digest(): Promise<string> {
    return crc32c(concatBytes(this.entries.map(({ batch }) => batch))).toString(16)
  }

  readEntries(fromEntry: number, maxBytes: number): readonly Entry[] | undefined {
    if (this.cold) return undefined
    const found: Entry[] = []
    let bytes = 0
    for (const entry of this.entries.slice(fromEntry)) {
      bytes += ENVELOPE_BYTES + entry.batch.length
      if (found.length > 0 && bytes > maxBytes) break
      found.push(entry)
    }
    return found
  }

  readCached(partition: number, offset: number, maxBytes: number): readonly Entry[] | undefined {
    return this.cold ? undefined : this.find(partition, offset, maxBytes)
  }

  private find(partition: number, offset: number, maxBytes: number): readonly Entry[] {
    const found: Entry[] = []
    let bytes = 0
    for (const entry of this.entries.slice(0, this.highWatermark)) {
      if (entry.partition !== partition || entry.baseOffset + entry.recordCount <= offset) continue
      bytes += entry.batch.length
      if (found.length > 0 && bytes > maxBytes) break
      found.push(entry)
    }
    return found
  }

  async read(partition: number, offset: number, maxBytes: number): Promise<readonly Entry[]> {
    return this.find(partition, offset, maxBytes)
  }

  async readByTime(partition: number, timestamp: number): Promise<Entry | undefined> {
    return this.entries.find((e) => e.partition === partition && maxTimestamp(e.batch) >= timestamp)
  }

  async *scan(fromEntry: number): AsyncIterable<readonly Entry[]> {
    if (this.damage !== undefined) throw new EastGuardError('DAMAGED', this.damage)
    yield this.entries.slice(fromEntry, this.durableEnd)
  }

  async *salvage(fromEntry: number): AsyncIterable<readonly Entry[]> {
    const good = Math.min(this.durableEnd, this.goodTo)
    if (fromEntry < good) yield this.entries.slice(fromEntry, good)
    if (good < this.durableEnd) throw new EastGuardError('DAMAGED', this.damage ?? 'bad bytes')
  }
}

export class MemoryStore implements LogStore {
  readonly logs: Map<string, MemoryLog> = new Map()
  readonly states: Map<string, Uint8Array> = new Map()
  readonly tails: Map<string, readonly Entry[]> = new Map()
  roomNow: Room = 'ok'
  /** False: groups gather until `release`. */
  automatic = true
  commits = 0
  /** The next staged state fails with it. */
  failStage: Error | undefined
  private readonly now: () => number
  private running = false
  private runningSince = 0

  constructor(clock: Pick<Clock, 'monotonic'> = systemClock()) {
    this.now = () => clock.monotonic()
  }

  room(): Room {
    return this.roomNow
  }

  commit(): void {
    if (this.running || !this.automatic) return
    this.running = true
    this.runningSince = this.now()
    setImmediate(() => this.release())
  }

  release(): void {
    this.running = false
    this.commits++
    for (const log of this.logs.values()) log.synced()
    if ([...this.logs.values()].some((log) => log.durableEnd < log.end)) this.commit()
  }

  create(key: SegmentKey, listener: SegmentListener): MemoryLog {
    const log = new MemoryLog(key, listener, () => !this.automatic, this.now)
    this.logs.set(keyText(key), log)
    return log
  }

  find(key: SegmentKey): MemoryLog | undefined {
    return this.logs.get(keyText(key))
  }

  keys(of?: TopicId): readonly SegmentKey[] {
    const keys = [...this.logs.values()].map((log) => log.key)
    return of === undefined ? keys : keys.filter((key) => key.topicId === of)
  }

  async topics(): Promise<ReadonlySet<TopicId>> {
    return new Set(this.keys().map((key) => key.topicId))
  }

  async flush(): Promise<void> {}

  isFull = false
  readonly freeBytes: number = 2 ** 40
  oldestSyncAgeMs(): number {
    return this.running ? this.now() - this.runningSince : 0
  }

  async stageState(key: SegmentKey, token: string, state: Uint8Array): Promise<void> {
    const error = this.failStage
    this.failStage = undefined
    if (error !== undefined) throw error
    this.states.set(`${keyText(key)}.${token}`, state.slice())
  }

  async stagePackage(key: SegmentKey, token: string, staged: StagedPackage): Promise<void> {
    await this.stageState(key, token, staged.state)
    const { tail } = staged
    if (tail !== undefined) this.tails.set(`${keyText(tail.of)}.${token}`, [...tail.entries])
  }

  async loadTail(of: SegmentKey, token: string): Promise<readonly Entry[] | undefined> {
    return this.tails.get(`${keyText(of)}.${token}`)
  }

  async dropTail(of: SegmentKey, token: string): Promise<void> {
    this.tails.delete(`${keyText(of)}.${token}`)
  }

  async staged(): ReturnType<LogStore['staged']> {
    return { states: stagedFiles(this.states), tails: stagedFiles(this.tails) }
  }

  async acquit(key: SegmentKey, end: number): Promise<boolean> {
    const log = this.find(key)
    if (log === undefined || log.durableEnd < end || log.goodTo < end) return false
    log.damage = undefined
    return true
  }

  async replaceSegment(key: SegmentKey): Promise<void> {
    this.logs.delete(keyText(key))
  }

  async loadState(key: SegmentKey, token: string): Promise<Uint8Array | undefined> {
    return this.states.get(`${keyText(key)}.${token}`)
  }

  async keepState(key: SegmentKey, token: string): Promise<void> {
    for (const name of this.states.keys()) {
      if (name.startsWith(`${keyText(key)}.`) && !name.endsWith(token)) this.states.delete(name)
    }
  }

  async dropSegments(keys: readonly SegmentKey[]): Promise<void> {
    for (const key of keys) this.logs.delete(keyText(key))
  }

  async dropTopic(topicId: TopicId): Promise<void> {
    for (const [name, log] of this.logs) if (log.key.topicId === topicId) this.logs.delete(name)
  }

  async close(): Promise<void> {}
}
