// A place in one partition from which a reader goes on, across segments and ranges. At the tail everything is in memory
// and `next` answers at once; further back it is a promise of what the file holds.
//
//   segment 1 (sealed)   segment 2 (sealed)   segment 3 (open)
//   [0 ......... 812)    [812 ....... 1630)   [1630 ... hw)
//                  ^ cursor: finds its segment in the metadata, stays on it until that has no more, finds the next

import { EastGuardError } from '../../base/errors.ts'
import {
  activeRange,
  rangeByNumber,
  segmentAt,
  segmentByNumber,
} from '../../core/metadata/lookup.ts'
import type { Range, Segment } from '../../core/metadata/types.ts'
import { isHole } from '../../model/batch/hole.ts'
import type { Entry } from '../../model/entry.ts'
import { redirectError } from '../../model/redirect.ts'
import type { SegmentLog } from '../../storage/types.ts'
import type { RangeContext } from '../range/context.ts'
import type { RangeCopy } from '../range/copy.ts'
import { RangeLeader } from '../range/leader.ts'
import { isOverruled } from '../replica/seals.ts'
import type { Watcher } from '../sinks.ts'
import type { TopicRuntime } from '../topics/runtime.ts'
import { isStale } from './staleness.ts'

const NOTHING: readonly Entry[] = []

export class Cursor {
  readonly runtime: TopicRuntime
  readonly partition: number
  offset: number
  private readonly context: RangeContext
  private log: SegmentLog | undefined
  private watched: RangeCopy | undefined

  constructor(context: RangeContext, runtime: TopicRuntime, partition: number, offset: number) {
    this.context = context
    this.runtime = runtime
    this.partition = partition
    this.offset = offset
  }

  get logStart(): number {
    return this.runtime.topic.logStartOffsets[this.partition] ?? 0
  }

  /** The offset below which all is committed, as far as is known here; a promise while the range loads. */
  highWatermark(): number | Promise<number> {
    const copy = this.copy()
    const loading = copy?.ensureLoaded()
    if (copy === undefined || loading === undefined) return this.committedEnd()
    return this.loaded(copy, loading).then(() => this.highWatermark())
  }

  /** A range that turned out to be broken still has its sealed segments. */
  private loaded(copy: RangeCopy, loading: Promise<void>): Promise<void> {
    return loading.catch((error: unknown) => {
      if (copy.status !== 'broken') throw error
    })
  }

  /** Why the partition has no end that could be told: its open segment is damaged, or not here. */
  get broken(): EastGuardError | undefined {
    const copy = this.copy()
    if (copy === undefined) return this.elsewhere(this.openSegment())
    const { status, fault } = copy
    if (status !== 'broken' || fault === undefined) return this.staleness(copy)
    // Of several replicas another may be sound.
    const { open } = copy
    if (open.replicas.length > 1) return this.elsewhere(open)
    return new EastGuardError(fault.code, fault.message)
  }

  /** Why this broker cannot say where the partition ends; undefined: it can. The range must have answered before. */
  get endUnknown(): EastGuardError | undefined {
    const copy = this.copy()
    if (copy === undefined || copy.status !== 'live' || this.knowsTheEnd) return this.broken
    const { open } = copy
    const leader = `topic ${this.runtime.topic.name}, partition ${this.partition}: only the leader knows its end`
    const brokers = this.context.reachable(open.replicas.slice(0, 1))
    return redirectError('NOT_LEADER', leader, { segment: open.segment, brokers })
  }

  /** For a range that has answered before. Without a copy: what is sealed is committed. */
  committedEnd(): number {
    const copy = this.copy()
    if (copy === undefined) return this.firstOffset(this.openSegment())
    return copy.state === undefined
      ? this.firstOffset(copy.open)
      : copy.committedEnd(this.partition)
  }

  /** Why the reader may not stand where it does; undefined: it may. The range must have answered before. */
  misplaced(): EastGuardError | undefined {
    const end = this.committedEnd()
    if (this.offset < this.logStart) return this.outOfRange(end)
    if (this.offset <= end || !this.knowsTheEnd || this.mayBeSealed) return undefined
    return this.outOfRange(end)
  }

  /** The end that this leader gave, or a coordinator found when it restarted, may have committed, and others be further. */
  private get mayBeSealed(): boolean {
    const { role } = this.copy() ?? {}
    return role instanceof RangeLeader && (role.segment?.mayBeSealed ?? true)
  }

  /** Resolves when what this broker knows of the end is all that anybody was told before; for a leader whose segment may be sealed. */
  async learnEnd(): Promise<void> {
    if (!this.mayBeSealed) return
    await this.context.metadata.fresh({ topicId: this.runtime.topic.topicId })
  }

  /** Only the leader that has a lease of the open segment can say that there is nothing more. */
  private get knowsTheEnd(): boolean {
    const copy = this.copy()
    return (
      copy?.role instanceof RangeLeader &&
      copy.status === 'live' &&
      copy.state !== undefined &&
      (copy.open.replicas.length === 1 || (!copy.fenced && this.context.leased(copy.key)))
    )
  }

