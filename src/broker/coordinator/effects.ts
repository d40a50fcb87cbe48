// What the care of ranges and sealed segments wants done, done: messages to replicas, proposals to the shard's log in this
// coordinator's own term, lines in the log, counters.

import { EastGuardError } from '../../base/errors.ts'
import { Seldom } from '../../base/seldom.ts'
import type {
  CancelEnd,
  ReassignSegment,
  RollSegment,
  SettleSegment,
} from '../../core/metadata/commands.ts'
import type {
  CancelEffect,
  CareEffect,
  LogEffect,
  ProposalOutcome,
  RollEffect,
} from '../../core/segment/care-types.ts'
import type { SealedEffect } from '../../core/segment/sealed-care.ts'
import type { NodeId } from '../../model/ids.ts'
import type { SegmentKey } from '../../model/segment-key.ts'
import type { Counter, Metrics } from '../../ports/metrics.ts'
import type { SegmentMessage } from '../../wire/peer/segments.ts'
import type { LedShard } from './led-shard.ts'
import type { UnderCare } from './range-cares.ts'
import type { SealedUnderCare } from './sealed-cares.ts'
import type { ControlOptions } from './types.ts'

/** Codes of proposals that reached no log; of others nobody knows. */
const NOT_TAKEN: ReadonlySet<string> = new Set([
  'METADATA_UNAVAILABLE',
  'STORAGE_FULL',
  'TOO_MANY_REQUESTS',
])
/** Ends that nothing is wrong with. */
const PLANNED: ReadonlySet<string> = new Set(['full', 'old', 'policy'])

/** What many ranges say for one reason is logged of one of them, once in so long; of so many reasons. */
const SHARED_TOLD_MS = 60_000
const SHARED_MAX = 64

type SegmentCommand = RollSegment | CancelEnd | SettleSegment | ReassignSegment

/** Whose care wants it. */
interface Wanted {
  readonly led: LedShard
  readonly topicName: string
}

export interface Settled {
  /** What became of a proposal; the care may be gone by then. */
  range(one: UnderCare, outcome: ProposalOutcome, of: RollEffect | CancelEffect): void
  sealed(one: SealedUnderCare, outcome: ProposalOutcome): void
}

export class Effects {
  private readonly options: ControlOptions
  private readonly send: (to: NodeId, message: SegmentMessage) => void
  private readonly settled: Settled
  private readonly counters: Counters
  private readonly shared = new Seldom(SHARED_TOLD_MS, SHARED_MAX)

  constructor(
    options: ControlOptions,
    send: (to: NodeId, message: SegmentMessage) => void,
    settled: Settled,
  ) {
    this.options = options
    this.send = send
    this.settled = settled
    this.counters = makeCounters(options.ports.metrics)
  }

  range(one: UnderCare, effect: CareEffect): void {
    const key: SegmentKey = { ...one.key, segment: one.open.segment }
    switch (effect.kind) {
      case 'ask-end': {
        const { attempt, why } = effect
        return this.send(effect.to, { kind: 'ask-end', key, attempt, why })
      }
      case 'fence':
        this.counters.fences.add(1)
        for (const to of effect.to) this.send(to, { kind: 'fence', key })
        return
      case 'stage': {
        const { token, end, tailFrom, replicas } = effect
        this.counters.stageOrders.add(1)
        this.send(effect.to, { kind: 'stage-order', key, token, end, tailFrom, replicas })
        return
      }
      case 'end-refused': {
        const { code, text } = effect
        return this.send(effect.to, { kind: 'end-refused', key, code, text })
      }
      case 'roll':
        return this.propose(one, this.rollOf(key, effect), (outcome) => {
          if (outcome === 'applied') this.rolled(one, key, effect)
          this.settled.range(one, outcome, effect)
        })
      case 'cancel': {
        const { attempt } = effect
        return this.propose(one, { kind: 'CancelEnd', ...key, attempt }, (outcome) => {
          if (outcome === 'applied') this.cancelled(one, key)
          this.settled.range(one, outcome, effect)
        })
      }
      case 'log':
        return this.tell(one, effect)
    }
  }

