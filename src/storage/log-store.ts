// The log engine as the broker has it (types.ts): one WAL, the segments, and what goes on between them.
//
//   open     recover (recovery/) ──> new WAL generation ──> ready
//   append   room? ──> SegmentLog.append ──> WAL ──> durable
//   remove   rename to trash/ ──> remove
//
// Room is three questions, asked before an entry gets its number: does the disk have space above the reserve, do the WAL's
// files take it, is there memory for what no segment file has yet? Disk space is polled, and what was appended since the last
// poll is taken off, so that the answer costs no system call.

import { assert } from '../base/assert.ts'
import { EastGuardError } from '../base/errors.ts'
import type { Entry } from '../model/entry.ts'
import type { TopicId } from '../model/ids.ts'
import { keyText, type SegmentKey } from '../model/segment-key.ts'
import type { Clock, Timer } from '../ports/clock.ts'
import { type Disk, DiskError, type DiskFault } from '../ports/disk.ts'
import type { Log } from '../ports/log.ts'
import type { Random } from '../ports/random.ts'
import { DurableDirs } from './durable-dirs.ts'
import { openSegmentEngine } from './flusher.ts'
import { forgetSegmentDamage, rememberDamage } from './recovery/damage-file.ts'
import { DATA_EXTENSIONS, listOrNothing, listTopics } from './recovery/on-disk.ts'
import { recoverSegments } from './recovery/recover-segments.ts'
import {
  parseSegmentFile,
  parseTopicDir,
  rangeDir,
  segmentBase,
  TOPICS_DIR,
  topicDir,
} from './segment/paths.ts'
import type { SegmentEngine } from './segment/types.ts'
import { SegmentMap } from './segment-map.ts'
import { listStaged } from './staged.ts'
import { StagedFiles } from './staged-files.ts'
import { States } from './states.ts'
import { Tails } from './tails.ts'
import { Trash } from './trash.ts'
import type {
  Catalog,
  LogStore,
  LogStoreListener,
  LogStoreOptions,
  Room,
  SegmentListener,
  SegmentLog,
  StagedPackage,
} from './types.ts'
import { encodeSegmentEnd } from './wal/control.ts'
import { beginDataWal, type DataWal } from './wal/data-wal.ts'
import { recoverLog } from './wal/recover.ts'
import type { LogIdentity } from './wal/types.ts'

export const WAL_DIR = 'wal'
const SPACE_POLL_MS = 1000
/** Times the reserve. */
const SPACE_AGAIN = 1.1
const FULL_HINT =
  'free space, or let topics keep less; or drain this broker, and others take what it has'
/** What a change of files may meet and be tried again after: space comes back, and deletion takes files from under others. */
const PASSING: ReadonlySet<DiskFault> = new Set<DiskFault>(['full', 'not-found'])

export interface LogStoreEnv {
  readonly disk: Disk
  readonly clock: Clock
  readonly random: Random
  readonly log: Log
  readonly identity: LogIdentity
  readonly catalog: Catalog
  readonly options: LogStoreOptions
  readonly listener: LogStoreListener
  /** For `repair`: what the disk cannot read is marked, and the rest is recovered. */
  readonly unreadableIsDamage?: boolean
}

/** Recovers what is there. Rejects with DATA_DIR_NEWER, STORAGE_FULL or what the disk said. */
export async function openLogStore(env: LogStoreEnv): Promise<LogStore> {
  const store = new Store(env)
  await store.open()
  return store
}

class Store implements LogStore {
  private readonly env: LogStoreEnv
  private readonly engine: SegmentEngine
  private readonly stagedFiles: StagedFiles
  private readonly states: States
  private readonly tails: Tails
  /** Of changes of the list of damaged segments, the last. */
  private forgetting: Promise<void> = Promise.resolve()
  private readonly trash: Trash
  private readonly segments = new SegmentMap()
  /** Segments whose files are being removed. */
  private readonly leaving = new Map<string, Promise<unknown>>()
  private readonly durableDirs: DurableDirs
  private wal: DataWal | undefined
  freeBytes = 0
  private refusing = false
  isFull = false
  private timer: Timer | undefined
  private failed = false
  private closed = false

