// The sealed segments that this broker, as their coordinator, has something to do for: those that are not settled, and those of
// which a replica is lost, drained or missing. A few at a time, and behind everything else: what they are asked for makes brokers read whole
// segments, and nobody waits for it.

import { rangeByNumber, segmentByNumber } from '../../core/metadata/lookup.ts'
import type { Segment, Topic } from '../../core/metadata/types.ts'
import type { Candidates } from '../../core/segment/care-types.ts'
import { SealedCare, type SealedEffect, type SealedView } from '../../core/segment/sealed-care.ts'
import type { SegmentTiming } from '../../core/segment/types.ts'
import type { TopicId } from '../../model/ids.ts'
import { keyText, type SegmentKey } from '../../model/segment-key.ts'
import type { Clock } from '../../ports/clock.ts'
import type { LedShard } from './led-shard.ts'
import type { RangeTrouble } from './types.ts'

/** Under care at a time, those not counted that cannot be helped at the moment. */
const UNDER_CARE_MAX = 32
/** One that nothing becomes of for so long makes room for others, and waits again. */
const PATIENCE_MS = 180_000

interface Waiting {
  readonly led: LedShard
  readonly key: SegmentKey
}

export interface SealedUnderCare extends Waiting {
  readonly topicName: string
  readonly care: SealedCare
  readonly candidates: Candidates
  readonly sinceMs: number
  segment: Segment
}

export interface SealedCaresOptions {
  readonly clock: Clock
  readonly timing: SegmentTiming
  topic(topicId: TopicId): Topic | undefined
  /** Who may get a segment of the range. */
  candidatesOf(range: string): Candidates
  perform(one: SealedUnderCare, effect: SealedEffect): void
}

export class SealedCares {
  private readonly options: SealedCaresOptions
  private readonly under = new Map<string, SealedUnderCare>()
  private readonly waiting = new Map<string, Waiting>()
  /** By topic, so that a change of one need not look at all. */
  private readonly keysOf = new Map<TopicId, Set<string>>()

  constructor(options: SealedCaresOptions) {
    this.options = options
  }

  get size(): number {
    return this.under.size
  }

  get waits(): number {
    return this.waiting.size
  }

  see(led: LedShard, key: SegmentKey): void {
    const text = keyText(key)
    if (!this.under.has(text)) this.waiting.set(text, { led, key })
  }

  tell(key: SegmentKey, tell: (care: SealedCare, nowMs: number) => void): void {
    const one = this.under.get(keyText(key))
    if (one === undefined) return
    tell(one.care, this.now)
    this.step(one)
  }

  is(one: SealedUnderCare): boolean {
    return this.under.get(keyText(one.key)) === one
  }

  /** The topic is other than before, or gone. */
  changed(topicId: TopicId): void {
    for (const text of Array.from(this.keysOf.get(topicId) ?? [])) {
      const one = this.under.get(text)
      if (one === undefined) continue
      const view = this.viewOf(one.key)
      if (view === undefined) this.forget(one)
      else if (view.segment !== one.segment) {
        one.segment = view.segment
        one.care.applied(view)
        this.step(one)
      }
    }
  }

  drop(led: LedShard): void {
    for (const one of Array.from(this.under.values())) if (one.led === led) this.forget(one)
    for (const [text, one] of this.waiting) if (one.led === led) this.waiting.delete(text)
  }

  brokersChanged(): void {
    for (const one of Array.from(this.under.values())) {
      one.care.brokers(one.candidates, this.now)
      this.step(one)
    }
  }

  tick(): void {
    for (const one of Array.from(this.under.values())) {
      this.step(one)
      if (this.waiting.size === 0 || this.now - one.sinceMs < PATIENCE_MS) continue
      this.forget(one)
      this.see(one.led, one.key)
    }
    this.fill()
  }

  troubles(): readonly RangeTrouble[] {
    return [...this.under.values()].flatMap(({ care, key }) => {
      return care.trouble === undefined ? [] : [{ key, text: care.trouble }]
    })
  }

  private get now(): number {
    return this.options.clock.monotonic()
  }

  private viewOf(key: SegmentKey): (SealedView & { segment: Segment }) | undefined {
    const topic = this.options.topic(key.topicId)
    const range = topic === undefined ? undefined : rangeByNumber(topic, key.range)
    const segment = range === undefined ? undefined : segmentByNumber(range, key.segment)
    if (topic === undefined || segment?.state !== 'sealed') return undefined
    const { replicationFactor, minInsyncReplicas } = topic.policy
    const policy = { replicationFactor, minInsyncReplicas }
    return { topicId: key.topicId, range: key.range, segment, policy }
  }

  private fill(): void {
    if (this.waiting.size === 0) return
    let left = UNDER_CARE_MAX
    for (const { care } of this.under.values()) if (care.trouble === undefined) left--
    for (const [text, one] of this.waiting) {
      if (left <= 0) return
      this.waiting.delete(text)
      if (this.begin(text, one)) left--
    }
  }

  private begin(text: string, { led, key }: Waiting): boolean {
    const view = this.viewOf(key)
    const topic = this.options.topic(key.topicId)
    if (view === undefined || topic === undefined) return false
    const nowMs = this.now
    const care = new SealedCare(view, this.options.timing)
    const candidates = this.options.candidatesOf(`${key.topicId}/${key.range}`)
    const { segment } = view
    const { name: topicName } = topic
    const one = { led, key, topicName, care, candidates, sinceMs: nowMs, segment }
    this.under.set(text, one)
    const keys = this.keysOf.get(key.topicId) ?? new Set()
    this.keysOf.set(key.topicId, keys.add(text))
    care.brokers(candidates, nowMs)
    this.step(one)
    return true
  }

  private step(one: SealedUnderCare): void {
    for (const effect of one.care.tick(this.now)) this.options.perform(one, effect)
    if (one.care.idle) this.forget(one)
  }

  private forget({ key }: SealedUnderCare): void {
    const text = keyText(key)
    this.under.delete(text)
    const keys = this.keysOf.get(key.topicId)
    keys?.delete(text)
    if (keys?.size === 0) this.keysOf.delete(key.topicId)
  }
}
