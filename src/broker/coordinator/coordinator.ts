// This broker as the coordinator of the topics whose shards it leads: it confirms leases, and sees to the ranges that need it.
//
//   the shard is led, an own entry applied ──> LedShard: who leads what, whose lease was confirmed when
//   the log, leases, brokers, words of replicas ──> survey ──> RangeCares ──> Effects ──> messages, proposals
//   the shard is lost, or led in another term ──> all that was known is dropped: the next coordinator asks again
//
// By the clock it looks only at who leads something in a shard, and at ranges under care: never at all topics.

import type { Topic } from '../../core/metadata/types.ts'
import type { Candidates } from '../../core/segment/care-types.ts'
import { LeaseDesk } from '../../core/segment/lease-desk.ts'
import type { NodeId, TopicId } from '../../model/ids.ts'
import type { Forceable } from '../../model/segment-ends.ts'
import { keyText, type SegmentKey } from '../../model/segment-key.ts'
import { shardOfTopic } from '../../model/shards.ts'
import type { Timer } from '../../ports/clock.ts'
import type { LeaseRequest, SegmentMessage, ShardAt } from '../../wire/peer/segments.ts'
import { SegmentLoad } from '../topics/load.ts'
import { Brokers } from './brokers.ts'
import { candidatesFor } from './candidates.ts'
import { Effects } from './effects.ts'
import { forceEnd } from './forcing.ts'
import { LedShard } from './led-shard.ts'
import { RangeCares } from './range-cares.ts'
import { SealedCares } from './sealed-cares.ts'
import { type SurveyFacts, survey, surveySealed } from './survey.ts'
import type { ControlOptions, RangeTrouble } from './types.ts'

/** Looks at ranges under care; at all else with every second of them. */
const TICKS_PER_LEASE_SYNC = 2
/** So many ticks without one: they were kept apart, by a stopped process or a machine without time. */
const SLEPT_TICKS = 10
/** Shards whose topics are surveyed in one tick. */
const SURVEYS_MAX = 16
/** More fenced segments of one broker are not named: nothing is confirmed of their shards then. */
const WITHHELD_MAX = 4096

/** Said to a coordinator. */
export type Report = Extract<
  SegmentMessage,
  {
    readonly kind: 'lease-request' | 'give-end' | 'fence-answer' | 'stage-report' | 'inspect-answer'
  }
>

export class Coordinator {
  private readonly options: ControlOptions
  private readonly send: (to: NodeId, message: SegmentMessage) => void
  private readonly brokers: Brokers
  private readonly cares: RangeCares
  private readonly sealed: SealedCares
  private readonly led = new Map<number, LedShard>()
  private readonly desk: LeaseDesk
  /** Shards whose topics should be looked at. */
  private readonly unsurveyed = new Set<LedShard>()
  /** Brokers whose disk is stuck, as they say. */
  private readonly stuck = new Set<NodeId>()
  private readonly unlisten: () => void
  private timer: Timer | undefined
  private ticks = 0
  private tickedMs: number
  /** Brokers whose replicas others should hold. */
  private gone: ReadonlySet<NodeId> = new Set()

  constructor(options: ControlOptions, send: (to: NodeId, message: SegmentMessage) => void) {
    const { ports, metadata, timing } = options
    this.options = options
    this.send = send
    this.desk = new LeaseDesk(timing)
    this.tickedMs = this.now
    this.brokers = new Brokers({
      seen: () => options.brokers(),
      nodes: () => metadata.state.nodes,
      nowMs: this.now,
    })
    const effects = new Effects(options, send, {
      range: (one, outcome, of) => {
        if (this.cares.of(one.key) !== one) return
        this.cares.tell(one.key, (care, nowMs) => care.proposed(outcome, nowMs, of))
      },
      sealed: (one, outcome) => {
        if (!this.sealed.is(one)) return
        this.sealed.tell(one.key, (care, nowMs) => care.proposed(outcome, nowMs))
      },
    })
    const load = new SegmentLoad(metadata)
    const among = {
      clock: ports.clock,
      timing,
      topic: (topicId: TopicId): Topic | undefined => metadata.state.topics.get(topicId),
    }
    const forAny =
      (state: 'open' | 'sealed') =>
      (range: string): Candidates =>
        candidatesFor(this.brokers, load, range, state)
    this.cares = new RangeCares({
      ...among,
      candidatesOf: forAny('open'),
      random: ports.random,
      perform: (one, effect) => effects.range(one, effect),
    })
    this.sealed = new SealedCares({
      ...among,
      candidatesOf: forAny('sealed'),
      perform: (one, effect) => effects.sealed(one, effect),
    })
    this.unlisten = metadata.onChange((changed, shard) => this.changed(changed, shard))
    const { metrics } = ports
    metrics.gauge('eastguard_ranges_under_care', 'Ranges that this coordinator sees to', () => {
      return this.cares.size
    })
    metrics.gauge('eastguard_ranges_waiting', 'Ranges that wait to be seen to', () => {
      return this.cares.waits
    })
    metrics.gauge('eastguard_sealed_segments_under_care', 'Sealed segments seen to', () => {
      return this.sealed.size
    })
    metrics.gauge('eastguard_sealed_segments_waiting', 'Sealed segments to be seen to', () => {
      return this.sealed.waits
    })
    metrics.gauge('eastguard_ranges_in_trouble', 'Ranges that this coordinator cannot help', () => {
      return this.troubles().length
    })
    this.arm()
  }

