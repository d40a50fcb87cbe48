// The leader of one active range: numbers entries, keeps what is in flight, moves the high watermark.
//
//              produce                   produce waits              first produce
//   ┌────────┐         limits reached  ┌─────────┐               ┌────────┐
//   │  open  │ ──────────────────────> │ rolling │ <──────────── │ fenced │ <── restart
//   └────────┘ <────────────────────── └─────────┘               └────────┘
//                successor committed          any ──> gone (topic deleted) or broken (damage)
//
// One group commit calls `durable` once: the high watermark becomes the least durable end over the replicas, producers
// are answered in entry order, and whoever waits for a partition wakes once. Nothing here makes a promise, a closure or
// a map entry for a produce; the entry itself is the only object.
//
// After a restart the open segment is fenced: its recovered entries are readable, nothing is appended to it, and the range
// rolls on the first produce (PROTOCOLS §5). Loading, folding and rolling are in transitions.ts.

import { assert } from '../../base/assert.ts'
import type { ErrorCode } from '../../base/errors.ts'
import type { Range, Segment, Topic } from '../../core/metadata/types.ts'
import type { RangeState } from '../../core/producers/range-state.ts'
import {
  batchFault,
  NO_PRODUCER,
  placeBatch,
  producerId,
  recordCount,
} from '../../model/batch/header.ts'
import { ENVELOPE_BYTES, type Entry } from '../../model/entry.ts'
import type { SegmentListener, SegmentLog } from '../../storage/types.ts'
import type { ProduceSink } from '../sinks.ts'
import type { RangeContext } from './context.ts'
import { type HeldProduce, HeldQueue } from './held.ts'
import { PendingRing } from './pending.ts'
import { load, roll } from './transitions.ts'
import { Watchers } from './watchers.ts'

export type LeaderMode = 'open' | 'rolling' | 'fenced' | 'gone' | 'broken'

interface Retry {
  readonly entryNumber: number
  readonly baseOffset: number
  readonly sink: ProduceSink
  readonly slot: number
}

export class RangeLeader implements SegmentListener {
  readonly context: RangeContext
  readonly watchers: Watchers = new Watchers()
  topic: Topic
  range: Range
  mode: LeaderMode
  /** Why a broken range serves nothing. */
  fault: { readonly code: ErrorCode; readonly message: string } | undefined
  /** What folds out of the entries; undefined until it is loaded after a restart. */
  state: RangeState | undefined
  /** The open segment's log; undefined until its first entry. */
  log: SegmentLog | undefined
  /** The open segment is from before this broker's start: readable, never continued. */
  fenced: boolean
  /** A roll that failed is not tried again before. */
  rollAgainAt = 0
  /** How often the disk could not read what the fold is made of. */
  loadFailures = 0
  private loading: Promise<void> | undefined
  private readonly pending = new PendingRing()
  private readonly held: HeldQueue
  private retries: Retry[] = []
  /** Durable ends of the other replicas of the open segment: clustering fills it. */
  private readonly followerEnds: number[] = []
  private logTimeBase = 0
  private logTimeAnchor = 0

  constructor(context: RangeContext, topic: Topic, range: Range, fenced: boolean) {
    this.context = context
    this.topic = topic
    this.range = range
    this.held = new HeldQueue(context.held)
    this.fenced = fenced
    this.mode = fenced ? 'fenced' : 'open'
  }

  get openSegment(): Segment {
    const segment = this.range.segments[this.range.segments.length - 1]
    assert(segment !== undefined, 'an active range has an open segment')
    return segment
  }

  get idle(): boolean {
    return this.pending.size === 0
  }

  /** The fold was loaded or begun: log time goes on from where it stood. */
  begin(state: RangeState): void {
    this.state = state
    // A wall clock that somebody set forward must not make every producer look idle: it counts for the first entry only.
    this.logTimeBase = state.logTimeMs > 0 ? state.logTimeMs : this.openSegment.openedAtMs
    this.logTimeAnchor = this.context.clock.monotonic()
  }

  /** Resolves when the fold is there; undefined when it is already. Rejects when the range is broken. */
  ensureLoaded(): Promise<void> | undefined {
    if (this.state !== undefined || this.mode === 'broken') return undefined
    this.loading ??= load(this).finally(() => {
      this.loading = undefined
    })
    return this.loading
  }

  /**
   * Offsets below it are committed and may be read. The fold must be loaded, or the range broken: then its sealed segments can
   * still be read.
   */
  committedEnd(partition: number): number {
    if (this.mode === 'broken') {
      return this.openSegment.firstOffsets[partition - this.range.firstPartition] ?? 0
    }
    assert(this.state !== undefined, 'the range is loaded before it is read')
    return this.state.committedOffset(partition)
  }

