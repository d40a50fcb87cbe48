// The idempotent producers of one partition (PROTOCOLS §8). Per producer:
//
//   committed   epoch, the last 5 batches (first sequence, last sequence, base offset), log time of the last one
//   pending     batches appended by the leader and not yet committed, oldest first
//
// Both live in one object, found by producer id. A verdict looks at the pending ones first: they are what the next batch
// must continue. Only committed producers are part of range state; they form a list by last use, oldest first, which is
// also the order of their log times, so that expiry looks at one element and an encoded table is the same on every
// replica.
//
// Sequences count records and wrap from 2^31 - 1 to 0. "Behind" is meaningful only for sequences that the epoch has
// really used: an epoch begins at 0, so until it has wrapped nothing above the last sequence is behind it.

import { assert } from '../../base/assert.ts'
import { PRODUCER_WINDOW } from '../../model/limits.ts'
import type { Verdict } from './types.ts'

const SEQUENCE_MASK = 0x7fffffff
/** Half of the sequences: in an epoch that has wrapped, what is no further back than this is behind. */
const HALF = 0x40000000
/** first sequence, last sequence, base offset: so many numbers per batch in the window. */
export const WINDOW_STRIDE = 3
/** The same and epoch, entry number: per pending batch. */
const PENDING_STRIDE = 5
const NO_EPOCH = -1
/** A partition remembers so many producers; then the one idle for longest leaves, as if it had expired. */
const PRODUCERS_MAX = 100_000

export interface Producer {
  readonly id: number
  /** NO_EPOCH: nothing committed. */
  epoch: number
  /** The epoch's sequences have passed 2^31 - 1. */
  wrapped: boolean
  /** Log time of the last committed batch. */
  lastTimeMs: number
  /** Flat, oldest first. The arrays never shrink: the counts say how much of them means something. */
  readonly window: number[]
  windowCount: number
  readonly pending: number[]
  pendingCount: number
  older: Producer | undefined
  newer: Producer | undefined
}

/** The facts of a verdict; one object, reused. */
export interface VerdictFacts {
  verdictOffset: number
  verdictEntry: number
}

export class ProducerTable {
  private readonly byId: Map<number, Producer> = new Map()
  private oldest: Producer | undefined
  private newest: Producer | undefined
  private committed = 0

  /** How many producers have something committed. */
  get size(): number {
    return this.committed
  }

  /** `greatestExpired`: of the range. `facts` is filled for seen and pending. */
  check(
    id: number,
    epoch: number,
    firstSequence: number,
    count: number,
    greatestExpired: number,
    facts: VerdictFacts,
  ): Verdict {
    if (epoch < 0 || firstSequence < 0) return 'OUT_OF_ORDER_SEQUENCE'
    const producer = this.byId.get(id)
    if (producer === undefined) return beginning(id, firstSequence, greatestExpired)
    const { pending, pendingCount } = producer
    const newest = (pendingCount - 1) * PENDING_STRIDE
    const current = pendingCount > 0 ? (pending[newest + 3] as number) : producer.epoch
    if (epoch < current) return 'PRODUCER_FENCED'
    if (epoch > current) return beginning(id, firstSequence, greatestExpired)
    const next =
      pendingCount > 0
        ? ((pending[newest + 1] as number) + 1) & SEQUENCE_MASK
        : committedNext(producer)
    if (firstSequence === next) return 'accept'
    const lastSequence = lastOf(firstSequence, count)
    if (findPending(producer, epoch, firstSequence, lastSequence, facts)) return 'pending'
    if (producer.epoch !== epoch) return 'OUT_OF_ORDER_SEQUENCE'
    if (findSeen(producer, firstSequence, lastSequence, facts)) return 'seen'
    return isStored(producer, firstSequence, lastSequence)
      ? 'DUPLICATE_SEQUENCE'
      : 'OUT_OF_ORDER_SEQUENCE'
  }

  /** The leader has appended this batch as `entry`. Returns the producer, for `commit`. */
  append(
    id: number,
    epoch: number,
    firstSequence: number,
    count: number,
    baseOffset: number,
    entry: number,
  ): Producer {
    const producer = this.findOrMake(id)
    const { pending } = producer
    const at = producer.pendingCount++ * PENDING_STRIDE
    pending[at] = firstSequence
    pending[at + 1] = lastOf(firstSequence, count)
    pending[at + 2] = baseOffset
    pending[at + 3] = epoch
    pending[at + 4] = entry
    return producer
  }

  /** The producer's oldest pending batch is committed at this log time: the window moves. */
  commit(producer: Producer, timeMs: number): void {
    const { pending, window } = producer
    assert(producer.pendingCount > 0, 'a commit follows an append')
    const [first = 0, last = 0, offset = 0, epoch = 0] = pending
    // Only a handful are pending, so moving them down costs less than a ring would.
    moveDown(pending, PENDING_STRIDE, --producer.pendingCount * PENDING_STRIDE)
    if (epoch !== producer.epoch) {
      if (producer.epoch === NO_EPOCH) this.committed++
      producer.epoch = epoch
      producer.wrapped = false
      producer.windowCount = 0
    }
    if (last < first || last === SEQUENCE_MASK) producer.wrapped = true
    if (producer.windowCount === PRODUCER_WINDOW) {
      moveDown(window, WINDOW_STRIDE, --producer.windowCount * WINDOW_STRIDE)
    }
    const at = producer.windowCount++ * WINDOW_STRIDE
    window[at] = first
    window[at + 1] = last
    window[at + 2] = offset
    producer.lastTimeMs = timeMs
    this.moveToNewest(producer)
  }

