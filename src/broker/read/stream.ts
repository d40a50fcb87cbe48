// A streaming consume: the client grants bytes, the broker pushes as records commit.
//
//   idle ── partition committed something (woken) ──> ready ── its turn, credit left, socket takes more ──> push
//    ^                                                  ^ │
//    └──────────── nothing more there ──────────────────┼─┘ more there: to the end of the queue
//                                                       └── file read in flight: comes back when it is done
//
// Partitions take turns, each for at most TURN_BYTES, so that a busy one starves nobody. A push may overdraw the
// credit by one batch; the debt counts against the next grant. A slow reader costs no more than its credit and the
// socket's bound. With a key span, batches whose hashes lie outside are passed over; every push says where the partition
// stands behind it, and one without batches says just that.

import type { EastGuardError } from '../../base/errors.ts'
import type { Entry } from '../../model/entry.ts'
import { toEastGuardError } from '../errors.ts'
import type { Watcher } from '../sinks.ts'
import type { Cursor } from './cursor.ts'

/** What one partition may push before the next has its turn. */
const TURN_BYTES = 512 * 1024
/** File reads of one stream at a time. */
const READS_MAX = 2

export interface KeySpan {
  readonly least: number
  readonly greatest: number
}

export interface StreamSink {
  /**
   * Batches of the stream's partition `index`, possibly none. False: too much waits for the client already, push no
   * more until `drained`.
   */
  push(
    index: number,
    highWatermark: number,
    logStart: number,
    nextOffset: number,
    entries: readonly Entry[],
  ): boolean
  /** The partition ends here; the stream's others go on. */
  ended(index: number, error: EastGuardError): boolean
}

class StreamPartition implements Watcher {
  readonly index: number
  readonly cursor: Cursor
  queued = false
  over = false
  private readonly stream: ConsumeStream

  constructor(stream: ConsumeStream, index: number, cursor: Cursor) {
    this.stream = stream
    this.index = index
    this.cursor = cursor
  }

  wake(): void {
    this.stream.ready(this)
  }
}

export class ConsumeStream {
  private readonly partitions: readonly StreamPartition[]
  private readonly span: KeySpan | undefined
  private readonly sink: StreamSink
  private queue: StreamPartition[] = []
  private credit: number
  private reads = 0
  private blocked = false
  private pumping = false
  private closed = false

  constructor(
    cursors: readonly Cursor[],
    credit: number,
    span: KeySpan | undefined,
    sink: StreamSink,
  ) {
    this.partitions = cursors.map((cursor, index) => new StreamPartition(this, index, cursor))
    this.credit = credit
    this.span = span
    this.sink = sink
  }

  start(): void {
    for (const partition of this.partitions) {
      partition.queued = true
      this.queue.push(partition)
    }
    this.pump()
  }

  grant(bytes: number): void {
    this.credit = Math.min(this.credit + bytes, Number.MAX_SAFE_INTEGER)
    this.pump()
  }

  /** The client is behind already: wait for `drained`. */
  block(): void {
    this.blocked = true
  }

  /** The client has read: the socket takes more. */
  drained(): void {
    this.blocked = false
    this.pump()
  }

  close(): void {
    this.closed = true
    this.queue = []
    for (const partition of this.partitions) partition.cursor.unwatch(partition)
  }

  ready(partition: StreamPartition): void {
    if (this.closed || partition.queued || partition.over) return
    partition.queued = true
    // The end of a topic is told without credit: there is no later moment for it.
    if (partition.cursor.runtime.deleted) {
      this.turn(partition)
      return
    }
    this.queue.push(partition)
    this.pump()
  }

  private pump(): void {
    if (this.pumping) return
    this.pumping = true
    while (this.credit > 0 && !this.blocked && !this.closed && this.reads < READS_MAX) {
      const partition = this.queue.shift()
      if (partition === undefined) break
      this.turn(partition)
    }
    this.pumping = false
  }

  private turn(partition: StreamPartition): void {
    const most = Math.min(this.credit, TURN_BYTES)
    try {
      const read = partition.cursor.next(most)
      if (read instanceof Promise) this.await(partition, read)
      else this.give(partition, read)
    } catch (error) {
      this.end(partition, error)
    }
  }

  private await(partition: StreamPartition, read: Promise<readonly Entry[]>): void {
    this.reads++
    read
      .then(
        (entries) => {
          this.reads--
          if (!this.closed) this.give(partition, entries)
        },
        (error: unknown) => {
          this.reads--
          if (!this.closed) this.end(partition, error)
        },
      )
      .then(
        () => this.pump(),
        (error: unknown) => this.end(partition, error),
      )
  }

  private give(partition: StreamPartition, entries: readonly Entry[]): void {
    const { cursor, index } = partition
    partition.queued = false
    // A replica that lags may end before the reader.
    if (entries.length === 0 && cursor.committedEnd() <= cursor.offset) {
      cursor.watch(partition)
      return
    }
    const wanted = this.span === undefined ? entries : entries.filter((entry) => this.wants(entry))
    cursor.passed(entries)
    for (const entry of wanted) this.credit -= entry.batch.length
    const highWatermark = cursor.committedEnd()
    if (!this.sink.push(index, highWatermark, cursor.logStart, cursor.offset, wanted)) {
      this.blocked = true
    }
    if (this.closed) return
    partition.queued = true
    this.queue.push(partition)
  }

  private wants(entry: Entry): boolean {
    const span = this.span as KeySpan
    return entry.leastKeyHash <= span.greatest && entry.greatestKeyHash >= span.least
  }

  private end(partition: StreamPartition, error: unknown): void {
    partition.over = true
    partition.queued = false
    if (!this.sink.ended(partition.index, toEastGuardError(error))) this.blocked = true
  }
}
