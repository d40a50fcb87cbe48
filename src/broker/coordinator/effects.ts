// What the care of a range wants done, done: messages to replicas, proposals to the shard's log in this coordinator's own term,
// lines in the log, counters.

import { EastGuardError } from '../../base/errors.ts'
import type { CancelEnd, RollSegment } from '../../core/metadata/commands.ts'
import type {
  CancelEffect,
  CareEffect,
  LogEffect,
  ProposalOutcome,
  RollEffect,
} from '../../core/segment/care-types.ts'
import type { NodeId } from '../../model/ids.ts'
import type { SegmentKey } from '../../model/segment-key.ts'
import type { Counter, Metrics } from '../../ports/metrics.ts'
import type { SegmentMessage } from '../../wire/peer/segments.ts'
import type { UnderCare } from './range-cares.ts'
import type { ControlOptions } from './types.ts'

/** Codes of proposals that reached no log; of others nobody knows. */
const NOT_TAKEN: ReadonlySet<string> = new Set([
  'METADATA_UNAVAILABLE',
  'STORAGE_FULL',
  'TOO_MANY_REQUESTS',
])

export class Effects {
  private readonly options: ControlOptions
  private readonly send: (to: NodeId, message: SegmentMessage) => void
  /** What became of a proposal; the care may be gone by then. */
  private readonly settled: (one: UnderCare, outcome: ProposalOutcome) => void
  private readonly counters: Counters

  constructor(
    options: ControlOptions,
    send: (to: NodeId, message: SegmentMessage) => void,
    settled: (one: UnderCare, outcome: ProposalOutcome) => void,
  ) {
    this.options = options
    this.send = send
    this.settled = settled
    this.counters = makeCounters(options.ports.metrics)
  }

  perform(one: UnderCare, effect: CareEffect): void {
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
        return this.propose(one, this.rollOf(key, effect), effect)
      case 'cancel':
        return this.propose(one, { kind: 'CancelEnd', ...key, attempt: effect.attempt }, effect)
      case 'log':
        return this.tell(one, effect)
    }
  }

  private rollOf(key: SegmentKey, effect: RollEffect): RollSegment {
    const { attempt, end: endEntry, tailFrom, nextOffsets, placement } = effect
    const timeMs = this.options.ports.clock.wall()
    return {
      kind: 'RollSegment',
      ...key,
      attempt,
      endEntry,
      tailFrom,
      nextOffsets,
      placement,
      timeMs,
    }
  }

  private propose(
    one: UnderCare,
    command: RollSegment | CancelEnd,
    effect: RollEffect | CancelEffect,
  ): void {
    const { metadata } = this.options
    // Only in this coordinator's own term: its successor begins with what the log says, and finds an end of its own.
    metadata.propose(command, one.led.term).then(
      (result) => {
        if (result.ok) this.applied(one, command, effect)
        else this.refused(one, command, result.message)
        this.settled(one, result.ok ? 'applied' : 'refused')
      },
      (error: unknown) => {
        if (!(error instanceof EastGuardError)) throw error
        this.refused(one, command, error.message)
        this.settled(one, NOT_TAKEN.has(error.code) ? 'refused' : 'unknown')
      },
    )
  }

  private applied(
    { topicName: topic }: UnderCare,
    { range, segment }: RollSegment | CancelEnd,
    effect: RollEffect | CancelEffect,
  ): void {
    const { log } = this.options.ports
    if (effect.kind === 'cancel') {
      this.counters.cancels.add(1)
      log.info('the end of a segment is taken back', { topic, range, segment })
      return
    }
    const { why, end, placement } = effect
    this.counters.rolls.add(1)
    const planned = why === 'full' || why === 'old' || why === 'policy'
    log[planned ? 'debug' : 'info'](`a segment has ended: ${why}`, {
      topic,
      range,
      segment,
      end,
      successor: segment + 1,
      replicas: placement.replicas,
    })
  }

  private refused(
    { topicName: topic }: UnderCare,
    { kind, range, segment }: RollSegment | CancelEnd,
    why: string,
  ): void {
    this.counters.refusals.add(1)
    this.options.ports.log.info('a coordinator was not let change a segment', {
      topic,
      range,
      segment,
      change: kind,
      why,
    })
  }

  private tell({ topicName: topic }: UnderCare, { level, text, detail }: LogEffect): void {
    this.options.ports.log[level](text, { topic, ...detail })
  }
}

interface Counters {
  readonly rolls: Counter
  readonly cancels: Counter
  readonly refusals: Counter
  readonly fences: Counter
  readonly stageOrders: Counter
}

function makeCounters(metrics: Metrics): Counters {
  const counter = (name: string, help: string): Counter =>
    metrics.counter(`eastguard_coordinator_${name}_total`, help)
  return {
    rolls: counter('rolls', 'Segments that this broker, as their coordinator, ended'),
    cancels: counter('cancelled_ends', 'Ends of segments that were taken back'),
    refusals: counter('refused_changes', 'Rolls and cancelled ends that took no effect'),
    fences: counter('fences', 'Rounds of fencing segments whose leader cannot go on'),
    stageOrders: counter('stage_orders', 'Orders to stage the successor of a segment'),
  }
}
