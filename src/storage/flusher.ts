// The segment engine: which segment is written to its file, when. A segment's turn comes when it has a full block, before
// its oldest entry has waited flushAgeMs, when the WAL needs its oldest file back, or when unflushed memory runs short:
//
//   advance ──> a full block? ──────────────┐
//   tick ─────> old, or retry due? ─────────┼──> ready ──> two jobs at a time: blocks, then a sync ──> releaseBelow
//   walGrew ──> holds the oldest WAL file? ─┤
//   advance ──> memory short? the largest ──┘
//
// Two jobs, so that a slow file does not stop the others and the disk's threads are left to the WAL. A full disk puts a
// segment off and tries again later: its entries are safe in WAL and memory. Any other failure is final: after a failed
// write or sync nobody knows what the file holds.

import { EastGuardError } from '../base/errors.ts'
import type { SegmentKey } from '../model/segment-key.ts'
import type { Timer } from '../ports/clock.ts'
import { DiskError, foundNoRoom } from '../ports/disk.ts'
import { CacheBudget } from './cache/budget.ts'
import { Tail } from './cache/tail.ts'
import { IndexShelf } from './index/index-file.ts'
import type { FlushRequests, SegmentContext } from './segment/context.ts'
import { finishCut } from './segment/cut.ts'
import { OpenFiles } from './segment/file.ts'
import { type OpenedFile, openSegmentFile } from './segment/open.ts'
import { segmentBase } from './segment/paths.ts'
import { ReadAhead } from './segment/reader.ts'
import type { OpenSegment, SegmentEngine, SegmentEnv, StoredSegment } from './segment/types.ts'
import { TopicGone } from './segment/writer.ts'
import { Segment } from './segment-log.ts'
import type { SegmentListener } from './types.ts'

const JOBS_MAX = 2
/** Full blocks written to one segment before its sync. */
const BLOCKS_PER_SYNC = 4
const RETRY_MS_LEAST = 500
const RETRY_MS_MOST = 30_000

/** How much of a segment a job does. */
type Wanted = 'blocks' | 'all' | 'synced'
const RANK: Readonly<Record<Wanted, number>> = { blocks: 0, all: 1, synced: 2 }

interface Waiter {
  readonly until: number
  readonly resolve: () => void
  readonly reject: (error: Error) => void
}

export function openSegmentEngine(env: SegmentEnv): SegmentEngine {
  return new Flusher(env)
}

class Flusher implements SegmentEngine, FlushRequests {
  private readonly context: SegmentContext
  private readonly env: SegmentEnv
  private readonly segments: Set<Segment> = new Set()
  /** With entries that are not synced in a file. */
  private readonly dirty: Set<Segment> = new Set()
  private readonly ready: Map<Segment, Wanted> = new Map()
  private readonly running: Map<Segment, Promise<void>> = new Map()
  private readonly putOff: Map<Segment, { until: number; ms: number }> = new Map()
  private readonly waiters: Map<Segment, Waiter[]> = new Map()
  /** Nothing of them is written for now: their ends change. */
  private readonly held: Set<Segment> = new Set()
  private timer: Timer | undefined
  private closed = false
  private failure: Error | undefined

  constructor(env: SegmentEnv) {
    this.env = env
    this.context = {
      env,
      get wal() {
        return env.wal()
      },
      budget: new CacheBudget(env.options.cacheBytes),
      openFiles: new OpenFiles(env.disk),
      shelf: new IndexShelf(),
      ahead: new ReadAhead(),
      flusher: this,
      turn: () => new Promise((resolve) => env.clock.nextTurn(resolve)),
    }
  }

  get unflushedBytes(): number {
    return this.context.budget.unflushedBytes
  }

  create(key: SegmentKey, listener: SegmentListener, pathFree?: Promise<unknown>): StoredSegment {
    const segment = new Segment(this.context, key, listener, false)
    segment.pathFree = pathFree
    this.segments.add(segment)
    return segment
  }

  async open(key: SegmentKey, how: OpenSegment): Promise<StoredSegment> {
    const segment = new Segment(this.context, key, undefined, true)
    segment.repairable = how.repairable === true
    const base = segmentBase(how.topicName, key)
    const files = segment.useFiles(base)
    const cutDamage = await damageOf(finishCut(this.env.disk, base, files.log))
    const found = await openSegmentFile(segment.place, files.log, files.index, how).catch(
      (error: unknown) => this.unreadable(error),
    )
    if (found.absent) {
      // As after `create`: the file is made with the first block, if nothing is missing before it.
      await segment.closeFiles()
      segment.files = undefined
    } else {
      segment.writer.opened(found.fileBytes, found.entryEnd, how.walFirst !== undefined)
      segment.tail = new Tail(this.context.budget, found.entryEnd)
    }
    segment.end = found.entryEnd
    segment.durableEnd = found.entryEnd
    segment.bytes = found.entryBytes
    const damage = cutDamage ?? found.damage
    if (damage !== undefined) segment.markDamaged(damage)
    this.segments.add(segment)
    return segment
  }

