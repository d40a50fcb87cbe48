// A place in one partition from which a reader goes on, across segments and ranges. At the tail everything is in memory
// and `next` answers at once; further back it is a promise of what the file holds.
//
//   segment 1 (sealed)   segment 2 (sealed)   segment 3 (open)
//   [0 ......... 812)    [812 ....... 1630)   [1630 ... hw)
//                  ^ cursor: finds its segment in the metadata, stays on it until that has no more, finds the next

import { EastGuardError } from '../../base/errors.ts'
import { segmentAt } from '../../core/metadata/lookup.ts'
import { isHole } from '../../model/batch/hole.ts'
import type { Entry } from '../../model/entry.ts'
import type { LogStore, SegmentLog } from '../../storage/types.ts'
import type { RangeLeader } from '../range/leader.ts'
import type { Watcher } from '../sinks.ts'
import type { TopicRuntime } from '../topics/runtime.ts'

const NOTHING: readonly Entry[] = []

export class Cursor {
  readonly runtime: TopicRuntime
  readonly partition: number
  offset: number
  private readonly store: LogStore
  private log: SegmentLog | undefined
  private watched: RangeLeader | undefined

  constructor(store: LogStore, runtime: TopicRuntime, partition: number, offset: number) {
    this.store = store
    this.runtime = runtime
    this.partition = partition
    this.offset = offset
  }

  get logStart(): number {
    return this.runtime.topic.logStartOffsets[this.partition] ?? 0
  }

  /** The offset below which all is committed; a promise while the range loads. */
  highWatermark(): number | Promise<number> {
    const leader = this.leader()
    const loading = leader.ensureLoaded()
    if (loading === undefined) return leader.committedEnd(this.partition)
    return this.loaded(leader, loading).then(() => this.highWatermark())
  }

  /** A range that turned out to be broken still has its sealed segments. */
  private loaded(leader: RangeLeader, loading: Promise<void>): Promise<void> {
    return loading.catch((error: unknown) => {
      if (leader.mode !== 'broken') throw error
    })
  }

  /** Why the partition has no end that could be told: its open segment is damaged. */
  get broken(): EastGuardError | undefined {
    const { mode, fault } = this.leader()
    return mode === 'broken' && fault !== undefined
      ? new EastGuardError(fault.code, fault.message)
      : undefined
  }

  /** For a range that has answered before. */
  committedEnd(): number {
    return this.leader().committedEnd(this.partition)
  }

  /**
   * Entries from the one that holds `offset` on: at least one if any is committed there, then as many as fit `maxBytes`;
   * empty at the high watermark. Throws or rejects with UNKNOWN_TOPIC, OFFSET_OUT_OF_RANGE, DAMAGED.
   */
  next(maxBytes: number): readonly Entry[] | Promise<readonly Entry[]> {
    const leader = this.leader()
    const loading = leader.ensureLoaded()
    if (loading !== undefined) {
      return this.loaded(leader, loading).then(() => this.next(maxBytes))
    }
    const end = leader.committedEnd(this.partition)
    const { broken } = this
    if (broken !== undefined && this.offset >= end) throw broken
    if (this.offset < this.logStart || this.offset > end) throw this.outOfRange(end)
    if (this.offset === end) return NOTHING
    if (this.log !== undefined) {
      const entries = this.log.readCached(this.partition, this.offset, maxBytes)
      if (entries === undefined) return this.readFile(this.log, maxBytes)
      if (entries.length > 0) return entries
    }
    this.log = this.locate()
    const entries = this.log.readCached(this.partition, this.offset, maxBytes)
    if (entries === undefined) return this.readFile(this.log, maxBytes)
    if (entries.length === 0) throw this.missing(this.log)
    return entries
  }

  /** After entries were handed on. */
  passed(entries: readonly Entry[]): void {
    const last = entries[entries.length - 1]
    if (last !== undefined) this.offset = last.baseOffset + last.recordCount
  }

