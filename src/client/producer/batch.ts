// One batch on its way: the records' bytes as they gather, and who waits for them. A record costs its promise, a slot
// in two arrays and nothing else; everything further happens once per batch.
//
//   open ──seal──> sealed ──(compress)──> ready ──take──> in flight ──> settled
//                                           ^                │ refused, or the answer was lost
//                                           └────────────────┘
//
// `doubt` is the word that decides what may be done after a failure: an attempt was sent and its answer never came,
// so that the batch may be stored. It is never sent under other sequence numbers (see partition-queue.ts).

import { putI64, putU16, putU32 } from '../../base/bytes.ts'
import type { Codec } from '../../base/codec.ts'
import type { EastGuardError } from '../../base/errors.ts'
import type { BatchBuilder } from '../../model/batch/encode.ts'
import { NO_PRODUCER, setBatchCrc } from '../../model/batch/header.ts'
import type { RecordPlace } from '../api.ts'
import type { Generation } from './generations.ts'

/** Who waits for one record. Either is called, once. */
export interface Completion {
  readonly timestamp: number
  readonly generation: Generation
  stored(place: RecordPlace): void
  failed(error: EastGuardError): void
}

/** Under which name and number a batch is stored at most once (PROTOCOLS §8). */
export interface ProducerIdentity {
  readonly producerId: number
  readonly epoch: number
}

const NO_SEQUENCE = -1
const PRODUCER_ID_AT = 43
const EPOCH_AT = 51
const SEQUENCE_AT = 53
const FULL_SPAN = 0xffff_ffff

export class ProducerBatch {
  readonly builder: BatchBuilder
  readonly codec: Codec
  /** On the monotonic clock: when its first record must have settled. */
  readonly deadlineMs: number
  /** ... and when it goes though it is not full. */
  readonly dueMs: number
  readonly completions: Completion[] = []
  /** What it holds of the producer's buffer. */
  reservedBytes = 0
  leastKeyHash: number = FULL_SPAN
  greatestKeyHash = 0
  /** The linger is over, or somebody flushes: it may be sealed though it is not full. */
  due = false
  /** Position among the batches of its partition; never changes. */
  order = -1
  sequence: number = NO_SEQUENCE
  doubt = false
  /** Its records have been told; only its place in the sequence still matters. */
  settled = false
  /** What its last attempt came to. */
  trouble: EastGuardError | undefined = undefined
  /** How often it was renumbered under a new epoch. */
  restarts = 0
  /** Being compressed; not to be sent yet. */
  compressing = false
  compressed: Uint8Array | undefined
  private encoded: Uint8Array | undefined

  constructor(builder: BatchBuilder, codec: Codec, dueMs: number, deadlineMs: number) {
    this.builder = builder
    this.codec = codec
    this.dueMs = dueMs
    this.deadlineMs = deadlineMs
  }

  get count(): number {
    return this.completions.length
  }

  get sequenced(): boolean {
    return this.sequence !== NO_SEQUENCE
  }

  add(completion: Completion, keyHash: number | undefined): void {
    this.completions.push(completion)
    if (keyHash === undefined) return
    if (keyHash < this.leastKeyHash) this.leastKeyHash = keyHash
    if (keyHash > this.greatestKeyHash) this.greatestKeyHash = keyHash
  }

  /** The batch's bytes; the first call makes them final. */
  bytes(identity: ProducerIdentity | undefined): Uint8Array {
    if (this.encoded === undefined) {
      // A codec that makes it larger is not worth its time at the reader.
      const packed =
        this.compressed !== undefined && this.compressed.length < this.builder.recordsSize
          ? this.compressed
          : undefined
      this.encoded = this.builder.finish({
        producerId: identity?.producerId ?? NO_PRODUCER,
        producerEpoch: identity?.epoch ?? -1,
        baseSequence: this.sequence,
        ...(packed === undefined ? {} : { codec: this.codec, compressedRecords: packed }),
      })
      this.compressed = undefined
    }
    return this.encoded
  }

  /** Takes its numbers away; the next `bytes` carries `identity` and the sequence given then. */
  unnumber(): void {
    this.sequence = NO_SEQUENCE
    this.restarts++
  }

  number(identity: ProducerIdentity, sequence: number): void {
    this.sequence = sequence
    if (this.encoded === undefined) return
    // Copied, because the earlier attempt's bytes may still be on their way.
    const bytes = this.encoded.slice()
    putI64(bytes, PRODUCER_ID_AT, identity.producerId)
    putU16(bytes, EPOCH_AT, identity.epoch)
    putU32(bytes, SEQUENCE_AT, sequence)
    setBatchCrc(bytes)
    this.encoded = bytes
  }

  /** Tells every record; a second call does nothing. */
  stored(partition: number, baseOffset: number): void {
    if (this.settled) return
    this.settled = true
    let offset = baseOffset
    for (const completion of this.completions) {
      completion.stored({ partition, offset, timestamp: completion.timestamp })
      if (baseOffset >= 0) offset++
    }
  }

  failed(error: EastGuardError): void {
    if (this.settled) return
    this.settled = true
    for (const completion of this.completions) completion.failed(error)
  }
}
