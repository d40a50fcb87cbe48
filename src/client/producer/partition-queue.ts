// The batches of one partition on their way to its leader, in order, each stored once. No IO: it is asked for the next
// batch and told what became of it.
//
//      open ──> sealed ──> in flight (up to 5) ──> stored
//                 ^            │
//              retries <───────┘ refused, or the answer was lost
//
// Order. A failure stops the line: nothing more is sent until all that is in flight has an outcome; then what failed goes
// first, in its old order, and the rest follows. The leader takes only the sequence it expects next (PROTOCOLS §8), so
// batches behind a refused one are refused too (OUT_OF_ORDER_SEQUENCE) and simply join the retries.
//
// Once. A batch keeps its producer id, epoch and sequence through all retries, and the leader recognises it. Two things leave a
// hole in the sequence: a batch that is given up, and a leader that lost its memory of us. Then the line is *broken*: it goes on
// under the next epoch, counting from 0. A batch may be renumbered only if every attempt of it was *answered* with a
// refusal, for then no copy of it exists or can still arrive. One whose answer was lost (`doubt`) may be stored under its old number, where
// no renumbered copy would be recognised: it fails, and its caller learns `maybeStored: true`. Rejected: sending it again and
// hoping, as a client that must choose between losing and doubling would; only the caller knows which is worse.
// A copy of it that still lies in some dead connection is fenced as soon as the new epoch has reached the leader.
//
// Epochs are counted per partition, because the leader's table is: a hole in one partition troubles no other.

import { EastGuardError } from '../../base/errors.ts'
import type { ProducerBatch, ProducerIdentity } from './batch.ts'

const SEQUENCES = 2 ** 31
const EPOCH_MAX = 0x7fff
/** A batch that meets a hole under this many fresh epochs in a row is given up: something else is wrong. */
const RESTARTS_MAX = 3

/**
 * After these answers the batch is not stored, and no copy that was answered so will be. NOT_ENOUGH_REPLICAS is none of them: it is
 * also told of an entry in flight, which stays and may commit when brokers return.
 */
const REFUSED_FOR_SURE: ReadonlySet<string> = new Set([
  'BATCH_TOO_LARGE',
  'CORRUPT_BATCH',
  'FRAME_TOO_LARGE',
  'INVALID_ACKS',
  'MALFORMED_REQUEST',
  'NOT_READY',
  'OUT_OF_ORDER_SEQUENCE',
  'PRODUCER_FENCED',
  'STORAGE_FULL',
  'TOO_MANY_REQUESTS',
  'TOPIC_PROTECTED',
  'UNKNOWN_OPERATION',
  'UNKNOWN_PARTITION',
  'UNKNOWN_PRODUCER_ID',
  'UNKNOWN_TOPIC',
  'UNSUPPORTED_BATCH',
])

export interface PartitionQueueOptions {
  readonly topic: string
  readonly partition: number
  readonly idempotent: boolean
  /** Batches in flight at once. */
  readonly window: number
  /** A batch has its outcome and leaves the queue. Called once for each. */
  settled(batch: ProducerBatch): void
}

export class PartitionQueue {
  readonly topic: string
  readonly partition: number
  /** Gathers records; not yet in line. */
  open: ProducerBatch | undefined
  /** After a failure, until its pause is over. */
  resting = false
  private readonly options: PartitionQueueOptions
  private readonly sealed: ProducerBatch[] = []
  private retries: ProducerBatch[] = []
  private inFlight: ProducerBatch[] = []
  private identity: ProducerIdentity | undefined
  private nextSequence = 0
  private nextOrder = 0
  private recovering = false
  private broken = false

  constructor(options: PartitionQueueOptions) {
    this.topic = options.topic
    this.partition = options.partition
    this.options = options
  }

  /** Its batches are numbered: sent again, they are stored once. */
  get idempotent(): boolean {
    return this.options.idempotent
  }

  get empty(): boolean {
    return (
      this.open === undefined &&
      this.sealed.length + this.retries.length + this.inFlight.length === 0
    )
  }

  /** It has no producer id, or none that still has epochs: `identify` must be called before `take` gives anything. */
  get needsIdentity(): boolean {
    return this.options.idempotent && this.identity === undefined
  }

  identify(identity: ProducerIdentity): void {
    this.identity = identity
    this.nextSequence = 0
  }

  /** Puts the open batch in line, and gives it back so that it can be compressed. */
  seal(): ProducerBatch | undefined {
    const batch = this.open
    if (batch === undefined) return undefined
    this.open = undefined
    batch.order = this.nextOrder++
    this.sealed.push(batch)
    return batch
  }

  /** Whether another batch could go now: then the open one may be sealed before it is full. */
  get hasRoom(): boolean {
    return (
      !this.resting &&
      !this.recovering &&
      this.retries.length + this.sealed.length === 0 &&
      this.inFlight.length < this.options.window
    )
  }

  /** The next batch to send, now in flight; undefined when it must wait. */
  take(): ProducerBatch | undefined {
    if (this.resting || this.inFlight.length >= this.options.window) return undefined
    if (this.recovering) {
      if (this.inFlight.length > 0) return undefined
      this.recovering = false
      if (this.broken) this.restart()
    }
    if (this.needsIdentity) return undefined
    const batch = this.retries[0] ?? this.sealed[0]
    if (batch === undefined || batch.compressing || !this.withinWindow(batch)) return undefined
    if (this.retries[0] === batch) this.retries.shift()
    else this.sealed.shift()
    if (this.identity !== undefined && !batch.sequenced) {
      batch.number(this.identity, this.nextSequence)
      this.nextSequence = (this.nextSequence + batch.count) % SEQUENCES
    }
    this.inFlight.push(batch)
    return batch
  }