  constructor(env: LogStoreEnv) {
    this.env = env
    this.durableDirs = new DurableDirs(env.disk)
    this.stagedFiles = new StagedFiles(env.disk, env.catalog, this.durableDirs)
    this.states = new States(this.stagedFiles)
    this.tails = new Tails(this.stagedFiles)
    this.trash = new Trash(env.disk)
    this.engine = openSegmentEngine({
      disk: env.disk,
      clock: env.clock,
      log: env.log,
      catalog: env.catalog,
      options: env.options,
      durableDirs: this.durableDirs,
      unreadableIsDamage: env.unreadableIsDamage ?? false,
      wal: () => this.openWal,
      recordEnd: (kind, key, end) => this.recordEnd(kind, key, end),
      synced: () => this.openWal.sync(),
      failed: (error) => this.fail(error),
      roomAgain: () => this.roomAgain(),
    })
  }

  private get openWal(): DataWal {
    if (this.wal === undefined) throw new EastGuardError('NOT_READY', 'the WAL has not begun yet')
    return this.wal
  }

  async open(): Promise<void> {
    const { disk, log, catalog } = this.env
    await this.trash.empty()
    await disk.makeDir(TOPICS_DIR)
    await disk.syncDir('.')
    const turn = (): Promise<void> => new Promise((resolve) => this.env.clock.nextTurn(resolve))
    const found = await recoverLog(disk, WAL_DIR, turn)
    const { recovering } = this.env.listener
    const recovery = { disk, log, catalog, engine: this.engine, recovering }
    const recovered = await recoverSegments(recovery, found)
    // Before the old WAL may go: the next start must not take what is missing for what never was.
    await rememberDamage(recovery, recovered)
    for (const segment of recovered.values()) this.segments.set(segment)
    this.wal = await beginDataWal(found, {
      disk,
      clock: this.env.clock,
      random: this.env.random,
      log,
      dir: WAL_DIR,
      fileBytes: this.env.options.walFileBytes,
      identity: this.env.identity,
      onSpace: () => this.roomAgain(),
      onRotated: () => {
        if (this.wal !== undefined) this.engine.walGrew()
      },
      onFailed: (error) => this.fail(error),
    })
    await this.pollSpace()
    if (found.endLsn > found.firstLsn) {
      log.info('the write-ahead log was recovered', { records: found.endLsn - found.firstLsn })
    }
  }

  room(bytes: number): Room {
    const { options } = this.env
    if (this.freeBytes < options.reserveBytes + bytes) return this.full()
    const wal = this.openWal
    if (!wal.hasRoom(bytes)) return wal.blocked ? this.full() : this.refused('wait')
    // With nothing unflushed one batch is taken whatever its size: it would wait for ever otherwise.
    const unflushed = this.engine.unflushedBytes
    if (unflushed > 0 && unflushed + bytes > options.unflushedBytesMax) return this.refused('wait')
    this.freeBytes -= bytes
    return 'ok'
  }

  private refused(room: Room): Room {
    this.refusing = true
    return room
  }

  private full(): Room {
    if (!this.isFull) {
      this.isFull = true
      const { freeBytes } = this
      const { reserveBytes } = this.env.options
      this.env.log.warn('the disk is full: writes are refused', {
        freeBytes,
        reserveBytes,
        hint: FULL_HINT,
      })
    }
    return this.refused('full')
  }

  /** Around the reserve there may be room for small batches and none for large ones: that is not told each time. */
  private tellSpace(): void {
    const { freeBytes } = this
    const { reserveBytes } = this.env.options
    if (!this.isFull || this.wal?.blocked === true || freeBytes < reserveBytes * SPACE_AGAIN) return
    this.isFull = false
    this.env.log.info('the disk has space again: writes are taken', { freeBytes })
  }

  private roomAgain(): void {
    if (!this.refusing || this.failed || this.closed) return
    this.refusing = false
    this.env.listener.roomAgain()
  }

