// The active ranges that this broker, as their coordinator, has something to do for. Most ranges are well and have no place here:
// a RangeCare is made when something happens to one, and dropped when it has been well for a while.
//
//   something happens ──> waiting: urgent │ calm ──a place is free──> under care ──well──> lingers ──> dropped
//
// A restart of one broker concerns every segment that it had. They are seen to a few at a time, those that producers wait for
// first; whoever waits repeats what it has to say, so only the newest of it is kept.

import { assert } from '../../base/assert.ts'
import { toHex } from '../../base/bytes.ts'
import type { Segment, Topic } from '../../core/metadata/types.ts'
import { RangeCare } from '../../core/segment/care.ts'
import type { Candidates, CareEffect, CareView } from '../../core/segment/care-types.ts'
import { Pace } from '../../core/segment/pace.ts'
import type { SegmentTiming } from '../../core/segment/types.ts'
import type { TopicId } from '../../model/ids.ts'
import type { SegmentKey } from '../../model/segment-key.ts'
import type { Clock } from '../../ports/clock.ts'
import type { Random } from '../../ports/random.ts'
import type { LedShard } from './led-shard.ts'
import type { RangeTrouble } from './types.ts'

/** Ranges under care at a time that are not stuck; of those, such as nobody waits for. */
const UNDER_CARE_MAX = 64
const CALM_MAX = 16
/** One that is well is kept so long: what it remembers of its leader may be of use. */
const LINGER_MS = 15_000
const TOKEN_BYTES = 16

export type RangeKey = Pick<SegmentKey, 'topicId' | 'range'>

/** What is said of a range, told to its care now or when it gets a place. */
export interface RangeEvent {
  /** A later one of the same name takes its place while it waits. */
  readonly name: string
  tell(care: RangeCare, nowMs: number): void
}

interface Waiting {
  readonly led: LedShard
  readonly key: RangeKey
  urgent: boolean
  readonly events: Map<string, RangeEvent>
}

export interface UnderCare {
  readonly led: LedShard
  readonly key: RangeKey
  readonly topicName: string
  readonly care: RangeCare
  readonly candidates: Candidates
  readonly urgent: boolean
  open: Segment
  /** It is well since. */
  idleMs: number | undefined
}

export interface RangeCaresOptions {
  readonly clock: Clock
  readonly random: Random
  readonly timing: SegmentTiming
  topic(topicId: TopicId): Topic | undefined
  /** Who may get a segment of the range. */
  candidatesOf(range: string): Candidates
  /** What a care wants done. */
  perform(one: UnderCare, effect: CareEffect): void
}

export class RangeCares {
  private readonly options: RangeCaresOptions
  private readonly under = new Map<string, UnderCare>()
  private readonly waiting = new Map<string, Waiting>()
  private readonly pace: Pace
  private stepping: UnderCare | undefined

  constructor(options: RangeCaresOptions) {
    this.options = options
    this.pace = new Pace(options.timing)
  }

  get size(): number {
    return this.under.size
  }

  get waits(): number {
    return this.waiting.size
  }

  /** Something happens to a range: it comes under care, at once if there is room. */
  see(led: LedShard, key: RangeKey, urgent: boolean, event?: RangeEvent): void {
    const text = textOf(key)
    const one = this.under.get(text)
    if (one !== undefined) {
      if (event !== undefined) event.tell(one.care, this.now)
      else one.care.brokers(one.candidates)
      this.step(one)
      return
    }
    const waiting = this.waiting.get(text) ?? { led, key, urgent, events: new Map() }
    waiting.urgent ||= urgent
    if (event !== undefined) waiting.events.set(event.name, event)
    this.waiting.set(text, waiting)
    this.fill()
  }

  /** Something that only matters to a range under care. */
  tell(key: RangeKey, tell: (care: RangeCare, nowMs: number) => void): void {
    const one = this.under.get(textOf(key))
    if (one === undefined) return
    tell(one.care, this.now)
    this.step(one)
  }

  /** By now its open segment. Undefined: nothing is done for it. */
  of(key: RangeKey): UnderCare | undefined {
    return this.under.get(textOf(key))
  }

  all(): Iterable<UnderCare> {
    return this.under.values()
  }

