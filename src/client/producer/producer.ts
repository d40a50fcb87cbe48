// The producer: takes records, finds each its partition, gathers them in batches and sees to it that every one gets its
// outcome. The way of a record:
//
//   send() ──room?──> topic known? ──> partition ──> open batch ──full, or due──> queue ──> sender
//             │ no         │ no
//          waiting       topic's own queue                (partition-queue.ts, sender.ts)
//
// Three bounds hold memory: `bufferBytes` for all records that were taken and have no outcome, WAITING_MAX for those
// that wait to be taken, and the window of each partition. Whoever is in a queue leaves it by its deadline.

import { xxh32 } from '../../base/checksum.ts'
import { EastGuardError } from '../../base/errors.ts'
import { Fifo } from '../../base/fifo.ts'
import { BatchBuilder } from '../../model/batch/encode.ts'
import { partitionOf } from '../../model/partitioner.ts'
import type { Timer } from '../../ports/clock.ts'
import type { Producer, ProducerRecord, RecordPlace, SendOptions } from '../api.ts'
import type { Cluster, TopicRoute } from '../cluster.ts'
import { aborted, deadlineIn } from '../timing.ts'
import { ProducerBatch } from './batch.ts'
import { Generations } from './generations.ts'
import { Linger } from './linger.ts'
import { Group, Outgoing } from './outgoing.ts'
import { type Lane, Sender } from './sender.ts'
import {
  BATCH_OVERHEAD_BYTES,
  encodeRecord,
  type ProducerSettings,
  recordSize,
} from './settings.ts'
import { laneOf, type Topic, topicOf } from './topic.ts'

/** Records that wait for room in the buffer. */
const WAITING_MAX = 1_000_000
/** How often deadlines are looked at: a twentieth of the time allowed, within these. */
const SWEEP_MS_LEAST = 10
const SWEEP_MS_MOST = 1000

/** A topic that is being looked up, and the records that wait for it. */
interface Lookup {
  readonly waiting: Outgoing[]
}

export class BatchingProducer implements Producer {
  private readonly cluster: Cluster
  private readonly settings: ProducerSettings
  private readonly onClosed: () => void
  private readonly sender: Sender
  private readonly onSettled = (batch: ProducerBatch): void => this.settled(batch)
  private readonly topics = new Map<string, Topic>()
  private readonly lookups = new Map<string, Lookup>()
  private readonly waiting = new Fifo<Outgoing>(WAITING_MAX)
  private readonly generations = new Generations()
  private readonly linger: Linger
  private sweepTimer: Timer | undefined
  private reservedBytes = 0
  private unsettled = 0
  private closing: Promise<void> | undefined

  constructor(cluster: Cluster, settings: ProducerSettings, onClosed: () => void) {
    this.cluster = cluster
    this.settings = settings
    this.onClosed = onClosed
    const { clock } = cluster.ports
    this.linger = new Linger(clock, (lane, batch) => this.makeDue(lane, batch))
    this.sender = new Sender(cluster, {
      seal: (lane) => this.seal(lane),
      topicGone: (topic, error) => this.topicGone(topic as Topic, error),
    })
  }

  send(record: ProducerRecord, options?: SendOptions): Promise<RecordPlace> {
    return new Promise((resolve, reject) => {
      this.accept(record, options?.signal, resolve, reject)
    })
  }

  sendBatch(
    records: readonly ProducerRecord[],
    options?: SendOptions,
  ): Promise<readonly RecordPlace[]> {
    if (records.length === 0) return Promise.resolve([])
    return new Promise((resolve, reject) => {
      const group = new Group(records.length, resolve, reject)
      const failed = (error: EastGuardError): void => group.failed(error)
      for (const [slot, record] of records.entries()) {
        this.accept(record, options?.signal, (place) => group.stored(slot, place), failed)
      }
    })
  }

  flush(): Promise<void> {
    const done = this.generations.close()
    this.sealAll()
    return done
  }

  close(): Promise<void> {
    this.closing ??= this.flush().finally(() => {
      this.linger.stop()
      this.sweepTimer?.cancel()
      this.onClosed()
    })
    return this.closing
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close()
  }

  private accept(
    record: ProducerRecord,
    signal: AbortSignal | undefined,
    resolve: (place: RecordPlace) => void,
    reject: (error: EastGuardError) => void,
  ): void {
    let outgoing: Outgoing
    try {
      if (this.closing !== undefined) throw new EastGuardError('CLOSED', 'the producer is closed')
      if (signal?.aborted === true) throw aborted(signal, 'send')
      const { clock } = this.cluster.ports
      const bytes = encodeRecord(record, clock)
      const size = recordSize(bytes)
      this.checkSize(size)
      const deadlineMs = clock.monotonic() + this.settings.deliveryTimeoutMs
      const generation = this.generations.current
      outgoing = new Outgoing(bytes, size, deadlineMs, generation, resolve, reject)
    } catch (error) {
      reject(error instanceof EastGuardError ? error : invalid(String(error)))
      return
    }
    if (signal !== undefined) outgoing.watch(signal)
    if (this.waiting.size > 0 || !this.fits(outgoing)) {
      if (!this.waiting.push(outgoing)) {
        const message = `${WAITING_MAX} records wait for the producer's buffer`
        outgoing.failed(new EastGuardError('BUFFER_FULL', message))
        return
      }
      outgoing.generation.live++
      this.countUp(1)
      return
    }
    outgoing.generation.live++
    this.countUp(1)
    this.take(outgoing)
  }

