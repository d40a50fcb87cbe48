// What a consumer reads from: batches of its partitions in the order in which they came, whatever happens to
// connections and leaders meanwhile. No record is handed out twice or left out:
//
//   fetchOffset    what the brokers have been asked for: behind the last batch that came
//   position       behind the last record that was handed out;   position <= fetchOffset
//
//   broker ──push──> [ queue: bounded by credit ] ──take──> reader
//                     fetchOffset moves           position moves
//
// From whom they come is a matter of readers.ts: a partition that goes on at another broker goes on at its fetch offset, and
// the queue stays. Seek, pause and resume drop what is queued of the
// partition, set its fetch offset back to its position, and open the streams anew; `epoch` tells batches taken before from
// those after. Credit is granted again for what was taken, so that at most `prefetchBytes` and one batch per broker wait.

import type { EastGuardError } from '../../base/errors.ts'
import { Fifo } from '../../base/fifo.ts'
import { batchEndOffset, batchesIn } from '../../model/batch/decode.ts'
import type { ConsumeData } from '../../wire/native/consume-data.ts'
import { type Abortable, unwatchAbort, watchAbort } from '../aborts.ts'
import type { Cluster } from '../cluster.ts'
import { type LogRange, outOfRange } from '../offsets.ts'
import { aborted, deadlineIn } from '../timing.ts'
import { asError, Readers } from './readers.ts'
import { type ReadPartition } from './reading.ts'
import type { ConsumerSettings } from './settings.ts'
import { startOffsets } from './start.ts'

export interface FeedPartition extends ReadPartition {
  position: number
  fetchOffset: number
  /** Where it stops: the end when the consumer began, or Infinity. */
  readonly end: number
  paused: boolean
  /** Raised by all that makes batches taken earlier void. */
  epoch: number
}

export interface Taken {
  readonly from: FeedPartition
  readonly epoch: number
  /** Undefined: the partition only moved on (batches that its key span leaves out, or a reset). */
  readonly batch: Uint8Array | undefined
  readonly nextOffset: number
  readonly highWatermark: number
}

function unbounded(): Fifo<Taken> {
  return new Fifo(Number.MAX_SAFE_INTEGER)
}

export class Feed implements Abortable {
  readonly partitions: Map<number, FeedPartition> = new Map()
  private readonly cluster: Cluster
  private readonly settings: ConsumerSettings
  /** Bounded by credit, not by count. A ring: what was taken must not be kept, however far the brokers run ahead. */
  private queue: Fifo<Taken> = unbounded()
  private readonly readers: Readers<FeedPartition>
  private starting: Promise<void> | undefined
  private readonly seeks = new Map<number, number>()
  private readonly pauses = new Set<number>()
  private pausedAll = false
  private failure: EastGuardError | undefined
  private closed = false
  private wake: (() => void) | undefined

  constructor(cluster: Cluster, settings: ConsumerSettings) {
    this.cluster = cluster
    this.settings = settings
    this.readers = new Readers<FeedPartition>(cluster, settings, {
      pushed: (state, data) => this.pushed(state, data),
      outOfRange: (state, range) => this.outOfRange(state, range),
      failed: (error) => this.fail(error),
    })
    const { signal } = settings
    if (signal?.aborted === true) this.aborted(signal)
    else if (signal !== undefined) watchAbort(signal, this)
  }

  aborted(signal: AbortSignal): void {
    this.queue = unbounded()
    // What was taken and is being read is void too.
    for (const state of this.partitions.values()) state.epoch++
    this.fail(aborted(signal, `consuming '${this.settings.topic}'`))
  }

  /** The next batch; undefined at the end. Only one caller at a time. */
  async take(): Promise<Taken | undefined> {
    if (this.starting === undefined && this.failure === undefined && !this.closed) {
      this.starting = this.start().catch((error: unknown) => this.fail(asError(error)))
    }
    await this.starting
    for (;;) {
      const queued = this.closed ? undefined : this.shift()
      if (queued !== undefined) return queued
      if (this.failure !== undefined) throw this.failure
      if (this.closed || this.atEnd()) return undefined
      await new Promise<void>((resolve) => {
        this.wake = resolve
      })
    }
  }