  /**
   * Entries from the one that holds `offset` on: at least one if any is committed there, then as many as fit `maxBytes`;
   * empty at the high watermark. Throws or rejects with UNKNOWN_TOPIC, OFFSET_OUT_OF_RANGE, NOT_REPLICA, DAMAGED.
   */
  next(maxBytes: number): readonly Entry[] | Promise<readonly Entry[]> {
    const copy = this.copy()
    const loading = copy?.ensureLoaded()
    if (copy !== undefined && loading !== undefined) {
      return this.loaded(copy, loading).then(() => this.next(maxBytes))
    }
    const end = this.committedEnd()
    const misplaced = this.misplaced()
    if (misplaced !== undefined) throw misplaced
    if (this.offset >= end) {
      const { broken } = this
      if (broken !== undefined) throw broken
      return NOTHING
    }
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
    let entries: readonly Entry[]
    try {
      entries = await log.read(this.partition, this.offset, maxBytes)
    } catch (error) {
      return this.notRead(log, error, maxBytes)
    }
    if (entries.length > 0) return this.withoutHoles(entries)
    if (log !== this.log) return this.next(maxBytes)
    const next = this.locate()
    if (next === log) throw this.missing(log)
    this.log = next
    return this.next(maxBytes)
  }

  private notRead(
    log: SegmentLog,
    error: unknown,
    maxBytes: number,
  ): readonly Entry[] | Promise<readonly Entry[]> {
    // What was read may have been dropped meanwhile; then that is the answer.
    this.copy()
    if (this.offset < this.logStart) throw this.outOfRange(this.committedEnd())
    const why = this.unreadable(log, error)
    if (why !== undefined) throw why
    this.log = undefined
    return this.next(maxBytes)
  }

  /**
   * What a reader is told of `log`, which could not be read. Undefined: it was dropped, given away or copied anew meanwhile, so
   * what was looked for is where the metadata says by now, and nobody is out of range.
   */
  unreadable(log: SegmentLog, error: unknown): unknown {
    this.copy()
    return this.context.store.find(log.key) === log ? this.damagedHere(log, error) : undefined
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
    const log = this.logOf(place.range, place.segment)
    if (log !== undefined) return log
    const { name } = this.runtime.topic
    throw new EastGuardError(
      'DAMAGED',
      `topic ${name}, partition ${this.partition}, segment ${place.segment.segment}: its data is not on this disk`,
    )
  }

  /** All that is committed of a segment; undefined: it has no entries here. Throws NOT_REPLICA when others have more, DAMAGED when nobody else has it. */
  logOf({ range }: Range, wanted: Segment): SegmentLog | undefined {
    const { topicId, name } = this.runtime.topic
    const { segment, endEntry, replicas } = wanted
    const log = this.context.store.find({ topicId, range, segment })
    const whole =
      endEntry === undefined ||
      ((log?.highWatermark ?? 0) >= endEntry && (log === undefined || !isOverruled(log, endEntry)))
    if (log?.damage === undefined && whole) return log
    if (log?.damage !== undefined) this.context.damaged(log.key)
    if (replicas.some((node) => node !== this.context.nodeId)) throw this.elsewhere(wanted)
    const what = log?.damage ?? 'its data is not on this disk'
    throw new EastGuardError(
      'DAMAGED',
      `topic ${name}, partition ${this.partition}, segment ${segment}: ${what}`,
    )
  }

  /** What is damaged here is read elsewhere, and mended. */
  private damagedHere(log: SegmentLog, error: unknown): unknown {
    if (!(error instanceof EastGuardError) || error.code !== 'DAMAGED') return error
    this.context.damaged(log.key)
    const range = rangeByNumber(this.runtime.topic, log.key.range)
    const segment = range === undefined ? undefined : segmentByNumber(range, log.key.segment)
    const others = segment?.replicas.some((node) => node !== this.context.nodeId) ?? false
    return segment !== undefined && others ? this.elsewhere(segment) : error
  }

  /** Where else the segment is. */
  private elsewhere({ segment, replicas }: Segment): EastGuardError {
    const others = replicas.filter((node) => node !== this.context.nodeId)
    const message = `topic ${this.runtime.topic.name}, partition ${this.partition}: this broker cannot read segment ${segment}, others have it`
    return redirectError('NOT_REPLICA', message, {
      segment,
      brokers: this.context.reachable(others),
    })
  }

  /** A replica that has not been told for long that it is up to date may lack much. */
  private staleness(copy: RangeCopy): EastGuardError | undefined {
    return isStale(copy) ? this.elsewhere(copy.open) : undefined
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

  private openSegment(): Segment {
    const { runtime, partition } = this
    const open = runtime.openSegment(partition)
    if (open !== undefined) return open
    throw new EastGuardError(
      'UNKNOWN_PARTITION',
      `the topic ${runtime.topic.name} has no partition ${partition}`,
    )
  }

  private firstOffset({ firstOffsets }: Segment): number {
    const range = activeRange(this.runtime.topic, this.partition)
    return firstOffsets[this.partition - (range?.firstPartition ?? 0)] ?? 0
  }

  /** Undefined when this broker has no replica of the open segment. */
  private copy(): RangeCopy | undefined {
    const { runtime, partition } = this
    if (runtime.deleted) {
      throw new EastGuardError('UNKNOWN_TOPIC', `the topic ${runtime.topic.name} was deleted`)
    }
    const copy = runtime.copyOf(partition)
    if (copy === undefined) {
      this.openSegment()
      return undefined
    }
    // Others have it now; this broker may have sealed segments still.
    if (copy.fault?.code === 'NOT_LEADER') return undefined
    if (copy.fault !== undefined && copy.status === 'gone') {
      throw new EastGuardError(copy.fault.code, copy.fault.message)
    }
    return copy
  }

  /** Wakes `watcher` once when more is committed, or when the partition's state changes otherwise. */
  watch(watcher: Watcher): void {
    const copy = this.copy()
    if (copy === undefined) {
      // Nobody here will hear of more.
      watcher.wake()
      return
    }
    copy.watchers.add(this.partition, watcher)
    copy.context.watched.add(copy)
    this.watched = copy
  }

  unwatch(watcher: Watcher): void {
    this.watched?.watchers.remove(this.partition, watcher)
    this.watched = undefined
  }
}
