// One active range as this broker has it, whatever its part: the fold, the log of the open segment, what is not committed yet,
// and who waits for more. It stays while the broker's part changes, from roll to roll and from follower to leader:
//
//   metadata ──> TopicRuntime ──> RangeCopy ── fold, log, watchers ──> Cursor
//                                     └── role: RangeLeader (numbers entries) or RangeFollower (takes them)
//
//   segment k  ── sealed at end ──>  segment k + 1
//     fold is exactly at end, and its digest the one
//     that was committed for k + 1: it goes on      else: the fold is loaded from the state staged for k + 1
//
// A segment from before this broker's start is fenced: readable, never continued (PROTOCOLS §5).

import { assert } from '../../base/assert.ts'
import { EastGuardError, type ErrorCode } from '../../base/errors.ts'
import { segmentByNumber } from '../../core/metadata/lookup.ts'
import type { Range, Segment, Topic } from '../../core/metadata/types.ts'
import { type RangeState, stateDigest } from '../../core/producers/range-state.ts'
import type { Entry } from '../../model/entry.ts'
import type { Redirect } from '../../model/redirect.ts'
import type { SegmentKey } from '../../model/segment-key.ts'
import type { SegmentListener, SegmentLog } from '../../storage/types.ts'
import type { ProduceSink } from '../sinks.ts'
import type { RangeContext } from './context.ts'
import { load } from './load.ts'
import { PendingRing } from './pending.ts'
import { Watchers } from './watchers.ts'

/** What whoever waits is told instead of an answer. */
export interface Fault {
  readonly code: ErrorCode
  readonly message: string
  readonly redirect?: Redirect
}

/** What the broker does with its copy. */
export interface RangeRole {
  /** The open segment's log is durable further than before. */
  durable(): void
  /** The fold is there. */
  loaded(): void
  /** The copy serves no more: whoever waits is told. */
  ended(fault: Fault): void
}

const NO_ROLE: RangeRole = { durable: () => {}, loaded: () => {}, ended: () => {} }

export class RangeCopy implements SegmentListener {
  readonly context: RangeContext
  readonly watchers: Watchers = new Watchers()
  /** Numbered and not committed. */
  readonly pending: PendingRing = new PendingRing()
  role: RangeRole = NO_ROLE
  topic: Topic
  range: Range
  /** The one that fold and log are of. */
  open: Segment
  key: SegmentKey
  /** What folds out of the entries; undefined until it is loaded. */
  state: RangeState | undefined
  /** The open segment's; undefined until its first entry. */
  log: SegmentLog | undefined
  /** The open segment is from before this broker's start. */
  fenced: boolean
  /** A coordinator has fenced it in this start: whichever coordinates the range now has to know. */
  fencedHere = false
  status: 'live' | 'gone' | 'broken' = 'live'
  /** Why one that is not live serves nothing. */
  fault: Fault | undefined
  /** How often the disk could not read what the fold is made of. */
  loadFailures = 0
  private loading: Promise<void> | undefined

  /** `fenced`: the segment may be one from before this broker's start. */
  constructor(context: RangeContext, topic: Topic, range: Range, fenced: boolean) {
    this.context = context
    this.topic = topic
    this.range = range
    this.open = openSegmentOf(range)
    this.key = { topicId: topic.topicId, range: range.range, segment: this.open.segment }
    this.fenced = fenced || context.store.find(this.key) !== undefined
  }

  get name(): string {
    return `topic ${this.topic.name}, range ${this.range.range}, segment ${this.open.segment}`
  }

  /** For logs. */
  get fields(): { readonly topic: string; readonly range: number; readonly segment: number } {
    return { topic: this.topic.name, range: this.range.range, segment: this.open.segment }
  }

  /** Entries of the open segment that are here. */
  get end(): number {
    return this.log?.end ?? this.context.store.find(this.key)?.end ?? 0
  }

  /** Resolves when the fold is there; undefined when it is already. Rejects when the range is broken. */
  ensureLoaded(): Promise<void> | undefined {
    if (this.state !== undefined || this.status !== 'live') return undefined
    this.loading ??= load(this).finally(() => {
      this.loading = undefined
    })
    return this.loading
  }

  /** With the log of what recovery found, if it found something. */
  begin(state: RangeState, log: SegmentLog | undefined): void {
    this.state = state
    this.log = log
    this.context.staged.forget(this.key)
    this.role.loaded()
  }

  /**
   * Offsets below it are committed and may be read. The fold must be loaded, or the range broken: then its sealed segments can
   * still be read.
   */
  committedEnd(partition: number): number {
    if (this.status === 'broken') {
      return this.open.firstOffsets[partition - this.range.firstPartition] ?? 0
    }
    assert(this.state !== undefined, 'the range is loaded before it is read')
    return this.state.committedOffset(partition)
  }

  openLog(): SegmentLog {
    this.log ??= this.context.store.create(this.key, this)
    return this.log
  }

