// What a consumer reads from: batches of its partitions in the order in which they came, whatever happens to
// connections and leaders meanwhile. No record is handed out twice or left out:
//
//   fetchOffset    what the brokers have been asked for: behind the last batch that came
//   position       behind the last record that was handed out;   position <= fetchOffset
//
//   broker ──push──> [ queue: bounded by credit ] ──take──> reader
//                     fetchOffset moves           position moves
//
// A lost stream is opened again at the fetch offsets, and the queue stays. Seek, pause and resume drop what is queued of the
// partition, set its fetch offset back to its position, and open the streams anew; `epoch` tells batches taken before from
// those after. Credit is granted again for what was taken, so that at most `prefetchBytes` and one batch per broker wait.

import { Backoff } from '../../base/backoff.ts'
import { EastGuardError } from '../../base/errors.ts'
import { Fifo } from '../../base/fifo.ts'
import { batchEndOffset, batchesIn } from '../../model/batch/decode.ts'
import type { Timer } from '../../ports/clock.ts'
import type { ConsumeData } from '../../wire/native/consume-data.ts'
import { type Abortable, unwatchAbort, watchAbort } from '../aborts.ts'
import type { Cluster } from '../cluster.ts'
import { byLeader, offsetsAt, outOfRange } from '../offsets.ts'
import type { TopicRoute } from '../route.ts'
import { aborted, deadlineIn } from '../timing.ts'
import { Session } from './session.ts'
import type { ConsumerSettings } from './settings.ts'
import { startOffsets } from './start.ts'

export interface FeedPartition {
  readonly partition: number
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

interface Queued extends Taken {
  readonly session: Session | undefined
}

function unbounded(): Fifo<Queued> {
  return new Fifo(Number.MAX_SAFE_INTEGER)
}

export class Feed implements Abortable {
  readonly partitions: Map<number, FeedPartition> = new Map()
  private readonly cluster: Cluster
  private readonly settings: ConsumerSettings
  private readonly backoff: Backoff
  private route: TopicRoute | undefined
  /** Bounded by credit, not by count. A ring: what was taken must not be kept, however far the brokers run ahead. */
  private queue: Fifo<Queued> = unbounded()
  private sessions: Session[] = []
  private starting: Promise<void> | undefined
  private readonly seeks = new Map<number, number>()
  private readonly pauses = new Set<number>()
  private pausedAll = false
  private failure: EastGuardError | undefined
  private closed = false
  private wake: (() => void) | undefined
  private reopenTimer: Timer | undefined
  private reopenQueued = false
  private openings = 0
  private troubleSinceMs: number | undefined

  constructor(cluster: Cluster, settings: ConsumerSettings) {
    this.cluster = cluster
    this.settings = settings
    const { backoffMs, backoffMaxMs } = cluster.settings
    this.backoff = new Backoff(cluster.ports.random, backoffMs, backoffMaxMs)
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
    this.reopen()
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
    this.reopen()
  }

  close(): void {
    if (this.closed) return
    this.closed = true
    this.end()
  }

