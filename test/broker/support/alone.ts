// A coordinator for tests of one broker without others: it has every replica, so an end is rolled as soon as it is given, and what a
// restart has fenced as soon as somebody waits for it.

import { toHex } from '../../../src/base/bytes.ts'
import { EastGuardError } from '../../../src/base/errors.ts'
import type { MetadataLog } from '../../../src/broker/metadata/types.ts'
import type { Control, ReplicaHooks, Replicas } from '../../../src/broker/replica/types.ts'
import { rangeByNumber } from '../../../src/core/metadata/lookup.ts'
import type { NodeId } from '../../../src/model/ids.ts'
import type { StageReport } from '../../../src/model/segment-ends.ts'
import { keyText, type SegmentKey } from '../../../src/model/segment-key.ts'
import type { Clock } from '../../../src/ports/clock.ts'
import type { Log } from '../../../src/ports/log.ts'
import type { Random } from '../../../src/ports/random.ts'

const RETRY_MS = 250

interface Roll {
  readonly key: SegmentKey
  readonly attempt: number
  readonly end: number
  readonly tailFrom: number
  readonly token: string
  /** Proposed, and not answered yet. */
  proposing: boolean
}

interface AloneParts {
  readonly nodeId: NodeId
  readonly metadata: MetadataLog
  readonly clock: Clock
  readonly random: Random
  readonly log: Log
}

export function controlAlone(parts: AloneParts): (replicas: Replicas) => Control {
  return (replicas) => controlOf(parts, replicas)
}

function controlOf(parts: AloneParts, replicas: Replicas): Control {
  const alone = new Alone(parts, replicas)
  return { hooks: alone, leased: () => true, stop: () => alone.stop() }
}

class Alone implements ReplicaHooks {
  private readonly parts: AloneParts
  private readonly replicas: Replicas
  private readonly rolls = new Map<string, Roll>()
  private readonly resting = new Set<string>()
  private stopped = false

  constructor(parts: AloneParts, replicas: Replicas) {
    this.parts = parts
    this.replicas = replicas
  }

  stop(): void {
    this.stopped = true
  }

  gave(key: SegmentKey, given: { attempt: number; end: number; highWatermark: number }): void {
    this.begin(key, given.attempt, given.end, given.highWatermark)
  }

  waits(key: SegmentKey): void {
    if (!this.idle(key)) return
    this.resting.add(keyText(key))
    this.replicas.fence(key).then(
      ({ end, highWatermark, unsure }) => {
        this.resting.delete(keyText(key))
        const attempt = this.attemptOf(key)
        if (unsure !== undefined || attempt === undefined) return
        this.begin(key, attempt, end, highWatermark)
      },
      (error: unknown) => this.failed(key, error),
    )
  }

  private idle(key: SegmentKey): boolean {
    const text = keyText(key)
    return !this.stopped && !this.rolls.has(text) && !this.resting.has(text)
  }

  private attemptOf({ topicId, range, segment }: SegmentKey): number | undefined {
    const topic = this.parts.metadata.state.topics.get(topicId)
    const open = topic === undefined ? undefined : rangeByNumber(topic, range)?.segments.at(-1)
    return open?.segment === segment ? open.attempt : undefined
  }

  private begin(key: SegmentKey, attempt: number, end: number, tailFrom: number): void {
    if (!this.idle(key)) return
    const token = toHex(this.parts.random.bytes(16))
    this.rolls.set(keyText(key), { key, attempt, end, tailFrom, token, proposing: false })
    this.replicas.stage({ key, token, end, tailFrom, replicas: [this.parts.nodeId] })
  }

  staged(key: SegmentKey, token: string, outcome: StageReport): void {
    const roll = this.rolls.get(keyText(key))
    if (roll?.token !== token || roll.proposing || 'moved' in outcome) return
    if ('failed' in outcome) {
      this.failed(key, outcome.failed[0]?.why)
      return
    }
    roll.proposing = true
    const { topicId, range, segment } = key
    const { attempt, end: endEntry, tailFrom } = roll
    const { nextOffsets, stateDigest } = outcome
    const { metadata, clock, nodeId } = this.parts
    metadata
      .propose({
        kind: 'RollSegment',
        topicId,
        range,
        segment,
        attempt,
        endEntry,
        tailFrom,
        nextOffsets,
        placement: { replicas: [nodeId], token, stateDigest },
        timeMs: clock.wall(),
      })
      .then(
        (result) => {
          if (result.ok) this.rolls.delete(keyText(key))
          else this.failed(key, result.message)
        },
        (error: unknown) => {
          if (error instanceof EastGuardError && error.code === 'DISK_FAILED') {
            const text = 'nobody knows whether the segment was rolled, the broker stops'
            this.replicas.endRefused(key, 'BROKER_STOPPED', text)
          } else this.failed(key, error)
        },
      )
  }

  private failed(key: SegmentKey, why: unknown): void {
    const text = keyText(key)
    this.rolls.delete(text)
    this.resting.add(text)
    this.parts.log.warn('a roll failed and will be tried again', { ...key, err: why })
    this.parts.clock.after(RETRY_MS, () => this.resting.delete(text))
  }
}