  private unreadable(error: unknown): OpenedFile {
    const readFailed = error instanceof DiskError && error.fault === 'io'
    if (!readFailed || !this.env.unreadableIsDamage) throw error
    // As if absent: nothing is written to it, and what the WAL has goes beside it.
    return { fileBytes: 0, entryEnd: 0, entryBytes: 0, damage: error.message, absent: true }
  }

  dirtied(segment: Segment): void {
    this.dirty.add(segment)
    this.schedule()
  }

  advanced(segment: Segment): void {
    const { options } = this.env
    if (segment.writer.flushableBytes >= options.blockBytes) this.want(segment, 'blocks')
    const { unflushedBytes } = this.context.budget
    if (unflushedBytes * 2 > options.unflushedBytesMax && this.running.size < JOBS_MAX) {
      this.flushLargest()
    }
  }

  synced(segment: Segment): void {
    // At recovery nothing is dirty: the WAL that is read then is not the one that will be written.
    if (!this.dirty.has(segment)) return
    if (!segment.writer.dirty) this.dirty.delete(segment)
    const waiting = this.waiters.get(segment)
    if (waiting !== undefined) {
      // Whoever waits for entries that were dropped since waits for nothing.
      const synced = segment.writer.dirty ? segment.writer.syncedEnd : Number.POSITIVE_INFINITY
      const left = waiting.filter((waiter) => waiter.until > synced)
      for (const waiter of waiting) if (waiter.until <= synced) waiter.resolve()
      if (left.length === 0) this.waiters.delete(segment)
      else this.waiters.set(segment, left)
    }
    this.release()
  }

  /** Tells the WAL the smallest LSN that is not in a segment file yet. */
  private release(): void {
    let least = Number.POSITIVE_INFINITY
    for (const segment of this.dirty) {
      const lsn = segment.lsns.at(0)
      if (lsn !== undefined && lsn < least) least = lsn
    }
    const { wal } = this.context
    wal.releaseBelow(Math.min(least, wal.nextLsn))
  }

  async hold(segment: Segment): Promise<void> {
    this.held.add(segment)
    this.ready.delete(segment)
    await this.running.get(segment)
    this.ready.delete(segment)
    // After a failed sync another one succeeds and proves nothing.
    if (this.failure !== undefined) throw this.failure
  }

  letGo(segment: Segment): void {
    this.held.delete(segment)
    if (segment.retired) return
    if (segment.writer.dirty) this.want(segment, 'synced')
    else {
      segment.writer.dirtySince = undefined
      this.synced(segment)
    }
  }

  async forget(segment: Segment): Promise<void> {
    this.ready.delete(segment)
    await this.running.get(segment)
    this.ready.delete(segment)
    this.putOff.delete(segment)
    this.held.delete(segment)
    this.segments.delete(segment)
    for (const waiter of this.waiters.get(segment) ?? []) waiter.resolve()
    this.waiters.delete(segment)
    if (this.dirty.delete(segment) && !this.closed) this.release()
  }

  walGrew(): void {
    const { wal } = this.context
    if (wal.filesInUse <= this.env.options.walFilesMax) return
    const below = wal.oldestFileEndLsn
    const holding = [...this.dirty].filter((segment) => (segment.lsns.at(0) ?? below) < below)
    holding.sort((a, b) => (a.lsns.at(0) ?? 0) - (b.lsns.at(0) ?? 0))
    for (const segment of holding) this.want(segment, 'synced')
    // None holds it: what was left in it belonged to segments that are gone.
    if (holding.length === 0) this.release()
  }

  async flush(): Promise<void> {
    const all = [...this.dirty].map((segment) => this.flushed(segment))
    const failed = (await Promise.allSettled(all)).find((each) => each.status === 'rejected')
    if (failed !== undefined) throw failed.reason
  }

  private flushed(segment: Segment): Promise<void> {
    const until = segment.flushLimit
    if (segment.writer.syncedEnd >= until) return Promise.resolve()
    return new Promise((resolve, reject) => {
      const waiting = this.waiters.get(segment) ?? []
      waiting.push({ until, resolve, reject })
      this.waiters.set(segment, waiting)
      // Someone waits for the answer: a full disk is asked again now.
      const late = this.putOff.get(segment)
      if (late !== undefined) late.until = 0
      this.want(segment, 'synced')
    })
  }

  async close(): Promise<void> {
    this.closed = true
    this.timer?.cancel()
    this.timer = undefined
    this.ready.clear()
    await Promise.all(this.running.values())
    for (const segment of this.segments) await segment.closeFiles()
  }

  private want(segment: Segment, wanted: Wanted): void {
    if (this.closed || this.failure !== undefined || segment.retired || this.held.has(segment))
      return
    const before = this.ready.get(segment)
    if (before === undefined || RANK[before] < RANK[wanted]) this.ready.set(segment, wanted)
    this.pump()
  }