  private async readFile(log: SegmentLog, maxBytes: number): Promise<readonly Entry[]> {
    const entries = await log
      .read(this.partition, this.offset, maxBytes)
      .catch((error: unknown) => {
        // What was read may have been dropped meanwhile; then that is the answer.
        this.leader()
        if (this.offset < this.logStart) throw this.outOfRange(this.committedEnd())
        throw error
      })
    if (entries.length > 0) return this.withoutHoles(entries)
    if (log !== this.log) return this.next(maxBytes)
    const next = this.locate()
    if (next === log) throw this.missing(log)
    this.log = next
    return this.next(maxBytes)
  }

  /** What lies before the first hole; in a hole, where it ends. */
  private withoutHoles(entries: readonly Entry[]): readonly Entry[] {
    const hole = entries.findIndex(({ batch, recordCount }) => recordCount > 0 && isHole(batch))
    const some = hole < 0 ? entries : entries.slice(0, hole)
    // A lost entry whose offsets nobody knows takes none.
    if (some.length > 0) return some.filter(({ batch }) => !isHole(batch))
    let nextOffset = this.offset
    for (const { batch, baseOffset, recordCount } of entries) {
      if (!isHole(batch)) break
      nextOffset = baseOffset + recordCount
    }
    const { name } = this.runtime.topic
    throw new EastGuardError(
      'RECORDS_LOST',
      `topic ${name}, partition ${this.partition}: offsets ${this.offset} to ${nextOffset - 1} were lost; the next that can be read is ${nextOffset}`,
      { detail: { nextOffset } },
    )
  }

  private locate(): SegmentLog {
    const place = segmentAt(this.runtime.topic, this.partition, this.offset)
    if (place === undefined) throw this.outOfRange(this.committedEnd())
    const { topicId, name } = this.runtime.topic
    const { segment } = place.segment
    const log = this.store.find({ topicId, range: place.range.range, segment })
    if (log === undefined || log.damage !== undefined) {
      const what = log?.damage ?? 'its data is not on this disk'
      throw new EastGuardError(
        'DAMAGED',
        `topic ${name}, partition ${this.partition}, segment ${segment}: ${what}`,
      )
    }
    return log
  }

  private missing(log: SegmentLog): EastGuardError {
    const { name } = this.runtime.topic
    return new EastGuardError(
      'DAMAGED',
      `topic ${name}, partition ${this.partition}: offset ${this.offset} is missing in segment ${log.key.segment}`,
    )
  }

  private outOfRange(end: number): EastGuardError {
    const { name } = this.runtime.topic
    return new EastGuardError(
      'OFFSET_OUT_OF_RANGE',
      `topic ${name}, partition ${this.partition}: offset ${this.offset} is not within ${this.logStart} to ${end}`,
      { detail: { logStart: this.logStart, end } },
    )
  }

  private leader(): RangeLeader {
    const { runtime, partition } = this
    if (runtime.deleted) {
      throw new EastGuardError('UNKNOWN_TOPIC', `the topic ${runtime.topic.name} was deleted`)
    }
    const leader = runtime.leaderOf(partition)
    if (leader === undefined) {
      throw new EastGuardError(
        'UNKNOWN_PARTITION',
        `the topic ${runtime.topic.name} has no partition ${partition}`,
      )
    }
    if (leader.fault !== undefined && leader.mode !== 'broken')
      throw new EastGuardError(leader.fault.code, leader.fault.message)
    return leader
  }

  /** Wakes `watcher` once when more is committed, or when the partition's state changes otherwise. */
  watch(watcher: Watcher): void {
    const leader = this.leader()
    leader.watchers.add(this.partition, watcher)
    this.watched = leader
  }

  unwatch(watcher: Watcher): void {
    this.watched?.watchers.remove(this.partition, watcher)
    this.watched = undefined
  }
}