  private checkSize(size: number): void {
    const most = this.settings.maxBatchBytes - BATCH_OVERHEAD_BYTES
    if (size > most) throw tooLarge(size, most, 'maxBatchBytes allows')
  }

  private fits(outgoing: Outgoing): boolean {
    // An empty buffer takes a record of any size, or it would wait for ever.
    return (
      this.reservedBytes === 0 ||
      this.reservedBytes + outgoing.sizeBytes <= this.settings.bufferBytes
    )
  }

  /** It has room: reserve it, and bring it to its topic. */
  private take(outgoing: Outgoing): void {
    this.reservedBytes += outgoing.sizeBytes
    const topic = this.topics.get(outgoing.topic)
    if (topic !== undefined) this.append(topic, outgoing)
    else this.lookUp(outgoing.topic).waiting.push(outgoing)
  }

  private lookUp(name: string): Lookup {
    const running = this.lookups.get(name)
    if (running !== undefined) return running
    const lookup: Lookup = { waiting: [] }
    this.lookups.set(name, lookup)
    const attempt = (): void => {
      const deadline = deadlineIn(this.cluster.ports.clock, this.settings.deliveryTimeoutMs)
      this.cluster.route(name, deadline).then(
        (route) => {
          this.lookups.delete(name)
          const topic = this.begin(route)
          for (const outgoing of lookup.waiting) {
            if (outgoing.done) this.drop(outgoing)
            else this.append(topic, outgoing)
          }
        },
        (error: unknown) => {
          const known = error instanceof EastGuardError ? error : invalid(String(error))
          // Those whose time is over have left; the others have some left, and the trouble may pass.
          if (known.retriable && lookup.waiting.length > 0) {
            attempt()
            return
          }
          this.lookups.delete(name)
          for (const outgoing of lookup.waiting) this.fail(outgoing, known)
        },
      )
    }
    attempt()
    return lookup
  }

  private begin(route: TopicRoute): Topic {
    const topic = topicOf(route, this.settings, this.cluster.ports.random)
    this.topics.set(route.view.name, topic)
    return topic
  }

  private append(topic: Topic, outgoing: Outgoing): void {
    const { policy } = topic.route.view
    const { key, partition: chosen } = outgoing
    if (chosen !== undefined && chosen >= policy.partitions) {
      const message = `topic '${outgoing.topic}' has no partition ${chosen}, only ${policy.partitions}`
      this.fail(outgoing, new EastGuardError('UNKNOWN_PARTITION', message))
      return
    }
    const sizeMax = Math.min(this.settings.maxBatchBytes, policy.maxMessageBytes)
    if (outgoing.sizeBytes > sizeMax - BATCH_OVERHEAD_BYTES) {
      const most = sizeMax - BATCH_OVERHEAD_BYTES
      this.fail(outgoing, tooLarge(outgoing.sizeBytes, most, `topic '${outgoing.topic}' takes`))
      return
    }
    const partition =
      chosen ??
      (key === null ? topic.sticky % policy.partitions : partitionOf(key, policy.partitions))
    const lane = laneOf(topic, partition, this.cluster, this.onSettled)
    let batch = lane.queue.open ?? this.openBatch(lane)
    if (!put(batch, outgoing, sizeMax)) {
      this.seal(lane)
      batch = this.openBatch(lane)
      put(batch, outgoing, sizeMax)
    }
    batch.reservedBytes += outgoing.sizeBytes
    batch.add(outgoing, key === null ? undefined : xxh32(key))
    outgoing.letGo()
    if (batch.count >= this.settings.maxBatchRecords || batch.builder.size >= sizeMax) {
      this.seal(lane)
    } else if (outgoing.generation !== this.generations.current && !batch.due) {
      // Somebody flushed while it waited.
      this.makeDue(lane, batch)
    }
  }

  private openBatch(lane: Lane): ProducerBatch {
    const { clock } = this.cluster.ports
    const nowMs = clock.monotonic()
    const { codec, lingerMs, deliveryTimeoutMs } = this.settings
    const dueMs = nowMs + lingerMs
    const batch = new ProducerBatch(new BatchBuilder(), codec, dueMs, nowMs + deliveryTimeoutMs)
    lane.queue.open = batch
    this.linger.watch(lane, dueMs)
    // Partitions may have been added meanwhile; a batch is often enough to look.
    if (this.cluster.routeIfKnown(lane.queue.topic) === undefined) this.sender.refresh(lane.topic)
    return batch
  }