  /** Drops who was last used at or before `timeMs`, or is one too many. The greatest id dropped, or `greatest`. */
  expire(timeMs: number, greatest: number): number {
    let most = greatest
    let producer = this.oldest
    while (producer !== undefined) {
      if (producer.lastTimeMs > timeMs && this.committed <= PRODUCERS_MAX) break
      most = Math.max(most, producer.id)
      const newer = producer.newer
      this.forget(producer)
      producer = newer
    }
    return most
  }

  /** The committed producers, the one idle for longest first. */
  *[Symbol.iterator](): IterableIterator<Producer> {
    for (let p = this.oldest; p !== undefined; p = p.newer) yield p
  }

  /** Puts back what the iterator gave, in its order. */
  restore(
    id: number,
    epoch: number,
    wrapped: boolean,
    lastTimeMs: number,
    window: readonly number[],
  ): void {
    assert(!this.byId.has(id), 'a producer is restored once')
    const producer = this.findOrMake(id)
    producer.epoch = epoch
    producer.wrapped = wrapped
    producer.lastTimeMs = lastTimeMs
    producer.window.push(...window)
    producer.windowCount = window.length / WINDOW_STRIDE
    this.committed++
    this.moveToNewest(producer)
  }

  private findOrMake(id: number): Producer {
    const found = this.byId.get(id)
    if (found !== undefined) return found
    const made: Producer = {
      id,
      epoch: NO_EPOCH,
      wrapped: false,
      lastTimeMs: 0,
      window: [],
      windowCount: 0,
      pending: [],
      pendingCount: 0,
      older: undefined,
      newer: undefined,
    }
    this.byId.set(id, made)
    return made
  }

  private forget(producer: Producer): void {
    this.unlink(producer)
    this.committed--
    producer.epoch = NO_EPOCH
    producer.wrapped = false
    producer.windowCount = 0
    // With something pending it comes back at that commit, as a producer that begins in the middle.
    if (producer.pendingCount === 0) this.byId.delete(producer.id)
  }

  private moveToNewest(producer: Producer): void {
    if (this.newest === producer) return
    this.unlink(producer)
    producer.older = this.newest
    if (this.newest !== undefined) this.newest.newer = producer
    else this.oldest = producer
    this.newest = producer
  }

  private unlink(producer: Producer): void {
    const { older, newer } = producer
    if (older !== undefined) older.newer = newer
    else if (this.oldest === producer) this.oldest = newer
    if (newer !== undefined) newer.older = older
    else if (this.newest === producer) this.newest = older
    producer.older = undefined
    producer.newer = undefined
  }
}

function lastOf(firstSequence: number, count: number): number {
  return (firstSequence + count - 1) & SEQUENCE_MASK
}

/** A producer that the partition does not know in this epoch must begin at 0. */
function beginning(id: number, firstSequence: number, greatestExpired: number): Verdict {
  if (firstSequence === 0) return 'accept'
  return id <= greatestExpired ? 'UNKNOWN_PRODUCER_ID' : 'OUT_OF_ORDER_SEQUENCE'
}

/** The next sequence after what is committed; there is a window whenever there is an epoch. */
function committedNext(producer: Producer): number {
  const last = producer.window[(producer.windowCount - 1) * WINDOW_STRIDE + 1] as number
  return (last + 1) & SEQUENCE_MASK
}

function findPending(
  producer: Producer,
  epoch: number,
  first: number,
  last: number,
  facts: VerdictFacts,
): boolean {
  const { pending, pendingCount } = producer
  for (let i = 0; i < pendingCount * PENDING_STRIDE; i += PENDING_STRIDE) {
    if (pending[i] !== first || pending[i + 1] !== last || pending[i + 3] !== epoch) continue
    facts.verdictOffset = pending[i + 2] as number
    facts.verdictEntry = pending[i + 4] as number
    return true
  }
  return false
}

function findSeen(producer: Producer, first: number, last: number, facts: VerdictFacts): boolean {
  const { window, windowCount } = producer
  for (let i = 0; i < windowCount * WINDOW_STRIDE; i += WINDOW_STRIDE) {
    if (window[i] !== first || window[i + 1] !== last) continue
    facts.verdictOffset = window[i + 2] as number
    return true
  }
  return false
}

/**
 * Whether every record of a batch that is neither next nor known is certainly committed: the epoch has used its
 * sequences, in this order. What overlaps something pending is not certain, and so no duplicate.
 */
function isStored(producer: Producer, first: number, last: number): boolean {
  const next = committedNext(producer)
  if (!producer.wrapped) return first <= last && last < next
  const back = (next - first) & SEQUENCE_MASK
  const backLast = (next - last) & SEQUENCE_MASK
  return back <= HALF && backLast > 0 && backLast <= back
}

/** Drops the first `by` numbers of an array of which `left` remain. */
function moveDown(numbers: number[], by: number, left: number): void {
  for (let i = 0; i < left; i++) numbers[i] = numbers[i + by] as number
}
