// A record from send() to its outcome: who waits for it. One of these lives as long as the record's batch does, and that
// is what a record costs: at a million a second, what outlives a turn is what the garbage collector must copy. So the
// record's bytes are apart, and gone once they are in a batch; only a record that must wait for room or for its topic
// keeps both together.

import { EastGuardError } from '../../base/errors.ts'
import type { RecordHeaderBytes } from '../../model/batch/encode.ts'
import { type Abortable, unwatchAbort, watchAbort } from '../aborts.ts'
import type { RecordPlace } from '../api.ts'
import type { Completion } from './batch.ts'
import type { Generation } from './generations.ts'

export interface RecordBytes {
  readonly topic: string
  readonly key: Uint8Array | null
  readonly value: Uint8Array | null
  readonly headers: readonly RecordHeaderBytes[]
  readonly timestamp: number
  /** As the caller chose it; undefined: by key, or any. */
  readonly partition: number | undefined
}

/** A record that cannot go into a batch yet. */
export interface Waiting {
  readonly record: RecordBytes
  readonly outgoing: Outgoing
  readonly sizeBytes: number
  /** On the monotonic clock. */
  readonly deadlineMs: number
}

export class Outgoing implements Completion, Abortable {
  readonly timestamp: number
  readonly generation: Generation
  /** Its bytes are in a batch: an abort no longer keeps it from being sent. */
  batched = false
  done = false
  private signal: AbortSignal | undefined
  private readonly resolve: (place: RecordPlace) => void
  private readonly reject: (error: EastGuardError) => void

  constructor(
    timestamp: number,
    generation: Generation,
    resolve: (place: RecordPlace) => void,
    reject: (error: EastGuardError) => void,
  ) {
    this.timestamp = timestamp
    this.generation = generation
    this.signal = undefined
    this.resolve = resolve
    this.reject = reject
  }

  /** An abort ends the wait at once; whether the record is sent all the same depends on how far it has come. */
  watch(signal: AbortSignal): void {
    this.signal = signal
    watchAbort(signal, this)
  }

  aborted(signal: AbortSignal): void {
    this.failed(
      new EastGuardError('ABORTED', 'send was aborted by the caller', {
        cause: signal.reason,
        detail: { maybeStored: this.batched },
      }),
    )
  }

  stored(place: RecordPlace): void {
    if (this.done) return
    this.done = true
    if (this.signal !== undefined) unwatchAbort(this.signal, this)
    this.resolve(place)
  }

  failed(error: EastGuardError): void {
    if (this.done) return
    this.done = true
    if (this.signal !== undefined) unwatchAbort(this.signal, this)
    this.reject(error)
  }
}

/** One promise for many records: resolves with all their places, or rejects with the first failure once all have settled. */
export class Group {
  private readonly places: RecordPlace[]
  private left: number
  private failure: EastGuardError | undefined
  private readonly resolve: (places: readonly RecordPlace[]) => void
  private readonly reject: (error: EastGuardError) => void

  constructor(
    count: number,
    resolve: (places: readonly RecordPlace[]) => void,
    reject: (error: EastGuardError) => void,
  ) {
    this.places = Array.from({ length: count })
    this.left = count
    this.resolve = resolve
    this.reject = reject
  }

  stored(slot: number, place: RecordPlace): void {
    this.places[slot] = place
    this.countDown()
  }

  failed(error: EastGuardError): void {
    this.failure ??= error
    this.countDown()
  }

  private countDown(): void {
    this.left--
    if (this.left > 0) return
    if (this.failure === undefined) this.resolve(this.places)
    else this.reject(this.failure)
  }
}