  private get now(): number {
    return this.options.ports.clock.monotonic()
  }

  /** Ranges that are not well, of the shards that this broker leads. */
  troubles(): readonly RangeTrouble[] {
    return [...this.cares.troubles(), ...this.sealed.troubles()]
  }

  /** As it says itself. */
  diskFull(node: NodeId): boolean {
    return this.brokers.isFull(node)
  }

  /** Undefined: this broker does not coordinate the topic, or not yet. Throws END_NOT_FORCED. */
  forceEnd(key: SegmentKey, end: number | undefined): Forceable | undefined {
    if (this.ledOfTopic(key.topicId) === undefined) return undefined
    return forceEnd(this.cares, key, end)
  }

  stop(): void {
    this.timer?.cancel()
    this.timer = undefined
    this.unlisten()
    for (const led of Array.from(this.led.values())) this.lost(led)
  }

  // Time.

  private arm(): void {
    this.timer = this.options.ports.clock.after(this.tickMs, () => {
      this.arm()
      this.tick()
    })
  }

  private get tickMs(): number {
    return this.options.leaseSyncMs / TICKS_PER_LEASE_SYNC
  }

  private tick(): void {
    if (this.now - this.tickedMs >= SLEPT_TICKS * this.tickMs) this.woke()
    this.tickedMs = this.now
    if (this.ticks++ % 2 === 0) this.look()
    this.cares.tick()
  }

  private look(): void {
    const { shards, timing } = this.options
    for (let shard = 0; shard < shards.count; shard++) this.ledOf(shard)
    const changed = this.brokers.look(this.now)
    if (this.lookForLost() || changed) this.brokersChanged()
    for (const led of this.led.values()) {
      if (led.lapse(this.now, timing)) this.unsurveyed.add(led)
    }
    this.surveySome()
    this.sealed.tick()
  }

  /** It was stopped for a while, or had no time: that nobody was heard says nothing of them. */
  private woke(): void {
    for (const led of this.led.values()) led.woke(this.now)
    for (const { care, open } of this.cares.all()) {
      const [leader] = open.replicas
      if (leader !== undefined) care.confirmed(leader, this.now)
    }
  }

  private brokersChanged(): void {
    for (const led of this.led.values()) this.unsurveyed.add(led)
    this.cares.brokersChanged()
    this.sealed.brokersChanged()
  }

  /** Whether others are gone for good than at the last look, as far as this can be known. */
  private lookForLost(): boolean {
    const { repairDelayMs } = this.options.timing
    const lost = this.brokers.goneFor(repairDelayMs, this.now)
    const changed = lost.size !== this.gone.size || [...lost].some((node) => !this.gone.has(node))
    this.gone = lost
    return changed
  }

  // Shards.

  /** Undefined: this broker does not coordinate the topics of the shard, or does not know enough of it yet. */
  private ledOf(shard: number): LedShard | undefined {
    const { shards } = this.options
    const term = shards.leads(shard)
    let led = this.led.get(shard)
    if (led?.term === term) return led
    if (led !== undefined) this.lost(led)
    if (term === undefined) return undefined
    const { topics } = shards.copyOf(shard).state
    led = new LedShard({ shard, term, topics: topics.values(), desk: this.desk, nowMs: this.now })
    this.led.set(shard, led)
    this.unsurveyed.add(led)
    return led
  }

  private lost(led: LedShard): void {
    this.led.delete(led.shard)
    this.desk.leadsNoMore(led.shard)
    this.unsurveyed.delete(led)
    this.cares.drop(led)
    this.sealed.drop(led)
  }

  private ledOfTopic(topicId: TopicId): LedShard | undefined {
    return this.ledOf(shardOfTopic(topicId, this.options.shards.count))
  }

  private changed(changed: readonly TopicId[], shard: number): void {
    const { topics } = this.options.metadata.state
    const led = this.ledOf(shard)
    if (led === undefined) return
    for (const topicId of changed) {
      const topic = topics.get(topicId)
      led.changed(topicId, topic, this.now)
      this.cares.changed(topicId)
      this.sealed.changed(topicId)
      if (topic !== undefined) this.survey(led, topic, this.factsOf(led))
    }
  }

  // Looking for ranges that are not well.

  private surveySome(): void {
    let left = SURVEYS_MAX
    for (const led of this.unsurveyed) {
      if (left-- === 0) return
      this.unsurveyed.delete(led)
      const { topics } = this.options.shards.copyOf(led.shard).state
      const facts = this.factsOf(led)
      for (const topic of topics.values()) this.survey(led, topic, facts)
    }
  }

