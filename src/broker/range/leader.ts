// The leader of one active range: numbers entries, sends them to the followers, answers producers as the high watermark moves.
// What may be done to the open segment is core/segment's to say (SegmentLeader); this does it.
//
//   produce ── numbered ──> WAL + followers ── durable everywhere ──> answered
//        └── held: loading, no lease, an end on its way, no room
//
//   limits reached, a follower failed, asked by the coordinator ──> an end is given ──> the coordinator rolls
//        ──applied──> the successor is open: led here still, and what is held goes on; or elsewhere, and it is told so
//
// One group commit calls `durable` once: the high watermark becomes the least durable end over the replicas, producers
// are answered in entry order, and whoever waits for a partition wakes once. Nothing here makes a promise, a closure or
// a map entry for a produce; the entry itself is the only object.

import { pauseMs } from '../../core/segment/avoided.ts'
import { SegmentLeader } from '../../core/segment/leader.ts'
import type { EndReason } from '../../core/segment/types.ts'
import {
  batchFault,
  NO_PRODUCER,
  placeBatch,
  producerId,
  recordCount,
} from '../../model/batch/header.ts'
import { ENVELOPE_BYTES, type Entry } from '../../model/entry.ts'
import type { NodeId } from '../../model/ids.ts'
import type { SegmentLog } from '../../storage/types.ts'
import type { Sending } from '../replica/sending.ts'
import { ACKS_ALL, type ProduceSink } from '../sinks.ts'
import type { RangeContext } from './context.ts'
import type { Fault, RangeCopy, RangeRole } from './copy.ts'
import { EndKeeper } from './end-keeper.ts'
import { type HeldProduce, HeldQueue } from './held.ts'
import { Retries } from './retries.ts'

/** Numbered and not committed, of one segment: more must wait. */
const IN_FLIGHT_BYTES_MAX = 32 * 1024 * 1024
/** The coordinator says so again while it is so. */
const REFUSED_FOR_MS = 1000
/** Without a lease for so long, somebody else may well lead: producers should look. */
const UNLEASED_PATIENCE_MS = 2000
/** A full segment whose end led to nothing takes more for so long, and for longer each time. */
const ROLL_AGAIN_LEAST_MS = 1000

export class RangeLeader implements RangeRole {
  readonly copy: RangeCopy
  readonly context: RangeContext
  /** Undefined: the segment is from before this broker's start, and never continued. */
  segment: SegmentLeader | undefined
  private readonly held: HeldQueue
  private readonly retries = new Retries()
  private readonly ends: EndKeeper
  private readonly sending: Sending
  private logTimeBase = 0
  private logTimeAnchor = 0
  /** When that was last seen, or the segment opened. */
  private leasedAtMs = 0
  /** Ends of this segment that were taken back. */
  private takenBack = 0
  private rollAfterMs = 0
  private refusal: { readonly fault: Fault; readonly untilMs: number } | undefined

  constructor(copy: RangeCopy) {
    this.copy = copy
    this.context = copy.context
    this.held = new HeldQueue(this.context.held)
    this.ends = new EndKeeper(this)
    this.sending = this.context.sendings.of(this)
    this.opened()
    if (copy.state !== undefined) this.loaded()
  }

  get followers(): readonly NodeId[] {
    return this.copy.open.replicas.slice(1)
  }

  /** The copy's open segment is one that this broker leads, and it was not led before. */
  opened(): void {
    const { copy } = this
    this.ends.clear()
    this.refusal = undefined
    this.takenBack = 0
    this.rollAfterMs = 0
    this.leasedAtMs = this.context.clock.monotonic()
    const { timing } = this.context
    const { attempt } = copy.open
    this.segment = copy.fenced
      ? undefined
      : new SegmentLeader({ followers: this.followers, attempt, timing })
    this.sending.open(this.segment)
    this.resumeHeld()
  }