  private async pollSpace(): Promise<void> {
    try {
      this.freeBytes = (await this.env.disk.space()).freeBytes
    } catch (error) {
      this.env.log.warn('the free space of the disk cannot be read', { err: error })
    }
    if (this.closed) return
    this.tellSpace()
    this.roomAgain()
    this.timer = this.env.clock.after(SPACE_POLL_MS, () => void this.pollSpace())
  }

  commit(): void {
    this.openWal.commit()
  }

  create(key: SegmentKey, listener: SegmentListener): SegmentLog {
    const segment = this.engine.create(key, listener, this.leaving.get(keyText(key)))
    this.segments.set(segment)
    return segment
  }

  find(key: SegmentKey): SegmentLog | undefined {
    return this.segments.get(key)
  }

  keys(of?: TopicId): readonly SegmentKey[] {
    const segments = of === undefined ? this.segments.all() : this.segments.ofTopic(of)
    return Array.from(segments, (segment) => segment.key)
  }

  async topics(): Promise<ReadonlySet<TopicId>> {
    const ids = new Set(await listTopics(this.env.disk))
    for (const topicId of this.segments.topics()) ids.add(topicId)
    return ids
  }

  flush(): Promise<void> {
    return this.engine.flush()
  }

  private recordEnd(kind: number, key: SegmentKey, end: number): Promise<void> {
    return this.openWal.appendRecord(kind, encodeSegmentEnd(key, end)).synced
  }

  oldestSyncAgeMs(): number {
    return this.wal?.syncAgeMs ?? 0
  }

  stageState(key: SegmentKey, token: string, state: Uint8Array): Promise<void> {
    return this.changing(this.states.stage(key, token, state))
  }

  async stagePackage(key: SegmentKey, token: string, staged: StagedPackage): Promise<void> {
    const { state, tail } = staged
    const writes = [this.states.stage(key, token, state)]
    if (tail !== undefined) writes.push(this.tails.stage(tail.of, token, tail.entries))
    // All of them end before this does: who hears of a failure may stage anew.
    const ended = await Promise.allSettled(writes)
    const failed = ended.find((each) => each.status === 'rejected')
    if (failed !== undefined) await this.changing(Promise.reject(failed.reason as Error))
  }

  loadTail(of: SegmentKey, token: string): Promise<readonly Entry[] | undefined> {
    return this.tails.load(of, token)
  }

  dropTail(of: SegmentKey, token: string): Promise<void> {
    return this.changing(this.tails.drop(of, token))
  }

  staged(): ReturnType<LogStore['staged']> {
    return listStaged(this.env.disk)
  }

  loadState(key: SegmentKey, token: string): Promise<Uint8Array | undefined> {
    return this.states.load(key, token)
  }

  keepState(key: SegmentKey, token: string): Promise<void> {
    return this.changing(this.states.keep(key, token))
  }

  /** A sync that failed is never tried again: whatever cannot pass by itself is final, here as in the WAL. */
  private async changing(work: Promise<void>): Promise<void> {
    try {
      await work
    } catch (error) {
      if (error instanceof DiskError && !PASSING.has(error.fault)) this.fail(error)
      throw error
    }
  }

  dropSegments(keys: readonly SegmentKey[]): Promise<void> {
    return this.changing(this.removing(keys, this.removeSegments(keys)))
  }

  replaceSegment(key: SegmentKey): Promise<void> {
    return this.changing(this.removing([key], this.removeDamaged(key)))
  }

  /** What is created meanwhile has no file before all of this is over: it would be taken for what is removed. */
  private removing(keys: readonly SegmentKey[], work: Promise<void>): Promise<void> {
    for (const text of keys.map(keyText)) {
      const over = Promise.allSettled([this.leaving.get(text), work]).then(() => {
        if (this.leaving.get(text) === over) this.leaving.delete(text)
      })
      this.leaving.set(text, over)
    }
    return work
  }

  private async removeDamaged(key: SegmentKey): Promise<void> {
    const { catalog } = this.env
    const text = keyText(key)
    const known = Array.from(catalog.segments()).find((each) => keyText(each.key) === text)
    assert(
      known?.endEntry !== undefined && known.elsewhere === true,
      'only of what is sealed, and elsewhere, the copy here is given up',
    )
    const segment = this.segments.get(key)
    this.segments.delete(key)
    await segment?.retire()
    const name = catalog.topicName(key.topicId)
    if (name === undefined) return
    const base = segmentBase(name, key)
    await this.trash.remove(DATA_EXTENSIONS.map((extension) => `${base}.${extension}`))
    // Only now: a crash before this finds the mark, or what is marked.
    await this.forgetDamage(key)
  }