  sealed(one: SealedUnderCare, effect: SealedEffect): void {
    const { key } = one
    const settled = (outcome: ProposalOutcome): void => this.settled.sealed(one, outcome)
    switch (effect.kind) {
      case 'inspect':
        for (const to of effect.to) this.send(to, { kind: 'inspect', key })
        return
      case 'settle': {
        const { digest } = effect
        this.counters.settlings.add(1)
        return this.propose(one, { kind: 'SettleSegment', ...key, digest }, settled)
      }
      case 'reassign': {
        const { change, replica, seen } = effect
        this.counters.repairs.add(1)
        const command = { kind: 'ReassignSegment', ...key, change, replica, seen } as const
        return this.propose(one, command, settled)
      }
      case 'log':
        return this.tell(one, effect)
    }
  }

  private rollOf(key: SegmentKey, effect: RollEffect): RollSegment {
    const { attempt, end: endEntry, tailFrom, nextOffsets, placement } = effect
    const timeMs = this.options.ports.clock.wall()
    const given = { attempt, endEntry, tailFrom, nextOffsets }
    return { kind: 'RollSegment', ...key, ...given, placement, timeMs }
  }

  private propose(
    { led, topicName }: Wanted,
    command: SegmentCommand,
    done: (outcome: ProposalOutcome) => void,
  ): void {
    // Only in this coordinator's own term: its successor begins with what the log says, and finds an end of its own.
    this.options.metadata.propose(command, led.term).then(
      (result) => {
        if (!result.ok) this.refused(topicName, command, result.message)
        done(result.ok ? 'applied' : 'refused')
      },
      (error: unknown) => {
        if (!(error instanceof EastGuardError)) throw error
        this.refused(topicName, command, error.message)
        done(NOT_TAKEN.has(error.code) ? 'refused' : 'unknown')
      },
    )
  }

  private cancelled({ topicName: topic }: Wanted, { range, segment }: SegmentKey): void {
    this.counters.cancels.add(1)
    this.options.ports.log.info('the end of a segment is taken back', { topic, range, segment })
  }

  private rolled(
    { topicName: topic }: Wanted,
    { range, segment }: SegmentKey,
    { why, end, placement }: RollEffect,
  ): void {
    const { log } = this.options.ports
    const { replicas } = placement
    this.counters.rolls.add(1)
    if (!PLANNED.has(why)) this.counters.failovers.add(1)
    log.info(`a segment has ended: ${why}`, {
      topic,
      range,
      segment,
      end,
      successor: segment + 1,
      replicas,
    })
  }

  private refused(topic: string, { kind, range, segment }: SegmentCommand, why: string): void {
    this.counters.refusals.add(1)
    const text = 'a change of a segment that its coordinator wants took no effect'
    this.options.ports.log.info(text, { topic, range, segment, change: kind, why })
  }

  private tell(
    { topicName: topic }: Wanted,
    { level, text, detail, shared = false }: LogEffect,
  ): void {
    const { clock, log } = this.options.ports
    const sinceLast = shared ? this.shared.next(text, clock.monotonic()) : 0
    if (sinceLast === undefined) return
    const more = sinceLast === 0 ? {} : { alsoSinceLastLine: sinceLast }
    log[level](text, { topic, ...detail, ...more })
  }
}

type Counted =
  | 'rolls'
  | 'failovers'
  | 'cancels'
  | 'refusals'
  | 'fences'
  | 'stageOrders'
  | 'settlings'
  | 'repairs'
type Counters = Readonly<Record<Counted, Counter>>

function makeCounters(metrics: Metrics): Counters {
  const counter = (name: string, help: string): Counter =>
    metrics.counter(`eastguard_coordinator_${name}_total`, help)
  return {
    rolls: counter('rolls', 'Segments that this broker, as their coordinator, ended'),
    failovers: counter('unplanned_rolls', 'Of these, those that could not go on or should not'),
    cancels: counter('cancelled_ends', 'Ends of segments that were taken back'),
    refusals: counter('refused_changes', 'Changes of segments that took no effect'),
    fences: counter('fences', 'Rounds of fencing segments whose leader cannot go on'),
    stageOrders: counter('stage_orders', 'Orders to stage the successor of a segment'),
    settlings: counter('settlings', 'Sealed segments whose replicas were found equal'),
    repairs: counter('reassignments', 'Replicas of sealed segments that were added or dropped'),
  }
}
