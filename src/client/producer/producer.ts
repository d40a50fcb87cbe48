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
import type { Cluster } from '../cluster.ts'
import { addressName, type TopicRoute } from '../route.ts'
import { aborted, deadlineIn } from '../timing.ts'
import { ProducerBatch } from './batch.ts'
import { Generations } from './generations.ts'
import { Linger } from './linger.ts'
import { Group, Outgoing, type RecordBytes, type Waiting } from './outgoing.ts'
import { type Lane, Sender } from './sender.ts'
import {
  BATCH_OVERHEAD_BYTES,
  encodeRecord,
  type ProducerSettings,
  recordSize,
} from './settings.ts'
import { targetOf } from './target.ts'
import { laneOf, type Topic, topicOf } from './topic.ts'

/** Records that wait for room in the buffer. */
const WAITING_MAX = 1_000_000
/** How often deadlines are looked at: a twentieth of the time allowed, within these. */
const SWEEP_MS_LEAST = 10
const SWEEP_MS_MOST = 1000

/** A producer that writes to more topics than this asks now and then whether they are still there. */
const TOPICS_UNASKED = 256

/** A topic that is being looked up, and the records that wait for it. */
interface Lookup {
  readonly waiting: Waiting[]
}

export class BatchingProducer implements Producer {
  private readonly cluster: Cluster
  private readonly settings: ProducerSettings
  private readonly onClosed: () => void
  private readonly sender: Sender
  private readonly onSettled = (batch: ProducerBatch): void => this.settled(batch)
  private readonly topics = new Map<string, Topic>()
  private readonly lookups = new Map<string, Lookup>()
  private readonly waiting = new Fifo<Waiting>(WAITING_MAX)
  /** Records that were waiting are being brought to their topic: none may overtake them. */
  private ordering = false
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
    let bytes: RecordBytes
    let sizeBytes: number
    try {
      if (this.closing !== undefined) throw new EastGuardError('CLOSED', 'the producer is closed')
      if (signal?.aborted === true) throw aborted(signal, 'send')
      bytes = encodeRecord(record, this.cluster.ports.clock)
      sizeBytes = recordSize(bytes)
      this.checkSize(sizeBytes)
    } catch (error) {
      reject(error instanceof EastGuardError ? error : invalid(String(error)))
      return
    }
    const generation = this.generations.current
    const outgoing = new Outgoing(bytes.timestamp, generation, resolve, reject)
    if (signal !== undefined) outgoing.watch(signal)
    const topic = this.topics.get(bytes.topic)
    if (this.waiting.size === 0 && topic !== undefined && this.fits(sizeBytes)) {
      this.count(outgoing)
      this.reservedBytes += sizeBytes
      this.append(topic, bytes, sizeBytes, outgoing)
      return
    }
    const deadlineMs = this.cluster.ports.clock.monotonic() + this.settings.deliveryTimeoutMs
    if (!this.waiting.push({ record: bytes, outgoing, sizeBytes, deadlineMs })) {
      const message = `${WAITING_MAX} records wait for the producer's buffer`
      outgoing.failed(new EastGuardError('BUFFER_FULL', message))
      return
    }
    this.count(outgoing)
    this.takeWaiting()
  }

  private count(outgoing: Outgoing): void {
    outgoing.generation.live++
    this.unsettled++
    if (this.sweepTimer === undefined) this.armSweep()
  }

  private checkSize(size: number): void {
    const most = this.settings.maxBatchBytes - BATCH_OVERHEAD_BYTES
    if (size > most) throw tooLarge(size, most, 'maxBatchBytes allows')
  }

  private fits(sizeBytes: number): boolean {
    // An empty buffer takes a record of any size, or it would wait for ever.
    return this.reservedBytes === 0 || this.reservedBytes + sizeBytes <= this.settings.bufferBytes
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
          this.ordering = true
          for (const waiting of lookup.waiting) this.bring(topic, waiting)
          this.ordering = false
          this.takeWaiting()
        },
        (error: unknown) => {
          const known = error instanceof EastGuardError ? error : invalid(String(error))
          // Those whose time is over have left; the others have some left, and the trouble may pass.
          if (known.retriable && lookup.waiting.length > 0) {
            attempt()
            return
          }
          this.lookups.delete(name)
          for (const { outgoing, sizeBytes } of lookup.waiting) {
            this.fail(outgoing, sizeBytes, known)
          }
        },
      )
    }
    attempt()
    return lookup
  }

  private begin(route: TopicRoute): Topic {
    const topic = topicOf(route, this.settings, this.cluster.ports)
    this.topics.set(route.view.name, topic)
    if (this.topics.size > TOPICS_UNASKED) this.askAfterOldest()
    return topic
  }

  /**
   * Two topics that were not asked after for longest are looked up again, for each that is new: those that were deleted
   * leave, so a producer keeps no more of them than it writes to and this many.
   */
  private askAfterOldest(): void {
    for (const [name, topic] of Array.from(take(this.topics, 2))) {
      this.topics.delete(name)
      this.topics.set(name, topic)
      void this.sender.refresh(topic)
    }
  }

  private bring(topic: Topic, { record, sizeBytes, outgoing }: Waiting): void {
    if (outgoing.done) this.release(outgoing, sizeBytes)
    else this.append(topic, record, sizeBytes, outgoing)
  }

  /** Partitions may have been added since the topic was looked up. */
  private async askForPartition(
    topic: Topic,
    record: RecordBytes,
    sizeBytes: number,
    outgoing: Outgoing,
  ): Promise<void> {
    const { name } = topic.route.view
    await this.sender.refresh(topic)
    if ((record.partition ?? 0) >= topic.route.view.policy.partitions) {
      // That answer may be older than the question: it was under way, or somebody else's.
      this.cluster.forgetTopic(name)
      await this.sender.refresh(topic)
    }
    if (outgoing.done) this.release(outgoing, sizeBytes)
    else if (topic.gone) {
      const message = `the topic '${name}' was deleted`
      this.fail(outgoing, sizeBytes, new EastGuardError('UNKNOWN_TOPIC', message))
    } else this.append(topic, record, sizeBytes, outgoing, true)
  }

  private append(
    topic: Topic,
    record: RecordBytes,
    sizeBytes: number,
    outgoing: Outgoing,
    upToDate: boolean = false,
  ): void {
    const { policy, name } = topic.route.view
    const { key, partition: chosen } = record
    if (chosen !== undefined && chosen >= policy.partitions) {
      if (!upToDate) {
        void this.askForPartition(topic, record, sizeBytes, outgoing)
        return
      }
      const message = `topic '${name}' has no partition ${chosen}, only ${policy.partitions}`
      this.fail(outgoing, sizeBytes, new EastGuardError('UNKNOWN_PARTITION', message))
      return
    }
    const sizeMax = Math.min(this.settings.maxBatchBytes, policy.maxMessageBytes)
    if (sizeBytes > sizeMax - BATCH_OVERHEAD_BYTES) {
      const most = sizeMax - BATCH_OVERHEAD_BYTES
      this.fail(outgoing, sizeBytes, tooLarge(sizeBytes, most, `topic '${name}' takes`))
      return
    }
    const partition =
      chosen ??
      (key === null ? topic.sticky % policy.partitions : partitionOf(key, policy.partitions))
    const lane = laneOf(topic, partition, this.cluster, this.onSettled)
    let batch = lane.queue.open ?? this.openBatch(lane)
    if (!put(batch, record, sizeMax)) {
      this.seal(lane)
      batch = this.openBatch(lane)
      put(batch, record, sizeMax)
    }
    batch.reservedBytes += sizeBytes
    batch.add(outgoing, key === null ? undefined : xxh32(key))
    outgoing.batched = true
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
    const batch = new ProducerBatch(
      new BatchBuilder(lane.sizeHint),
      codec,
      dueMs,
      nowMs + deliveryTimeoutMs,
    )
    lane.queue.open = batch
    this.linger.watch(lane, dueMs)
    // Partitions may have been added meanwhile; a batch is often enough to look.
    if (this.cluster.routeIfKnown(lane.queue.topic) === undefined) {
      void this.sender.refresh(lane.topic)
    }
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
    // The next will be about as large: then it need not be copied as it grows.
    lane.sizeHint = batch.builder.size
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
  private fail(outgoing: Outgoing, sizeBytes: number, error: EastGuardError): void {
    outgoing.failed(error)
    this.release(outgoing, sizeBytes)
  }

  private release(outgoing: Outgoing, sizeBytes: number): void {
    this.reservedBytes -= sizeBytes
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

  /** Those at the head of the queue for which there is room, or for which nobody waits any more. */
  private takeWaiting(): void {
    if (this.ordering) return
    for (let next = this.waiting.peek(); next !== undefined; next = this.waiting.peek()) {
      if (!next.outgoing.done && !this.fits(next.sizeBytes)) return
      this.waiting.shift()
      this.reservedBytes += next.sizeBytes
      const topic = this.topics.get(next.record.topic)
      if (topic !== undefined) this.bring(topic, next)
      else if (next.outgoing.done) this.release(next.outgoing, next.sizeBytes)
      else this.lookUp(next.record.topic).waiting.push(next)
    }
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
        if (lane === undefined) continue
        const { name } = topic.route.view
        const trouble = this.sender.troubleOf(lane)
        lane.queue.expire(nowMs, (batch) => this.late(name, batch.trouble ?? trouble, lane))
        this.sender.ready(lane)
      }
    }
    for (const [name, { waiting }] of this.lookups) {
      while (waiting.length > 0 && (waiting[0] as Waiting).deadlineMs <= nowMs) {
        const { outgoing, sizeBytes } = waiting.shift() as Waiting
        this.fail(outgoing, sizeBytes, this.late(name))
      }
    }
    for (let next = this.waiting.peek(); next !== undefined; next = this.waiting.peek()) {
      if (next.deadlineMs > nowMs) break
      next.outgoing.failed(this.late(next.record.topic))
      this.waiting.shift()
      this.generations.settle(next.outgoing.generation, 1)
      this.countDown(1)
    }
  }

  private late(topic: string, trouble?: EastGuardError, lane?: Lane): EastGuardError {
    const within = `within deliveryTimeoutMs (${this.settings.deliveryTimeoutMs} ms)`
    const detail = { maybeStored: false }
    if (trouble === undefined) {
      const address = lane === undefined ? undefined : targetOf(lane).address
      const from = address === undefined ? '' : ` from ${addressName(address)}`
      const message = `a record for '${topic}' got no answer${from} ${within}`
      return new EastGuardError('TIMEOUT', message, { detail })
    }
    const { code, hint } = trouble
    const message = `a record for '${topic}' was not stored ${within}; the last attempt ended with ${code}: ${trouble.message}`
    return new EastGuardError('TIMEOUT', message, { cause: trouble, hint, detail })
  }
}

function* take<T>(from: Iterable<T>, count: number): Generator<T> {
  let left = count
  for (const each of from) {
    if (left-- <= 0) return
    yield each
  }
}

function put(batch: ProducerBatch, record: RecordBytes, sizeMax: number): boolean {
  const { key, value, headers, timestamp } = record
  return batch.builder.append(key, value, headers, timestamp, sizeMax)
}

function tooLarge(size: number, most: number, who: string): EastGuardError {
  return new EastGuardError('RECORD_TOO_LARGE', `a record of ${size} bytes; ${who} ${most}`, {
    detail: { sizeBytes: size, mostBytes: most, maybeStored: false },
  })
}

function invalid(message: string): EastGuardError {
  return new EastGuardError('INVALID_ARGUMENT', message)
}
