// The produce requests of one connection that wait for their answers. A request of one batch, the hottest of all, is a
// place in parallel arrays and no object; one of several batches shares a list of results and is answered when the last
// is known.

import { EastGuardError, type ErrorCode } from '../../base/errors.ts'
import type { Broker } from '../../broker/broker.ts'
import { ACKS_ALL, ACKS_LEADER, ACKS_NONE, type ProduceSink } from '../../broker/sinks.ts'
import type { Redirect } from '../../model/redirect.ts'
import { requestIdOf } from '../../wire/native/header.ts'
import {
  PRODUCE_ONE_BYTES,
  PRODUCE_SLOTS_AT,
  type ProduceResult,
  produceAcks,
  produceCount,
  producedFrame,
  produceTimeoutMs,
  putProducedOne,
  SLOT_HEAD_BYTES,
  slotBatchLength,
  slotGreatestKeyHash,
  slotLeastKeyHash,
  slotPartition,
} from '../../wire/native/produce.ts'
import type { Outbox } from './outbox.ts'

/** A produce with several batches. */
interface Several {
  readonly results: ProduceResult[]
  left: number
}

/** Request ids are 32 bits wide, so this one is nobody's. */
const UNANSWERED = -1

export class Produces implements ProduceSink {
  private readonly outbox: Outbox
  private readonly onTaken: (batches: number, bytes: number) => void
  private readonly onAnswered: (bytes: number) => void
  private requestIds: number[] = []
  private bytes: number[] = []
  private indexes: number[] = []
  private several: (Several | undefined)[] = []
  private free: number[] = []

  constructor(
    outbox: Outbox,
    onTaken: (batches: number, bytes: number) => void,
    onAnswered: (bytes: number) => void,
  ) {
    this.outbox = outbox
    this.onTaken = onTaken
    this.onAnswered = onAnswered
  }

  /**
   * Takes a whole frame. Throws MALFORMED_REQUEST or INVALID_ACKS before anything of it was taken; `onTaken` is called
   * before the first batch is, since a refused one is answered at once.
   */
  take(broker: Broker, frame: Uint8Array): void {
    const count = produceCount(frame)
    const acks = produceAcks(frame)
    if (acks !== ACKS_ALL && acks !== ACKS_LEADER && acks !== ACKS_NONE) {
      throw new EastGuardError('INVALID_ACKS', `acks is ${acks}; 0, 1 and 255 (all) are known`)
    }
    const timeoutMs = produceTimeoutMs(frame)
    const requestId = acks === ACKS_NONE ? UNANSWERED : requestIdOf(frame)
    const several = count === 1 ? undefined : { results: [], left: count }
    this.onTaken(count, frame.length - PRODUCE_SLOTS_AT)
    let at = PRODUCE_SLOTS_AT
    for (let i = 0; i < count; i++) {
      const batchAt = at + SLOT_HEAD_BYTES
      const end = batchAt + slotBatchLength(frame, at)
      const slot = this.open(requestId, end - at, i, several)
      broker.produce(
        frame,
        at,
        slotPartition(frame, at),
        slotLeastKeyHash(frame, at),
        slotGreatestKeyHash(frame, at),
        frame.subarray(batchAt, end),
        acks,
        timeoutMs,
        this,
        slot,
      )
      at = end
    }
  }

  private open(requestId: number, bytes: number, index: number, several?: Several): number {
    const slot = this.free.pop() ?? this.requestIds.length
    this.requestIds[slot] = requestId
    this.bytes[slot] = bytes
    this.indexes[slot] = index
    this.several[slot] = several
    return slot
  }

  private close(slot: number): void {
    this.several[slot] = undefined
    this.free.push(slot)
    this.onAnswered(this.bytes[slot] as number)
  }

  produced(slot: number, baseOffset: number, logTimeMs: number): void {
    const several = this.several[slot]
    const requestId = this.requestIds[slot] as number
    if (several !== undefined) {
      this.settle(several, slot, {
        error: undefined,
        message: '',
        baseOffset,
        logAppendTimeMs: logTimeMs,
      })
    } else if (requestId !== UNANSWERED) {
      const at = this.outbox.reserve(PRODUCE_ONE_BYTES)
      putProducedOne(this.outbox.buffer, at, requestId, baseOffset, logTimeMs)
    }
    this.close(slot)
  }

  refused(slot: number, error: ErrorCode, message: string, redirect?: Redirect): void {
    const result: ProduceResult = {
      error,
      message,
      baseOffset: -1,
      logAppendTimeMs: -1,
      ...(redirect === undefined ? {} : { redirect }),
    }
    const several = this.several[slot]
    const requestId = this.requestIds[slot] as number
    if (several !== undefined) this.settle(several, slot, result)
    else if (requestId !== UNANSWERED) this.outbox.push(producedFrame(requestId, [result]))
    this.close(slot)
  }

  private settle(several: Several, slot: number, result: ProduceResult): void {
    several.results[this.indexes[slot] as number] = result
    several.left--
    const requestId = this.requestIds[slot] as number
    if (several.left === 0 && requestId !== UNANSWERED) {
      this.outbox.push(producedFrame(requestId, several.results))
    }
  }
}