  /** Log time goes on from where the fold says that it stood. */
  loaded(): void {
    const { state, open } = this.copy
    // A wall clock that somebody set forward must not make every producer look idle: it counts for the first entry only.
    this.logTimeBase =
      state !== undefined && state.logTimeMs > 0 ? state.logTimeMs : open.openedAtMs
    this.logTimeAnchor = this.context.clock.monotonic()
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
    const fault = batchFault(batch, this.copy.topic.policy.maxMessageBytes)
    if (fault !== undefined) {
      sink.refused(slot, fault.code, fault.message)
      return
    }
    if (
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
    const { copy, segment, context } = this
    const { state } = copy
    // A segment of this boot that has no fold yet is one whose state is loaded from what was staged.
    if (state === undefined || segment === undefined || !segment.mayAppend) return false
    if (acks === ACKS_ALL && this.tooFew()) {
      sink.refused(slot, 'NOT_ENOUGH_REPLICAS', this.tooFewText())
      return true
    }
    if (!context.leased(copy.key)) return false
    if (producerId(batch) !== NO_PRODUCER) {
      const verdict = state.check(partition, batch)
      if (verdict !== 'accept') {
        this.retries.answer(verdict, state, this.logTime(), sink, slot)
        return true
      }
    }
    if (copy.pending.bytes > IN_FLIGHT_BYTES_MAX) return false
    const room = context.store.room(batch.length + ENVELOPE_BYTES)
    if (room === 'wait') return false
    if (room === 'full') {
      sink.refused(slot, 'STORAGE_FULL', 'the disk of the broker is full')
      return true
    }
    const log = copy.openLog()
    const now = context.clock.monotonic()
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
    copy.append(entry, sink, slot, acks)
    segment.appended(now)
    this.sending.appended()
    context.totals.batches++
    context.totals.bytes += batch.length
    if (this.isFull(log, now)) this.roll('full')
    return true
  }

  private tooFew(): boolean {
    const { open, topic } = this.copy
    return open.replicas.length < topic.policy.minInsyncReplicas
  }

  private tooFewText(): string {
    const { open, topic } = this.copy
    const { minInsyncReplicas } = topic.policy
    return `${this.copy.name} has ${open.replicas.length} replicas, min_insync_replicas is ${minInsyncReplicas}`
  }

  private isFull(log: SegmentLog, now: number): boolean {
    if (now < this.rollAfterMs) return false
    const policy = this.copy.topic.policy
    return (
      log.end >= policy.segmentEntries ||
      log.bytes >= policy.segmentBytes ||
      now - (log.firstAppendAt ?? now) >= policy.segmentMs
    )
  }

  /** Whole milliseconds of the range's log time: only the monotonic clock moves it on. */
  private logTime(now: number = this.context.clock.monotonic()): number {
    return this.logTimeBase + Math.floor(now - this.logTimeAnchor)
  }

  // What comes of entries.

  durable(): void {
    const { segment, copy } = this
    if (segment === undefined || copy.log === undefined) return
    const { durableEnd } = copy.log
    segment.durable(durableEnd)
    if (segment.highWatermark < durableEnd) copy.pending.answerLeaderAcks(durableEnd)
    this.moved()
  }

  acked(node: NodeId, end: number): void {
    this.segment?.acked(node, end, this.context.clock.monotonic())
    this.moved()
  }

  failed(node: NodeId, why: string): void {
    this.segment?.failed(node, why)
    this.moved()
  }

  /** Something about the segment has changed. */
  moved(): void {
    const { segment, copy } = this
    if (segment === undefined) return
    const before = copy.log?.highWatermark ?? 0
    if (segment.highWatermark > before) {
      copy.commitTo(segment.highWatermark)
      this.retries.committed(segment.highWatermark, this.logTime())
      this.sending.committed()
      if (this.held.size > 0) this.resumeHeld()
    }
    this.ends.moved()
  }

  // The end of the segment.

  /** From now on produces wait. */
  roll(why: EndReason): void {
    this.segment?.roll(why)
    this.moved()
  }

  /** Rolls a segment that nobody writes to any more when it is older than its topic allows. */
  rollWhenOld(): void {
    const { log } = this.copy
    if (this.segment?.mayAppend !== true || log === undefined || log.end === 0) return
    if (this.isFull(log, this.context.clock.monotonic())) this.roll('old')
  }

  /** The metadata has changed, and the segment is open still. */
  learned(): void {
    const given = this.segment?.given
    this.segment?.learned({ state: 'open', attempt: this.copy.open.attempt })
    if (given !== undefined && this.segment?.mayAppend === true) {
      const pause = pauseMs(++this.takenBack, ROLL_AGAIN_LEAST_MS)
      this.rollAfterMs = this.context.clock.monotonic() + pause
    }
    this.moved()
    this.resumeHeld()
  }

  /** The end that was given, or would be, leads to nothing now: for a while whoever would wait is told so. */
  endRefused(fault: Fault): void {
    if (this.segment?.mayAppend === true) return
    this.refusal = { fault, untilMs: this.context.clock.monotonic() + REFUSED_FOR_MS }
    this.refuseWaiting(fault)
  }

  /** Those in flight too: their entries stay, and a retry of one waits for its outcome or is answered with it. */
  private refuseWaiting(fault: Fault): void {
    const { code, message, redirect } = fault
    const tell = (sink: ProduceSink, slot: number): void => {
      sink.refused(slot, code, message, redirect)
    }
    this.copy.pending.giveUpWaiting(tell)
    this.retries.clear(tell)
    this.refuseHeld(fault)
  }

  private refuseHeld({ code, message, redirect }: Fault): void {
    for (let h = this.held.shift(); h !== undefined; h = this.held.shift()) {
      h.sink.refused(h.slot, code, message, redirect)
    }
    this.context.holding.delete(this)
  }

  /** What was fenced here, as far as this broker knows, had so many entries. */
  fence(): number {
    return this.segment?.fence() ?? this.copy.end
  }

  // Produces that wait.

  private hold(held: HeldProduce): void {
    const fault = this.copy.fault ?? this.refusedEnd()
    if (fault !== undefined) {
      held.sink.refused(held.slot, fault.code, fault.message, fault.redirect)
      return
    }
    if (!this.held.push(held)) {
      const message = 'too many produces wait in this broker for its disk'
      held.sink.refused(held.slot, 'TOO_MANY_REQUESTS', message)
      return
    }
    this.context.holding.add(this)
    this.wakeUp()
  }

  private refusedEnd(): Fault | undefined {
    if (this.refusal === undefined || this.segment?.mayAppend === true) return undefined
    return this.context.clock.monotonic() < this.refusal.untilMs ? this.refusal.fault : undefined
  }

  /** A held produce starts what it waits for. */
  private wakeUp(): void {
    const { context, copy } = this
    if (this.segment === undefined || !context.leased(copy.key)) context.hooks.waits?.(copy.key)
    // Failing leaves the range broken or to be tried by the next produce; either way it tells the held itself.
    this.copy.ensureLoaded()?.then(
      () => this.resumeHeld(),
      () => {},
    )
  }

  /** Something has changed: take as many of the waiting produces as may go on. */
  resumeHeld(): void {
    let taken = false
    for (;;) {
      const h = this.held.peek()
      if (h === undefined) break
      const { partition, batch, leastKeyHash, greatestKeyHash, acks, sink, slot } = h
      if (!this.take(partition, batch, leastKeyHash, greatestKeyHash, acks, sink, slot)) break
      this.held.shift()
      taken = true
    }
    if (this.held.size === 0) this.context.holding.delete(this)
    else if (this.copy.state === undefined) this.wakeUp()
    if (taken) this.context.store.commit()
  }

  /** Every few tens of milliseconds while something is held. */
  expireHeld(now: number): void {
    this.held.expire(now, (held) => {
      this.context.counters.heldTimeouts.add(1)
      held.sink.refused(held.slot, 'TIMEOUT', `the range was ${this.waitsFor()} for too long`)
    })
    this.lookForLease(now)
    this.resumeHeld()
    if (this.held.size > 0 && this.segment === undefined) this.wakeUp()
  }

  /** While somebody waits: nobody should for a leader that is none any more. */
  lookForLease(now: number): void {
    const { copy } = this
    if (this.segment === undefined || this.unleasedForMs(now) < UNLEASED_PATIENCE_MS) return
    const message = `${copy.name}: its coordinator does not confirm to this broker that it leads; it cannot be reached, or another broker leads now`
    this.refuseWaiting({ code: 'NOT_LEADER', message })
  }

  /** 0: it has a lease now. */
  unleasedForMs(now: number): number {
    if (this.segment !== undefined && this.context.leased(this.copy.key)) this.leasedAtMs = now
    return now - this.leasedAtMs
  }

  private waitsFor(): string {
    if (this.copy.state === undefined) return 'loading'
    if (this.segment?.mayAppend !== true) return 'rolling'
    return this.context.leased(this.copy.key) ? 'waiting for room' : 'without a lease'
  }

  /** The broker does not lead the range any more, or the range is gone. */
  ended(fault: Fault): void {
    const { code, message, redirect } = fault
    this.ends.clear()
    this.sending.close()
    this.retries.clear((sink, slot) => sink.refused(slot, code, message, redirect))
    this.refuseHeld(fault)
  }

  /** What was sealed at this end acknowledges all below. */
  sealed(end: number): void {
    this.segment?.learned({ state: 'sealed', endEntry: end })
    this.ends.clear()
    this.retries.committed(end, this.logTime())
    // Entries of the next segment bear the same numbers.
    const message = `${this.copy.name} was sealed before the batch had been replicated`
    this.retries.clear((sink, slot) => sink.refused(slot, 'NOT_LEADER', message))
  }
}