  private makeDue(lane: Lane, batch: ProducerBatch): void {
    batch.due = true
    this.sender.ready(lane)
  }

  /** The lane's open batch goes in line. */
  private seal(lane: Lane): void {
    const topic = lane.topic as Topic
    const batch = lane.queue.seal()
    if (batch === undefined) return
    if (topic.sticky % topic.route.view.policy.partitions === lane.queue.partition) topic.sticky++
    if (batch.codec !== 'none') this.compress(lane, batch)
    this.sender.ready(lane)
  }

  private compress(lane: Lane, batch: ProducerBatch): void {
    batch.compressing = true
    this.cluster.ports.compute.compress(batch.codec, batch.builder.records()).then(
      (compressed) => {
        batch.compressed = compressed
        batch.compressing = false
        this.sender.ready(lane)
      },
      (error: unknown) => {
        // The records are whole without it.
        this.cluster.ports.log.warn('a batch could not be compressed', { err: error })
        batch.compressing = false
        this.sender.ready(lane)
      },
    )
  }

  private sealAll(): void {
    for (const topic of this.topics.values())
      for (const lane of topic.lanes) if (lane !== undefined) this.seal(lane)
  }

  private topicGone(topic: Topic, error: EastGuardError): void {
    topic.gone = true
    const { name } = topic.route.view
    this.cluster.forgetRoute(topic.route)
    if (this.topics.get(name) === topic) this.topics.delete(name)
    for (const lane of topic.lanes) lane?.queue.failAll(error)
  }

  /** A record that never reached a batch has failed. */
  private fail(outgoing: Outgoing, error: EastGuardError): void {
    outgoing.failed(error)
    this.drop(outgoing)
  }

  private drop(outgoing: Outgoing): void {
    this.reservedBytes -= outgoing.sizeBytes
    this.generations.settle(outgoing.generation, 1)
    this.countDown(1)
    this.takeWaiting()
  }

  private settled(batch: ProducerBatch): void {
    this.reservedBytes -= batch.reservedBytes
    for (const { generation } of batch.completions) this.generations.settle(generation, 1)
    this.countDown(batch.count)
    this.takeWaiting()
  }

  private takeWaiting(): void {
    for (let next = this.waiting.peek(); next !== undefined; next = this.waiting.peek()) {
      if (!next.done && !this.fits(next)) return
      this.waiting.shift()
      if (next.done) {
        this.generations.settle(next.generation, 1)
        this.countDown(1)
      } else this.take(next)
    }
  }

  private countUp(count: number): void {
    this.unsettled += count
    if (this.sweepTimer === undefined) this.armSweep()
  }

  private countDown(count: number): void {
    this.unsettled -= count
    if (this.unsettled > 0) return
    this.sweepTimer?.cancel()
    this.sweepTimer = undefined
  }

  private armSweep(): void {
    const everyMs = Math.min(
      SWEEP_MS_MOST,
      Math.max(SWEEP_MS_LEAST, this.settings.deliveryTimeoutMs / 20),
    )
    this.sweepTimer = this.cluster.ports.clock.after(everyMs, () => this.sweep())
  }

  /** Tells everything whose time is over. */
  private sweep(): void {
    this.armSweep()
    const nowMs = this.cluster.ports.clock.monotonic()
    for (const topic of this.topics.values()) {
      for (const lane of topic.lanes) {
        lane?.queue.expire(nowMs, () => this.late(topic.route.view.name))
        if (lane !== undefined) this.sender.ready(lane)
      }
    }
    for (const [name, lookup] of this.lookups) {
      while ((lookup.waiting[0]?.deadlineMs ?? Infinity) <= nowMs) {
        const outgoing = lookup.waiting.shift()
        if (outgoing !== undefined) this.fail(outgoing, this.late(name))
      }
    }
    for (let next = this.waiting.peek(); next !== undefined; next = this.waiting.peek()) {
      if (next.deadlineMs > nowMs) break
      this.waiting.shift()
      next.failed(this.late(next.topic))
      this.generations.settle(next.generation, 1)
      this.countDown(1)
    }
  }

  private late(topic: string): EastGuardError {
    const message = `a record for '${topic}' got no answer within deliveryTimeoutMs (${this.settings.deliveryTimeoutMs} ms)`
    return new EastGuardError('TIMEOUT', message, { detail: { maybeStored: false } })
  }
}

function put(batch: ProducerBatch, outgoing: Outgoing, sizeMax: number): boolean {
  return batch.builder.append(
    outgoing.key,
    outgoing.value,
    outgoing.headers,
    outgoing.timestamp,
    sizeMax,
  )
}

function tooLarge(size: number, most: number, who: string): EastGuardError {
  return new EastGuardError('RECORD_TOO_LARGE', `a record of ${size} bytes; ${who} ${most}`, {
    detail: { sizeBytes: size, mostBytes: most, maybeStored: false },
  })
}

function invalid(message: string): EastGuardError {
  return new EastGuardError('INVALID_ARGUMENT', message)
}
