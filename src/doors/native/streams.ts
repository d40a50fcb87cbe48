// The consume streams of one connection, by the request id that opened them. A grant or a close may overtake the opening,
// which waits while a range loads; both are kept for it.

import { EastGuardError } from '../../base/errors.ts'
import type { Broker } from '../../broker/broker.ts'
import { toEastGuardError } from '../../broker/errors.ts'
import { Cursor } from '../../broker/read/cursor.ts'
import { ConsumeStream, type StreamSink } from '../../broker/read/stream.ts'
import type { Entry } from '../../model/entry.ts'
import { type ConsumedPartition, type ConsumeRequest, consume } from '../../wire/native/consume.ts'
import { consumeDataHead, consumeEndFrame } from '../../wire/native/consume-data.ts'
import { responseFrame } from '../../wire/native/header.ts'
import { statusOf } from '../../wire/native/redirect.ts'
import type { Outbox } from './outbox.ts'
import { STREAMS_MAX } from './settings.ts'

interface Opened {
  stream: ConsumeStream | undefined
  /** Granted before the stream was open. */
  credit: number
}

export class Streams {
  private readonly broker: Broker
  private readonly outbox: Outbox
  private readonly opened = new Map<number, Opened>()

  constructor(broker: Broker, outbox: Outbox) {
    this.broker = broker
    this.outbox = outbox
  }

  /** Resolves when the answer is on its way. */
  async open(requestId: number, request: ConsumeRequest): Promise<void> {
    if (this.opened.has(requestId)) {
      throw new EastGuardError('MALFORMED_REQUEST', `a stream ${requestId} is open already`)
    }
    if (this.opened.size >= STREAMS_MAX) {
      throw new EastGuardError('TOO_MANY_REQUESTS', `${STREAMS_MAX} streams are open already`)
    }
    const opened: Opened = { stream: undefined, credit: request.creditBytes }
    this.opened.set(requestId, opened)
    const cursors = request.partitions.map(({ topicId, partition, offset }) =>
      this.broker.cursor(topicId, partition, offset),
    )
    const partitions = await Promise.all(cursors.map(standing))
    // Closed, or the connection lost, while a range was loading.
    if (this.opened.get(requestId) !== opened) return
    this.outbox.push(responseFrame(consume, requestId, { partitions }))
    const live: Cursor[] = []
    const indexes: number[] = []
    for (const [index, cursor] of cursors.entries()) {
      if (cursor instanceof EastGuardError || partitions[index]?.error !== undefined) continue
      live.push(cursor)
      indexes.push(index)
    }
    const sink = new Pushes(this.outbox, requestId, indexes)
    const stream = new ConsumeStream(live, opened.credit, request.keySpan, sink)
    opened.stream = stream
    if (this.outbox.blocked) stream.block()
    stream.start()
  }

  grant(requestId: number, bytes: number): void {
    const opened = this.opened.get(requestId)
    if (opened === undefined) return
    if (opened.stream === undefined) opened.credit += bytes
    else opened.stream.grant(bytes)
  }

  close(requestId: number): void {
    const opened = this.opened.get(requestId)
    this.opened.delete(requestId)
    opened?.stream?.close()
  }

  drained(): void {
    for (const { stream } of this.opened.values()) stream?.drained()
  }

  closeAll(): void {
    for (const requestId of Array.from(this.opened.keys())) this.close(requestId)
  }
}

async function standing(cursor: Cursor | EastGuardError): Promise<ConsumedPartition> {
  if (cursor instanceof EastGuardError) {
    return { ...statusOf(cursor), highWatermark: -1, logStart: -1 }
  }
  try {
    const highWatermark = await cursor.highWatermark()
    const { logStart } = cursor
    const outside = cursor.misplaced() !== undefined
    return { error: outside ? 'OFFSET_OUT_OF_RANGE' : undefined, highWatermark, logStart }
  } catch (error) {
    return { ...statusOf(toEastGuardError(error)), highWatermark: -1, logStart: -1 }
  }
}

/** Turns what a stream pushes into frames: a head of its own, then the batches by reference. */
class Pushes implements StreamSink {
  private readonly outbox: Outbox
  private readonly requestId: number
  /** The partition's place in the request, by its place in the stream. */
  private readonly indexes: readonly number[]

  constructor(outbox: Outbox, requestId: number, indexes: readonly number[]) {
    this.outbox = outbox
    this.requestId = requestId
    this.indexes = indexes
  }

  push(
    index: number,
    highWatermark: number,
    logStart: number,
    nextOffset: number,
    entries: readonly Entry[],
  ): boolean {
    let bytes = 0
    for (const entry of entries) bytes += entry.batch.length
    const place = this.indexes[index] as number
    const { requestId, outbox } = this
    outbox.push(
      consumeDataHead(requestId, undefined, place, highWatermark, logStart, nextOffset, bytes),
    )
    for (const entry of entries) outbox.push(entry.batch)
    return this.goesOn()
  }

  ended(index: number, error: EastGuardError): boolean {
    const place = this.indexes[index] as number
    const { nextOffset } = error.detail
    const next = typeof nextOffset === 'number' ? nextOffset : -1
    this.outbox.push(consumeEndFrame(this.requestId, place, next, statusOf(error)))
    return this.goesOn()
  }

  /** Within one turn nothing reaches the socket, so the bound is kept here too. */
  private goesOn(): boolean {
    if (this.outbox.blocked) return false
    if (this.outbox.waitingBytes < WAITING_BYTES_MAX) return true
    this.outbox.flush()
    return !this.outbox.blocked
  }
}

const WAITING_BYTES_MAX = 1024 * 1024