  private async forgetDamage(key: SegmentKey): Promise<void> {
    const { disk } = this.env
    this.forgetting = this.forgetting.catch(() => {}).then(() => forgetSegmentDamage(disk, key))
    await this.forgetting
  }

  async acquit(key: SegmentKey, end: number): Promise<boolean> {
    const segment = this.segments.get(key)
    if (segment === undefined || !(await isWholeTo(segment, end))) return false
    await this.changing(this.forgetDamage(key))
    segment.acquitted()
    return true
  }

  private async removeSegments(keys: readonly SegmentKey[]): Promise<void> {
    // All at once: what is created under one of these keys while others retire is not what is removed.
    const removed = keys.map((key) => this.segments.get(key))
    for (const key of keys) this.segments.delete(key)
    for (const segment of removed) await segment?.retire()
    const byDir = new Map<string, Set<number>>()
    for (const key of keys) {
      const name = this.env.catalog.topicName(key.topicId)
      if (name === undefined) continue
      const dir = rangeDir(name, key)
      const numbers = byDir.get(dir) ?? new Set()
      byDir.set(dir, numbers.add(key.segment))
    }
    for (const [dir, numbers] of byDir) {
      const files = await listOrNothing(this.env.disk, dir)
      const dropped = files.filter((file) => {
        const part = parseSegmentFile(file.name)
        return part !== undefined && numbers.has(part.segment)
      })
      await this.trash.remove(dropped.map((file) => `${dir}/${file.name}`))
    }
  }

  dropTopic(topicId: TopicId, name?: string): Promise<void> {
    return this.changing(this.removeTopic(topicId, name))
  }

  private async removeTopic(topicId: TopicId, name: string | undefined): Promise<void> {
    for (const segment of this.segments.ofTopic(topicId)) {
      this.segments.delete(segment.key)
      await segment.retire()
    }
    // A state that is being written would come to lie in a directory made anew.
    await this.stagedFiles.settled(topicId)
    const dir = name === undefined ? undefined : topicDir(name, topicId)
    await this.trash.remove(dir === undefined ? await this.dirsOf(topicId) : [dir])
    this.durableDirs.forget(topicId)
  }

  /** What bears a topic's id, whatever its name is. */
  private async dirsOf(topicId: TopicId): Promise<readonly string[]> {
    const dirs = await listOrNothing(this.env.disk, TOPICS_DIR)
    const own = dirs.filter((dir) => parseTopicDir(dir.name)?.id === topicId)
    return own.map((dir) => `${TOPICS_DIR}/${dir.name}`)
  }

  private fail(error: Error): void {
    if (this.failed) return
    this.failed = true
    this.env.listener.failed(error)
  }

  async close(): Promise<void> {
    this.closed = true
    this.timer?.cancel()
    try {
      if (!this.failed) {
        // On a full disk the queue may never leave; nothing in it was acknowledged.
        await this.openWal.drain()
        await this.engine.flush()
      }
    } catch (error) {
      // Whatever could not be flushed is in the WAL, and the next start flushes it.
      this.env.log.warn('not everything was flushed at the end', { err: error })
    }
    await this.engine.close()
    await this.wal?.close().catch((error: unknown) => {
      this.env.log.warn('the write-ahead log did not close cleanly', { err: error })
    })
  }
}

/** All entries below `end` are there, and good. */
async function isWholeTo(segment: SegmentLog, end: number): Promise<boolean> {
  if (segment.durableEnd < end) return false
  try {
    for await (const entries of segment.salvage(0)) {
      if ((entries.at(-1)?.entryNumber ?? 0) + 1 >= end) break
    }
  } catch (error) {
    if (error instanceof EastGuardError && error.code === 'DAMAGED') return false
    throw error
  }
  return true
}