  /**
   * The leader remembers the last batches only: one that is refused again and again while later ones pass must not
   * fall out of its memory, or its offset would be lost.
   */
  private withinWindow(batch: ProducerBatch): boolean {
    for (const other of this.inFlight) {
      if (batch.order - other.order >= this.options.window) return false
    }
    return true
  }

  bytesOf(batch: ProducerBatch): Uint8Array {
    return batch.bytes(this.identity)
  }

  stored(batch: ProducerBatch, baseOffset: number): void {
    if (!this.leaveFlight(batch)) return
    batch.stored(this.partition, baseOffset)
    this.options.settled(batch)
  }

  /** Answered with an error. True when it will be tried again: then the line should rest a little. */
  refused(batch: ProducerBatch, error: EastGuardError): boolean {
    if (error.code === 'DUPLICATE_SEQUENCE') {
      this.stored(batch, -1)
      return false
    }
    batch.trouble = error
    if (!REFUSED_FOR_SURE.has(error.code)) batch.doubt = true
    const wasFirst = this.isFirst(batch)
    if (!this.leaveFlight(batch)) return false
    if (error.code === 'OUT_OF_ORDER_SEQUENCE' || error.code === 'UNKNOWN_PRODUCER_ID') {
      if (wasFirst && batch.restarts >= RESTARTS_MAX) return this.giveUp(batch, error)
      if (wasFirst) this.broken = true
      return this.again(batch)
    }
    if (error.code === 'PRODUCER_FENCED') this.identity = undefined
    return error.retriable ? this.again(batch) : this.giveUp(batch, error)
  }

  /** No answer came. `maybeArrived`: the request may have reached the broker. */
  lost(batch: ProducerBatch, error: EastGuardError, maybeArrived: boolean): boolean {
    if (maybeArrived) batch.doubt = true
    batch.trouble = error
    if (!this.leaveFlight(batch)) return false
    return error.retriable ? this.again(batch) : this.giveUp(batch, error)
  }

  /** Gives up every batch whose deadline has passed. One in flight keeps its place until its outcome is known. */
  expire(nowMs: number, why: (batch: ProducerBatch) => EastGuardError): void {
    for (const batch of this.inFlight) {
      if (batch.deadlineMs <= nowMs && !batch.settled) batch.failed(tell(why(batch), true))
    }
    for (const line of [this.retries, this.sealed]) {
      while (line.length > 0 && (line[0] as ProducerBatch).deadlineMs <= nowMs) {
        const batch = line.shift() as ProducerBatch
        this.giveUp(batch, why(batch))
      }
    }
    const { open } = this
    if (open !== undefined && open.deadlineMs <= nowMs) {
      this.open = undefined
      this.giveUp(open, why(open))
    }
  }

  /** Everything fails: the topic is gone, or the producer is. */
  failAll(error: EastGuardError): void {
    const all = [...this.inFlight, ...this.retries, ...this.sealed]
    if (this.open !== undefined) all.push(this.open)
    for (const batch of this.inFlight) batch.doubt = true
    this.inFlight = []
    this.retries = []
    this.sealed.length = 0
    this.open = undefined
    for (const batch of all) {
      batch.failed(tell(error, batch.doubt))
      this.options.settled(batch)
    }
  }

  /** False when it left before, with everything else (failAll): a late answer changes nothing. */
  private leaveFlight(batch: ProducerBatch): boolean {
    const at = this.inFlight.indexOf(batch)
    if (at < 0) return false
    this.inFlight.splice(at, 1)
    return true
  }

  /** No batch before it is without an outcome. */
  private isFirst(batch: ProducerBatch): boolean {
    for (const other of this.inFlight) if (other.order < batch.order) return false
    return this.retries.length === 0 || (this.retries[0] as ProducerBatch).order > batch.order
  }

  private again(batch: ProducerBatch): boolean {
    this.recovering = true
    if (batch.settled) {
      // Told its callers already; what is left is the hole that it leaves.
      this.broken = true
      this.options.settled(batch)
      return true
    }
    let at = this.retries.length
    while (at > 0 && (this.retries[at - 1] as ProducerBatch).order > batch.order) at--
    this.retries.splice(at, 0, batch)
    return true
  }

  private giveUp(batch: ProducerBatch, error: EastGuardError): boolean {
    if (batch.sequenced) {
      this.broken = true
      this.recovering = true
    }
    batch.failed(tell(error, batch.doubt))
    this.options.settled(batch)
    return false
  }

  /** On from a hole, under the next epoch. Nothing is in flight. */
  private restart(): void {
    this.broken = false
    if (!this.options.idempotent) return
    const { identity } = this
    if (identity !== undefined) {
      this.identity =
        identity.epoch < EPOCH_MAX
          ? { producerId: identity.producerId, epoch: identity.epoch + 1 }
          : undefined
    }
    this.nextSequence = 0
    const retries = this.retries
    this.retries = []
    for (const batch of retries) {
      if (batch.doubt) this.giveUpInDoubt(batch)
      else {
        batch.unnumber()
        this.retries.push(batch)
      }
    }
  }

  private giveUpInDoubt(batch: ProducerBatch): void {
    const error = new EastGuardError(
      'OUT_OF_ORDER_SEQUENCE',
      `a batch for ${this.topic}/${this.partition} may or may not be stored: its answer was lost, and one before it is missing`,
      { hint: 'read the topic, or send again where a double does no harm' },
    )
    batch.failed(tell(error, true))
    this.options.settled(batch)
  }
}

function tell(error: EastGuardError, maybeStored: boolean): EastGuardError {
  return new EastGuardError(error.code, error.message, {
    cause: error.cause,
    hint: error.hint,
    detail: { ...error.detail, maybeStored },
  })
}