  produce(
    partition: number,
    batch: Uint8Array,
    leastKeyHash: number,
    greatestKeyHash: number,
    acks: number,
    timeoutMs: number,
    sink: ProduceSink,
    slot: number,
  ): void {
    const fault = batchFault(batch, this.topic.policy.maxMessageBytes)
    if (fault !== undefined) {
      sink.refused(slot, fault.code, fault.message)
      return
    }
    if (
      this.mode === 'open' &&
      this.held.size === 0 &&
      this.take(partition, batch, leastKeyHash, greatestKeyHash, acks, sink, slot)
    ) {
      return
    }
    const deadline = this.context.clock.monotonic() + timeoutMs
    this.hold({ partition, batch, leastKeyHash, greatestKeyHash, acks, deadline, sink, slot })
  }

  /** Numbers and appends a checked batch, or answers it. False: it must wait. */
  private take(
    partition: number,
    batch: Uint8Array,
    leastKeyHash: number,
    greatestKeyHash: number,
    acks: number,
    sink: ProduceSink,
    slot: number,
  ): boolean {
    const state = this.state
    // A segment of this boot that has no fold yet is a fresh range whose state is loaded from what was staged.
    if (state === undefined) return false
    if (producerId(batch) !== NO_PRODUCER) {
      const verdict = state.check(partition, batch)
      if (verdict !== 'accept') {
        this.answerVerdict(verdict, sink, slot)
        return true
      }
    }
    const room = this.context.store.room(batch.length + ENVELOPE_BYTES)
    if (room === 'wait') return false
    if (room === 'full') {
      sink.refused(slot, 'STORAGE_FULL', 'the disk of the broker is full')
      return true
    }
    const log = this.log ?? this.createLog()
    const now = this.context.clock.monotonic()
    const baseOffset = state.nextOffset(partition)
    placeBatch(batch, baseOffset, log.key.segment)
    const entry: Entry = {
      entryNumber: log.end,
      partition,
      baseOffset,
      recordCount: recordCount(batch),
      logTimeMs: this.logTime(now),
      highWatermark: log.highWatermark,
      leastKeyHash,
      greatestKeyHash,
      batch,
    }
    log.append(entry)
    state.append(entry)
    this.pending.push(entry, sink, slot, acks)
    this.context.totals.batches++
    this.context.totals.bytes += batch.length
    if (this.isFull(log, now)) this.startRoll()
    return true
  }

  private isFull(log: SegmentLog, now: number): boolean {
    const policy = this.topic.policy
    return (
      log.end >= policy.segmentEntries ||
      log.bytes >= policy.segmentBytes ||
      now - (log.firstAppendAt ?? now) >= policy.segmentMs
    )
  }

  private answerVerdict(
    verdict: Exclude<ReturnType<RangeState['check']>, 'accept'>,
    sink: ProduceSink,
    slot: number,
  ): void {
    const state = this.state as RangeState
    switch (verdict) {
      case 'seen':
        sink.produced(slot, state.verdictOffset, this.logTime())
        return
      case 'pending':
        this.retries.push({
          entryNumber: state.verdictEntry,
          baseOffset: state.verdictOffset,
          sink,
          slot,
        })
        return
      case 'DUPLICATE_SEQUENCE':
        sink.refused(slot, verdict, 'the batch was stored earlier, before the last five')
        return
      case 'OUT_OF_ORDER_SEQUENCE':
        sink.refused(slot, verdict, 'the sequence does not follow the last batch of its producer')
        return
      case 'UNKNOWN_PRODUCER_ID':
        sink.refused(slot, verdict, 'the producer was idle for too long and is forgotten here')
        return
      case 'PRODUCER_FENCED':
        sink.refused(slot, verdict, 'a newer epoch of this producer has written here')
        return
    }
  }

  private createLog(): SegmentLog {
    const { topicId } = this.topic
    this.log = this.context.store.create(
      { topicId, range: this.range.range, segment: this.openSegment.segment },
      this,
    )
    return this.log
  }

  /** Whole milliseconds of the range's log time: only the monotonic clock moves it on. */
  private logTime(now: number = this.context.clock.monotonic()): number {
    return this.logTimeBase + Math.floor(now - this.logTimeAnchor)
  }

  durable(log: SegmentLog): void {
    if (log !== this.log || this.mode === 'gone') return
    let highWatermark = log.durableEnd
    for (const end of this.followerEnds) if (end < highWatermark) highWatermark = end
    if (highWatermark < log.durableEnd) this.pending.answerLeaderAcks(log.durableEnd)
    if (highWatermark <= log.highWatermark) return
    log.advance(highWatermark)
    this.commitTo(highWatermark)
    if (this.mode === 'rolling' && this.pending.size === 0) void roll(this)
  }