  /** The next entry; who produced it is told when it is committed, if somebody waits. */
  append(entry: Entry, sink: ProduceSink | undefined, slot: number, acks: number): void {
    assert(this.state !== undefined, 'entries are appended to a loaded fold')
    this.openLog().append(entry)
    this.state.append(entry)
    this.pending.push(entry, sink, slot, acks)
  }

  durable(log: SegmentLog): void {
    if (log === this.log && this.status === 'live') this.role.durable()
  }

  /** Everything below is committed: at most what is durable here. */
  commitTo(highWatermark: number): void {
    const { log } = this
    if (log === undefined || highWatermark <= log.highWatermark) return
    log.advance(highWatermark)
    this.settle(highWatermark)
  }

  /** Producers are answered in entry order, and whoever waits for a partition wakes once. */
  private settle(end: number): void {
    assert(this.state !== undefined, 'entries are committed to a loaded fold')
    this.state.commit(end)
    const watched = !this.watchers.none
    for (;;) {
      const entry = this.pending.first()
      if (entry === undefined || entry.entryNumber >= end) break
      if (watched) this.watchers.touch(entry.partition)
      this.pending.commitFirst()
    }
    if (watched) this.watchers.wakeTouched()
  }

  /** The metadata changed; the same range. True: another segment is open now. */
  update(topic: Topic, range: Range): boolean {
    this.topic = topic
    this.range = range
    const open = openSegmentOf(range)
    const moved = open.segment !== this.open.segment
    if (moved) this.succeed(open)
    this.open = open
    // What was fenced had entries whose outcome nobody could wait for one by one. Whoever wakes has what is open now loaded.
    if (moved) this.watchers.wakeAll()
    return moved
  }

  private succeed(open: Segment): void {
    const { state, context, key } = this
    const log = this.log ?? context.store.find(key)
    const end = segmentByNumber(this.range, key.segment)?.endEntry
    // Whatever has become of the successor meanwhile.
    const whole = this.status === 'live' && this.sealedAt(end)
    const goesOn = whole && open.segment === key.segment + 1 && this.foldedAlike(open)
    if (end !== undefined) context.seals.seal(key, log, end)
    this.refusePending(end)
    context.over(key)
    this.log = undefined
    this.key = { ...key, segment: open.segment }
    this.fenced = !context.staged.has(this.key, open.token)
    this.fencedHere = false
    if (goesOn) {
      state?.begin(0)
      context.staged.forget(this.key)
    } else this.state = undefined
    if (this.status === 'broken') this.mend()
  }

  /** The commit of an end acknowledges all below it. False: the fold cannot go on from there. */
  private sealedAt(end: number | undefined): boolean {
    const { state, log } = this
    if (state === undefined || end === undefined) return false
    const upTo = Math.min(end, state.nextEntry)
    if (log !== undefined && upTo <= log.durableEnd && upTo > log.highWatermark) log.advance(upTo)
    this.settle(upTo)
    return state.nextEntry === end
  }

  /** Everybody folds the same as who staged the successor. A fold that differs is wrong by what was committed: the staged one is not. */
  private foldedAlike(open: Segment): boolean {
    const { state, context, fields } = this
    const alike = state !== undefined && stateDigest(state.encode()) === open.stateDigest
    const what = 'a range folded to another state than its holder, and goes on from the one staged'
    if (!alike) context.log.error(what, fields)
    return alike
  }

  /** `end` undefined: the segment was dropped already, and nobody knows here any more where it ended. */
  private refusePending(end: number | undefined): void {
    const message =
      end === undefined
        ? `${this.name} was sealed and dropped before this broker knew whether this batch had been stored`
        : `${this.name} was sealed before this batch had been replicated`
    const { segment, replicas } = openSegmentOf(this.range)
    const redirect = { segment, brokers: this.context.reachable(replicas.slice(0, 1)) }
    this.pending.clear((sink, slot) => sink.refused(slot, 'NOT_LEADER', message, redirect))
  }

  /** What was damaged is sealed and for repair to mend: the successor begins from what was staged for it. */
  private mend(): void {
    this.status = 'live'
    this.fault = undefined
    this.loadFailures = 0
  }

  break(what: string): EastGuardError {
    const message = `${this.name}: ${what}`
    this.context.log.error('a range cannot be served: it is damaged', {
      ...this.fields,
      damage: what,
    })
    this.stop('broken', { code: 'DAMAGED', message })
    return new EastGuardError('DAMAGED', message)
  }

  /** The topic was deleted, the broker has no part in the range any more, it stops, or damage was found. */
  stop(status: 'gone' | 'broken', fault: Fault): void {
    if (this.status === 'gone') return
    if (status === 'gone') this.context.over(this.key)
    this.status = status
    this.fault = fault
    this.context.census.note(this, false)
    const { code, message, redirect } = fault
    this.pending.clear((sink, slot) => sink.refused(slot, code, message, redirect))
    this.role.ended(fault)
    this.watchers.wakeAll()
  }
}

function openSegmentOf(range: Range): Segment {
  const segment = range.segments[range.segments.length - 1]
  assert(segment !== undefined, 'an active range has an open segment')
  return segment
}