  private end(): void {
    const { signal } = this.settings
    if (signal !== undefined) unwatchAbort(signal, this)
    this.reopenTimer?.cancel()
    this.openings++
    this.closeSessions()
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

  private shift(): Queued | undefined {
    for (let queued = this.queue.shift(); queued !== undefined; queued = this.queue.shift()) {
      queued.session?.taken(queued.batch?.length ?? 0)
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
    this.route = route
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
    if (!this.closed) this.open(route)
  }

  /** What was taken or queued of the partition before is void. */
  private restart(state: FeedPartition): void {
    state.epoch++
    state.fetchOffset = state.position
  }

  /** Opens the streams anew at the end of this turn: several changes cost one. */
  private reopen(): void {
    if (this.reopenQueued) return
    this.reopenQueued = true
    this.closeSessions()
    queueMicrotask(() => {
      this.reopenQueued = false
      this.openAgain()
    })
  }

  private openAgain(): void {
    if (this.closed || this.failure !== undefined) return
    this.reopenTimer?.cancel()
    this.reopenTimer = undefined
    this.closeSessions()
    const opening = ++this.openings
    const { clock } = this.cluster.ports
    const sinceMs = clock.monotonic() - (this.troubleSinceMs ?? clock.monotonic())
    const leftMs = Math.max(1, this.settings.unavailableTimeoutMs - sinceMs)
    const { requestTimeoutMs } = this.cluster.settings
    const deadline = deadlineIn(clock, Math.min(requestTimeoutMs, leftMs))
    this.cluster.route(this.settings.topic, deadline).then(
      (route) => {
        if (opening !== this.openings) return
        if (route.view.topicId !== this.route?.view.topicId) {
          const message = `the topic '${this.settings.topic}' was deleted and made anew`
          this.fail(new EastGuardError('UNKNOWN_TOPIC', message))
          return
        }
        this.route = route
        this.open(route)
      },
      (error: unknown) => {
        if (opening === this.openings) this.trouble(asError(error))
      },
    )
  }

  private open(route: TopicRoute): void {
    this.openings++
    const active = [...this.partitions.values()].filter(
      (state) => !state.paused && state.position !== state.end,
    )
    const groups = byLeader(
      route,
      active.map((state) => state.partition),
    )
    const creditBytes = Math.max(1, Math.floor(this.settings.prefetchBytes / (groups.size || 1)))
    for (const [leader, partitions] of groups) {
      const places = partitions.map((partition) => ({
        partition,
        offset: this.partitions.get(partition)?.fetchOffset ?? 0,
      }))
      const connection = this.cluster.at(leader)
      const session = new Session(connection, route.view.name, places, creditBytes, {
        opened: () => this.well(),
        pushed: (partition, data) => this.pushed(session, partition, data),
        partitionFailed: (partition, error) => this.partitionFailed(partition, error),
        lost: (error) => this.trouble(error),
      })
      this.sessions.push(session)
    }
    const { requestTimeoutMs } = this.cluster.settings
    // A copy: a connection that is closed fails the stream at once, and that clears the list.
    const sessions = [...this.sessions]
    for (const session of sessions) {
      session.open(route.view.topicId, this.settings.keySpan, requestTimeoutMs)
    }
  }

  private closeSessions(): void {
    const sessions = this.sessions
    this.sessions = []
    for (const session of sessions) session.close()
  }

  private pushed(session: Session, partition: number, data: ConsumeData): void {
    const state = this.partitions.get(partition)
    if (state === undefined) return
    this.well()
    const batches = batchesIn(data.batches)
    for (const [i, batch] of batches.entries()) {
      const last = i === batches.length - 1
      const nextOffset = last ? data.nextOffset : batchEndOffset(batch)
      this.enqueue(session, state, batch, nextOffset, data.highWatermark)
    }
    if (batches.length === 0) {
      this.enqueue(session, state, undefined, data.nextOffset, data.highWatermark)
    }
    state.fetchOffset = data.nextOffset
    this.wakeUp()
  }

  private enqueue(
    session: Session | undefined,
    from: FeedPartition,
    batch: Uint8Array | undefined,
    nextOffset: number,
    highWatermark: number,
  ): void {
    this.queue.push({ session, from, epoch: from.epoch, batch, nextOffset, highWatermark })
  }

  private well(): void {
    this.troubleSinceMs = undefined
    this.backoff.reset()
  }

  private partitionFailed(partition: number, error: EastGuardError): void {
    if (error.code !== 'OFFSET_OUT_OF_RANGE') this.trouble(error)
    else if (this.settings.onOffsetOutOfRange === 'error') this.failOutOfRange(partition, error)
    else this.reset(partition, this.settings.onOffsetOutOfRange)
  }

  private failOutOfRange(partition: number, error: EastGuardError): void {
    const { route } = this
    const state = this.partitions.get(partition)
    if (route === undefined || state === undefined) return
    const { epoch, fetchOffset } = state
    const { clock } = this.cluster.ports
    const deadline = deadlineIn(clock, this.cluster.settings.requestTimeoutMs)
    const tell = (told: EastGuardError): void => {
      if (state.epoch === epoch) this.fail(told)
    }
    // It is out of range, whatever becomes of the question where the range is.
    outOfRange(this.cluster, route, partition, fetchOffset, deadline).then(tell, () => tell(error))
  }

  /** The next offset does not exist: go on from the start or the end, as the caller chose. */
  private reset(partition: number, to: 'earliest' | 'latest'): void {
    const { route } = this
    const state = this.partitions.get(partition)
    if (route === undefined || state === undefined) return
    const { epoch } = state
    const { clock, log } = this.cluster.ports
    const deadline = deadlineIn(clock, this.cluster.settings.requestTimeoutMs)
    offsetsAt(this.cluster, route, [partition], to, deadline).then(
      ([found]) => {
        if (this.closed || state.epoch !== epoch || found === undefined) return
        const { offset } = found
        log.warn('a consumer went on elsewhere: its offset was out of range', {
          topic: this.settings.topic,
          partition,
          offset: state.fetchOffset,
          to: offset,
        })
        state.fetchOffset = offset
        this.enqueue(undefined, state, undefined, offset, offset)
        this.wakeUp()
        this.reopen()
      },
      (error: unknown) => this.trouble(asError(error)),
    )
  }

  /** Something failed: try again in a while, unless that cannot help or has been tried for too long. */
  private trouble(error: EastGuardError): void {
    if (this.closed || this.failure !== undefined) return
    const { clock } = this.cluster.ports
    const nowMs = clock.monotonic()
    this.troubleSinceMs ??= nowMs
    const pastMs = nowMs - this.troubleSinceMs
    if (!error.retriable || pastMs >= this.settings.unavailableTimeoutMs) {
      this.fail(error)
      return
    }
    if (this.route !== undefined) this.cluster.forgetRoute(this.route)
    if (this.reopenTimer !== undefined) return
    this.reopenTimer = clock.after(this.backoff.next(), () => this.openAgain())
  }
}

function asError(error: unknown): EastGuardError {
  if (error instanceof EastGuardError) return error
  return new EastGuardError('INTERNAL', `the consumer failed: ${String(error)}`, { cause: error })
}