  private survey(led: LedShard, topic: Topic, facts: SurveyFacts): void {
    const { topicId } = topic
    for (const { range, urgent } of survey(topic, facts)) {
      this.cares.see(led, { topicId, range }, urgent)
    }
    for (const { range, segment } of surveySealed(topic, facts)) {
      this.sealed.see(led, { topicId, range, segment })
    }
  }

  private factsOf(led: LedShard): SurveyFacts {
    const { brokers } = this
    return {
      alive: (node) => brokers.alive(node),
      leaving: (node) => brokers.leaving(node),
      stopping: (node) => brokers.isStopping(node),
      full: (node) => brokers.isFull(node),
      lapsed: (node) => led.lapsed(node),
      lost: (node) => this.gone.has(node),
      healthy: brokers.healthy().length,
    }
  }

  // What replicas say.

  receive(from: NodeId, message: Report): void {
    if (message.kind === 'lease-request') return this.leaseRequested(from, message)
    const { key } = message
    const led = this.ledOfTopic(key.topicId)
    if (led === undefined) return
    if (message.kind === 'inspect-answer') {
      const { boot, answer } = message
      return this.sealed.tell(key, (care, nowMs) => care.inspected(from, answer, nowMs, boot))
    }
    if (this.openSegment(key) !== key.segment) return
    switch (message.kind) {
      case 'give-end': {
        const { boot, given } = message
        this.cares.see(led, key, true, {
          name: `give-end ${from}`,
          tell: (care, nowMs) => care.gave(from, boot, given, nowMs),
        })
        return
      }
      case 'fence-answer':
        return this.cares.tell(key, (care, nowMs) => {
          care.fenceAnswered(from, message.answer, nowMs)
        })
      case 'stage-report':
        return this.cares.tell(key, (care, nowMs) => {
          care.staged(from, message.token, message.report, nowMs)
        })
    }
  }

  /** The number of the range's open segment. */
  private openSegment({ topicId, range }: SegmentKey): number | undefined {
    const topic = this.options.metadata.state.topics.get(topicId)
    const found = topic?.active.find((one) => one.range === range)
    return found?.segments.at(-1)?.segment
  }

  // Leases.

  private leaseRequested(from: NodeId, request: LeaseRequest): void {
    const { shards, ports } = this.options
    const { boot, seq, oldestSyncMs } = request
    const withheld = this.withheldFrom(from)
    const sure =
      withheld.length > WITHHELD_MAX ? [] : request.shards.filter((one) => this.isSure(one))
    const asked = { from, boot, oldestSyncMs, shards: sure.map(({ shard }) => shard) }
    const { shards: confirmed, stuck } = this.desk.request(asked, this.now)
    if (!stuck) this.stuck.delete(from)
    else if (!this.stuck.has(from)) {
      this.stuck.add(from)
      ports.log.warn('a broker gets no leases: its disk is stuck', { node: from, oldestSyncMs })
    }
    const answer = confirmed.map((shard): ShardAt => {
      const { appliedIndex: index } = shards.copyOf(shard)
      return { shard, index }
    })
    this.send(from, { kind: 'lease-answer', seq, shards: answer, withheld })
    this.tellConfirmed(new Set(confirmed), from, boot)
    this.unfit(from, request)
  }

  /** Nobody else can lead the shard at this moment, and this broker knows all of it. */
  private isSure({ shard }: ShardAt): boolean {
    const { shards } = this.options
    return shard < shards.count && this.ledOf(shard) !== undefined && shards.holdsLease(shard)
  }

  private withheldFrom(leader: NodeId): readonly SegmentKey[] {
    const withheld: SegmentKey[] = []
    for (const { care, key, open } of this.cares.all()) {
      if (care.withholds && open.replicas[0] === leader) {
        withheld.push({ ...key, segment: open.segment })
      }
    }
    return withheld
  }

  private tellConfirmed(shards: ReadonlySet<number>, leader: NodeId, boot: number): void {
    if (shards.size === 0) return
    for (const one of this.cares.all()) {
      if (one.open.replicas[0] !== leader || !shards.has(one.led.shard)) continue
      one.care.confirmed(leader, this.now, boot)
    }
  }

  private unfit(from: NodeId, { boot, stopping, diskFull, unfit }: LeaseRequest): void {
    // What it follows goes, too: who waited for its acknowledgements would wait until it counts as failed.
    const stops = stopping && this.brokers.stops(from, boot)
    if (this.brokers.saysFull(from, diskFull, this.now) || stops) this.brokersChanged()
    for (const { key, why, waited } of unfit) {
      const led = this.ledOfTopic(key.topicId)
      if (led === undefined || this.openSegment(key) !== key.segment) continue
      this.cares.see(led, key, waited, {
        name: `unfit ${from} ${keyText(key)}`,
        tell: (care) => care.unfit(from, boot, why),
      })
    }
  }
}