  private pump(): void {
    const now = this.env.clock.monotonic()
    for (const [segment, wanted] of this.ready) {
      if (this.running.size >= JOBS_MAX || this.closed || this.failure !== undefined) return
      if (this.running.has(segment) || now < (this.putOff.get(segment)?.until ?? 0)) continue
      this.ready.delete(segment)
      this.running.set(segment, this.run(segment, wanted))
    }
  }

  /** Never rejects. */
  private async run(segment: Segment, wanted: Wanted): Promise<void> {
    try {
      await this.job(segment, wanted)
      this.putOff.delete(segment)
    } catch (error) {
      this.jobFailed(segment, error)
    }
    this.running.delete(segment)
    if (segment.writer.flushableBytes >= this.env.options.blockBytes) this.want(segment, 'blocks')
    this.schedule()
    this.pump()
  }

  private async job(segment: Segment, wanted: Wanted): Promise<void> {
    const { writer } = segment
    const { blockBytes } = this.env.options
    // Entries that come while this runs wait for the next job, so that each segment gets its turn.
    const limit = segment.flushLimit
    let blocks = 0
    while (!segment.retired) {
      if (
        wanted === 'blocks' &&
        (writer.flushableBytes < blockBytes || blocks >= BLOCKS_PER_SYNC)
      ) {
        break
      }
      if (!(await writer.writeBlock(limit))) break
      blocks++
    }
    if (segment.retired) return
    if (wanted === 'synced' || writer.unsyncedBytes >= BLOCKS_PER_SYNC * blockBytes) {
      await writer.sync()
    }
  }

  private jobFailed(segment: Segment, error: unknown): void {
    if (segment.retired) return
    if (error instanceof TopicGone) {
      // Nobody will ask for these entries again; the log store drops the segment.
      void segment.retire()
      return
    }
    const fields = { topic: segment.key.topicId, segment: segment.key.segment, err: error }
    if (foundNoRoom(error)) {
      this.putOffFor(segment)
      this.env.log.warn('no space for a segment file; its entries stay in the WAL', fields)
      const full = new EastGuardError('STORAGE_FULL', error.message, { cause: error })
      for (const waiter of this.waiters.get(segment) ?? []) waiter.reject(full)
      this.waiters.delete(segment)
      return
    }
    this.fail(error)
  }

  fail(error: unknown): void {
    if (this.failure !== undefined) return
    const failure = error instanceof Error ? error : new Error(String(error))
    this.failure = failure
    for (const waiting of this.waiters.values()) {
      for (const waiter of waiting) waiter.reject(failure)
    }
    this.waiters.clear()
    this.env.failed(failure)
  }

  private putOffFor(segment: Segment): void {
    const before = this.putOff.get(segment)?.ms ?? 0
    const ms = Math.min(RETRY_MS_MOST, Math.max(RETRY_MS_LEAST, 2 * before))
    this.putOff.set(segment, { until: this.env.clock.monotonic() + ms, ms })
  }

  private flushLargest(): void {
    let largest: Segment | undefined
    for (const segment of this.dirty) {
      if (this.running.has(segment) || this.putOff.has(segment)) continue
      if (segment.writer.flushableBytes > (largest?.writer.flushableBytes ?? 0)) largest = segment
    }
    if (largest !== undefined) this.want(largest, 'all')
  }

  private get tickMs(): number {
    const ms = Math.max(5, Math.floor(this.env.options.flushAgeMs / 4))
    return Math.min(ms, RETRY_MS_LEAST)
  }

  private schedule(): void {
    if (this.timer !== undefined || this.dirty.size === 0 || this.closed) return
    if (this.failure !== undefined) return
    this.timer = this.env.clock.after(this.tickMs, () => this.tick())
  }

  private tick(): void {
    this.timer = undefined
    this.flushOld()
    this.walGrew()
    this.pump()
    this.schedule()
  }

  /** As many of the oldest as there must be for each to be in time: those that became dirty together go one after another. */
  private flushOld(): void {
    const { tickMs } = this
    const { flushAgeMs } = this.env.options
    const now = this.env.clock.monotonic()
    const ageOf = ({ writer }: Segment): number => now - (writer.dirtySince ?? now)
    const aging = [...this.dirty].filter(
      (segment) =>
        ageOf(segment) * 2 >= flushAgeMs &&
        (segment.writer.flushableBytes > 0 || segment.writer.unsyncedBytes > 0),
    )
    aging.sort((a, b) => ageOf(b) - ageOf(a))
    let share = 0
    for (const [i, segment] of aging.entries()) {
      const ticksLeft = Math.max(1, (flushAgeMs - ageOf(segment)) / tickMs)
      share = Math.max(share, Math.ceil((i + 1) / ticksLeft))
    }
    for (const segment of aging.slice(0, share)) this.want(segment, 'synced')
  }
}

/** What is damaged, when that is why something failed: one segment's damage must not keep the others from being served. */
async function damageOf(work: Promise<void>): Promise<string | undefined> {
  try {
    await work
    return undefined
  } catch (error) {
    if (error instanceof EastGuardError && error.code === 'DAMAGED') return error.message
    throw error
  }
}