  private commitTo(highWatermark: number): void {
    assert(this.state !== undefined, 'entries are committed to a loaded fold')
    this.state.commit(highWatermark)
    const watched = !this.watchers.none
    for (;;) {
      const entry = this.pending.first()
      if (entry === undefined || entry.entryNumber >= highWatermark) break
      if (watched) this.watchers.touch(entry.partition)
      this.pending.commitFirst()
    }
    if (this.retries.length > 0) this.answerRetries(highWatermark)
    if (watched) this.watchers.wakeTouched()
  }

  private answerRetries(highWatermark: number): void {
    const retries = this.retries
    this.retries = retries.filter((retry) => retry.entryNumber >= highWatermark)
    for (const retry of retries) {
      if (retry.entryNumber >= highWatermark) continue
      retry.sink.produced(retry.slot, retry.baseOffset, this.logTime())
    }
  }

  /** From now on produces wait; the roll begins when what is in flight has committed. */
  startRoll(): void {
    if (this.mode !== 'open' && this.mode !== 'fenced') return
    if (this.context.clock.monotonic() < this.rollAgainAt) return
    this.mode = 'rolling'
    if (this.pending.size === 0) void roll(this)
  }

  /** The roll has committed: the successor is open and takes the produces that waited. */
  opened(): void {
    assert(
      this.mode === 'rolling' && this.pending.size === 0,
      'a roll opens with nothing in flight',
    )
    this.fenced = false
    this.log = undefined
    this.state?.begin(0)
    this.mode = 'open'
    this.resumeHeld()
  }

  /** The segment stays open; one of this boot goes on, a fenced one waits for the next try. */
  afterFailedRoll(): void {
    this.mode = this.fenced ? 'fenced' : 'open'
    if (!this.fenced) this.resumeHeld()
  }

  /** Rolls a segment that nobody writes to any more when it is older than its topic allows. */
  rollWhenOld(): void {
    const { log } = this
    if (this.mode !== 'open' || log === undefined || log.end === 0) return
    if (this.isFull(log, this.context.clock.monotonic())) this.startRoll()
  }

  private hold(held: HeldProduce): void {
    if (this.mode === 'gone' || this.mode === 'broken') {
      this.refuse(held)
      return
    }
    if (!this.held.push(held)) {
      held.sink.refused(
        held.slot,
        'TOO_MANY_REQUESTS',
        'too many produces wait in this broker for its disk',
      )
      return
    }
    this.context.holding.add(this)
    this.wakeUp()
  }

  /** A held produce starts what it waits for. */
  private wakeUp(): void {
    if (this.state === undefined) {
      // Failing leaves the range broken or to be tried by the next produce; either way it tells the held itself.
      this.ensureLoaded()?.then(
        () => this.resumeHeld(),
        () => {},
      )
    } else if (this.mode === 'fenced') this.startRoll()
  }

  /** Something has changed: take as many of the waiting produces as may go on. */
  resumeHeld(): void {
    if (this.held.size > 0 && this.mode === 'fenced') this.wakeUp()
    let taken = false
    for (;;) {
      const h = this.held.peek()
      if (h === undefined || this.mode !== 'open') break
      const { partition, batch, leastKeyHash, greatestKeyHash, acks, sink, slot } = h
      if (!this.take(partition, batch, leastKeyHash, greatestKeyHash, acks, sink, slot)) break
      this.held.shift()
      taken = true
    }
    if (this.held.size === 0) this.context.holding.delete(this)
    if (taken) this.context.store.commit()
  }

  expireHeld(now: number): void {
    this.held.expire(now, (held) => {
      this.context.counters.heldTimeouts.add(1)
      held.sink.refused(held.slot, 'TIMEOUT', `the range was ${this.waitsFor()} for too long`)
    })
    if (this.held.size === 0) this.context.holding.delete(this)
    else if (this.state === undefined || this.mode === 'fenced') this.wakeUp()
  }

  private waitsFor(): string {
    if (this.state === undefined) return 'loading'
    return this.mode === 'open' ? 'waiting for room' : 'rolling'
  }

  private refuse(held: { readonly sink: ProduceSink; readonly slot: number }): void {
    const fault = this.fault ?? { code: 'INTERNAL' as const, message: 'the range is closed' }
    held.sink.refused(held.slot, fault.code, fault.message)
  }

  /** The topic was deleted, the broker stops, or damage was found: everybody who waits is told. */
  end(mode: 'gone' | 'broken', code: ErrorCode, message: string): void {
    if (this.mode === 'gone') return
    this.mode = mode
    this.fault = { code, message }
    this.pending.clear((sink, slot) => sink.refused(slot, code, message))
    const retries = this.retries
    this.retries = []
    for (const retry of retries) this.refuse(retry)
    for (let h = this.held.shift(); h !== undefined; h = this.held.shift()) this.refuse(h)
    this.context.holding.delete(this)
    this.watchers.wakeAll()
  }

  /** The metadata changed; the same range, perhaps with another open segment. */
  update(topic: Topic, range: Range): void {
    this.topic = topic
    this.range = range
  }
}