  seek(partition: number, offset: number): void {
    const state = this.partitions.get(partition)
    if (state === undefined) {
      this.seeks.set(partition, offset)
      return
    }
    state.position = offset
    this.restart(state)
    this.readers.reopen()
  }

  setPaused(partitions: readonly number[] | undefined, paused: boolean): void {
    if (this.partitions.size === 0) {
      if (partitions === undefined) {
        this.pausedAll = paused
        this.pauses.clear()
      }
      for (const partition of partitions ?? []) {
        if (paused) this.pauses.add(partition)
        else this.pauses.delete(partition)
      }
      return
    }
    for (const partition of partitions ?? this.partitions.keys()) {
      const state = this.partitions.get(partition)
      if (state === undefined || state.paused === paused) continue
      state.paused = paused
      this.restart(state)
    }
    this.readers.reopen()
  }

  close(): void {
    if (this.closed) return
    this.closed = true
    this.end()
  }

  private end(): void {
    const { signal } = this.settings
    if (signal !== undefined) unwatchAbort(signal, this)
    this.readers.close()
    this.wakeUp()
  }

  /** Nothing more comes; `take` rejects with this once what is queued has been taken. */
  fail(error: EastGuardError): void {
    if (this.failure !== undefined || this.closed) return
    this.failure = error
    this.end()
  }

  private wakeUp(): void {
    const { wake } = this
    this.wake = undefined
    wake?.()
  }

  private shift(): Taken | undefined {
    for (let queued = this.queue.shift(); queued !== undefined; queued = this.queue.shift()) {
      this.readers.taken(queued.from, queued.batch?.length ?? 0)
      if (queued.epoch === queued.from.epoch && queued.from.position < queued.from.end)
        return queued
    }
    return undefined
  }

  private atEnd(): boolean {
    if (!this.settings.stopAtEnd) return false
    for (const state of this.partitions.values()) if (state.position < state.end) return false
    return true
  }

  private async start(): Promise<void> {
    const { cluster, settings } = this
    const deadline = deadlineIn(
      cluster.ports.clock,
      cluster.settings.requestTimeoutMs,
      settings.signal,
    )
    const route = await cluster.freshRoute(settings.topic, deadline)
    const starts = await startOffsets(cluster, route, settings, deadline, this.seeks)
    for (const { partition, offset, end } of starts) {
      // Once more: it may have come while the others were looked up.
      const position = this.seeks.get(partition) ?? offset
      this.partitions.set(partition, {
        partition,
        position,
        fetchOffset: position,
        end,
        paused: this.pausedAll || this.pauses.has(partition),
        epoch: 0,
      })
    }
    if (!this.closed) this.readers.start(route, this.partitions.values())
  }

  /** What was taken or queued of the partition before is void. */
  private restart(state: FeedPartition): void {
    state.epoch++
    state.fetchOffset = state.position
  }

  private pushed(state: FeedPartition, data: ConsumeData): void {
    const batches = batchesIn(data.batches)
    for (const [i, batch] of batches.entries()) {
      const last = i === batches.length - 1
      const nextOffset = last ? data.nextOffset : batchEndOffset(batch)
      this.enqueue(state, batch, nextOffset, data.highWatermark)
    }
    if (batches.length === 0) this.enqueue(state, undefined, data.nextOffset, data.highWatermark)
    state.fetchOffset = data.nextOffset
    this.wakeUp()
  }

  private enqueue(
    from: FeedPartition,
    batch: Uint8Array | undefined,
    nextOffset: number,
    highWatermark: number,
  ): void {
    this.queue.push({ from, epoch: from.epoch, batch, nextOffset, highWatermark })
  }

  /** The next offset does not exist: an error, or on from the start or the end, as the caller chose. */
  private outOfRange(state: FeedPartition, range: LogRange): void {
    const { partition, fetchOffset } = state
    const { topic, onOffsetOutOfRange } = this.settings
    if (onOffsetOutOfRange === 'error') {
      this.fail(outOfRange(topic, partition, fetchOffset, range))
      return
    }
    const to = range[onOffsetOutOfRange]
    this.cluster.ports.log.warn('a consumer went on elsewhere: its offset was out of range', {
      topic,
      partition,
      offset: fetchOffset,
      to,
    })
    state.fetchOffset = to
    this.enqueue(state, undefined, to, to)
    this.wakeUp()
    this.readers.restart(state)
  }
}