  /** The topic is other than before, or gone. */
  changed(topicId: TopicId): void {
    for (const one of Array.from(this.under.values())) {
      if (one.key.topicId !== topicId) continue
      const view = this.viewOf(one.key)
      if (view === undefined) {
        this.under.delete(textOf(one.key))
        continue
      }
      if (view.segment !== one.open) {
        one.open = view.segment
        one.care.applied(view, this.now)
      }
      this.step(one)
    }
  }

  /** This broker leads the shard no more, or in another term. */
  drop(led: LedShard): void {
    for (const [text, one] of this.under) if (one.led === led) this.under.delete(text)
    for (const [text, one] of this.waiting) if (one.led === led) this.waiting.delete(text)
  }

  /** Who is there has changed. */
  brokersChanged(): void {
    for (const one of Array.from(this.under.values())) {
      one.care.brokers(one.candidates)
      this.step(one)
    }
  }

  tick(): void {
    for (const one of Array.from(this.under.values())) {
      if (one.idleMs === undefined) this.step(one)
      else if (this.now - one.idleMs >= LINGER_MS) this.under.delete(textOf(one.key))
    }
    this.fill()
  }

  troubles(): readonly RangeTrouble[] {
    const troubles: RangeTrouble[] = []
    for (const { care, key, open } of this.under.values()) {
      const text = care.trouble
      if (text === undefined) continue
      const stuck = care.forceable !== undefined
      troubles.push({ key: { ...key, segment: open.segment }, text, stuck })
    }
    return troubles
  }

  private get now(): number {
    return this.options.clock.monotonic()
  }

  private viewOf({ topicId, range }: RangeKey): (CareView & { segment: Segment }) | undefined {
    const topic = this.options.topic(topicId)
    const found = topic?.active.find((one) => one.range === range)
    const segment = found?.segments.at(-1)
    if (topic === undefined || segment?.state !== 'open') return undefined
    const { replicationFactor, minInsyncReplicas } = topic.policy
    return { topicId, range, segment, policy: { replicationFactor, minInsyncReplicas } }
  }

  private fill(): void {
    if (this.waiting.size === 0) return
    let all = 0
    let calm = 0
    for (const { care, urgent, idleMs } of this.under.values()) {
      // One that is stuck waits for brokers to return, and must not keep the others from being seen to.
      if (idleMs !== undefined || care.trouble !== undefined) continue
      all++
      if (!urgent) calm++
    }
    for (const wanted of [true, false]) {
      for (const [text, one] of this.waiting) {
        if (all >= UNDER_CARE_MAX || (!wanted && calm >= CALM_MAX)) break
        if (one.urgent !== wanted) continue
        this.waiting.delete(text)
        if (!this.begin(text, one)) continue
        all++
        if (!wanted) calm++
      }
    }
  }

  private begin(text: string, { led, key, urgent, events }: Waiting): boolean {
    const view = this.viewOf(key)
    const topic = this.options.topic(key.topicId)
    if (view === undefined || topic === undefined) return false
    const { timing, random } = this.options
    const candidates = this.options.candidatesOf(text)
    const nowMs = this.now
    const [leader] = view.segment.replicas
    assert(leader !== undefined, 'an open segment has a leader')
    const care = new RangeCare({
      view,
      timing,
      confirmedMs: led.confirmedMs(leader),
      token: () => toHex(random.bytes(TOKEN_BYTES)),
      mayStage: () => this.mayStage(),
      stagingTook: (ms) => this.pace.took(ms),
    })
    const one: UnderCare = {
      led,
      key,
      topicName: topic.name,
      care,
      candidates,
      urgent,
      open: view.segment,
      idleMs: undefined,
    }
    this.under.set(text, one)
    care.brokers(candidates)
    for (const event of events.values()) event.tell(care, nowMs)
    this.step(one)
    return true
  }

  private mayStage(): boolean {
    let stages = 0
    for (const { care } of this.under.values()) if (care.stages) stages++
    return stages < this.pace.count
  }

  private step(one: UnderCare): void {
    // What is done may come back as an event before it is over: the loop that did it goes on with that.
    if (this.stepping === one) return
    const outer = this.stepping
    this.stepping = one
    try {
      for (const effect of one.care.tick(this.now)) this.options.perform(one, effect)
    } finally {
      this.stepping = outer
    }
    one.idleMs = one.care.idle ? (one.idleMs ?? this.now) : undefined
  }
}

function textOf({ topicId, range }: RangeKey): string {
  return `${topicId}/${range}`
}
