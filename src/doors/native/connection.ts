// One client's connection: what it may do when, and how each kind of misbehaviour ends without harm to others.
//
//   connected ── hello ──> ready ── drain or fatal frame ──> closing ── answers sent ──> closed
//
//   no hello within hello_timeout_ms                     closed
//   anything else before the hello                       HELLO_REQUIRED, closed
//   no common version, another cluster                   UNSUPPORTED_VERSION, CLUSTER_MISMATCH, closed
//   frame larger than allowed, or too small for a header FRAME_TOO_LARGE, MALFORMED_REQUEST, closed: no next frame is found
//   unknown operation, wrong version, malformed body     UNKNOWN_OPERATION, ..., lives on: the frame's end is known
//   a frame begun and not finished in frame_timeout_ms   closed
//   too many requests or bytes unanswered                not read from until there are fewer
//   answers not read                                     not read from; closed after answer_timeout_ms without progress
//   its own end not closed after ours                    closed after answer_timeout_ms
//
// Produces of one received chunk are numbered first and committed together; answers of one turn leave in one write.

import { AssertionFailed, assert } from '../../base/assert.ts'
import { EastGuardError } from '../../base/errors.ts'
import type { Broker } from '../../broker/broker.ts'
import { toEastGuardError } from '../../broker/errors.ts'
import { Fetch, type FetchedPartition } from '../../broker/read/fetch.ts'
import { HELLO_BYTES_MAX } from '../../model/limits.ts'
import type { Connection } from '../../ports/streams.ts'
import { consume } from '../../wire/native/consume.ts'
import { consumeCredit } from '../../wire/native/consume-credit.ts'
import { type FetchRequest, fetch, fetchedParts } from '../../wire/native/fetch.ts'
import { FrameReader } from '../../wire/native/frame-reader.ts'
import {
  errorFrame,
  operationOf,
  readRequest,
  requestIdOf,
  responseFrame,
  versionOf,
} from '../../wire/native/header.ts'
import { hello } from '../../wire/native/hello.ts'
import {
  agreeVersion,
  OPERATION,
  operationName,
  requestFault,
  VERSION_MAX,
  VERSION_MIN,
} from '../../wire/native/operations.ts'
import { Outbox } from './outbox.ts'
import { Produces } from './produces.ts'
import { handlerOf } from './requests.ts'
import type { NativeDoorSettings } from './settings.ts'
import { Streams } from './streams.ts'

/** A long poll waits no longer, whatever it asks for. */
const FETCH_WAIT_MS_MAX = 3_600_000
/** What one fetch may take of its client's bytes in flight, whatever it asks for. */
const FETCH_BYTES_MAX = 16 * 1024 * 1024

type Phase = 'connected' | 'ready' | 'closing' | 'closed'

export class NativeConnection {
  private readonly broker: Broker
  private readonly settings: NativeDoorSettings
  private readonly connection: Connection
  private readonly onClosed: (self: NativeConnection) => void
  private readonly reader = new FrameReader(HELLO_BYTES_MAX)
  private readonly outbox: Outbox
  private readonly produces: Produces
  private readonly streams: Streams
  private readonly fetches = new Set<Fetch>()
  private phase: Phase = 'connected'
  private version = 0
  private inFlight = 0
  private inFlightBytes = 0
  private paused = false
  /** On clock.monotonic: when the state that must not last began. */
  private helloBy: number
  private frameBegunAt: number | undefined
  private behindSince: number | undefined
  private endedAt: number | undefined
  private takenBytes = 0
  private framesSeen = 0

  constructor(
    broker: Broker,
    settings: NativeDoorSettings,
    connection: Connection,
    onClosed: (self: NativeConnection) => void,
  ) {
    this.broker = broker
    this.settings = settings
    this.connection = connection
    this.onClosed = onClosed
    this.outbox = new Outbox(connection, () => this.behind())
    this.produces = new Produces(
      this.outbox,
      (batches, bytes) => {
        this.inFlight += batches
        this.inFlightBytes += bytes
      },
      (bytes) => this.answered(bytes),
    )
    this.streams = new Streams(broker, this.outbox)
    this.helloBy = this.now() + settings.helloTimeoutMs
    connection.handle({
      onData: (chunk) => this.onData(chunk),
      onDrain: () => this.onDrain(),
      onClose: () => this.onClose(),
    })
  }

  private now(): number {
    return this.broker.parts.ports.clock.monotonic()
  }

  private onData(chunk: Uint8Array): void {
    if (this.phase === 'closing' || this.phase === 'closed') return
    const seen = this.framesSeen
    try {
      this.reader.push(chunk, this.onFrame)
    } catch (error) {
      if (!(error instanceof EastGuardError)) throw error
      // No next frame can be found: the client is told and the connection ends.
      this.fatal(0, 0, error)
    }
    this.broker.commit()
    if (!this.reader.midFrame) this.frameBegunAt = undefined
    else if (this.frameBegunAt === undefined || this.framesSeen !== seen) {
      this.frameBegunAt = this.now()
    }
    this.regulate()
  }

  private readonly onFrame = (frame: Uint8Array): boolean => {
    this.framesSeen++
    const operation = operationOf(frame)
    const requestId = requestIdOf(frame)
    try {
      if (this.phase === 'connected') this.greet(operation, requestId, frame)
      else if (operation === OPERATION.PRODUCE && versionOf(frame) === this.version) {
        this.produces.take(this.broker, frame)
      } else this.dispatch(operation, requestId, frame)
    } catch (error) {
      if (!(error instanceof EastGuardError)) throw error
      if (this.phase === 'connected') this.fatal(operation, requestId, error)
      else this.outbox.push(errorFrame(operation, requestId, error))
    }
    return this.phase === 'ready'
  }

  private greet(operation: number, requestId: number, frame: Uint8Array): void {
    if (operation !== OPERATION.HELLO) {
      throw new EastGuardError('HELLO_REQUIRED', `operation ${operation} came before the hello`)
    }
    const asked = readRequest(hello, frame)
    const { options } = this.broker
    const version = agreeVersion(asked.versionMin, asked.versionMax)
    if (version === undefined) {
      throw new EastGuardError(
        'UNSUPPORTED_VERSION',
        `the client speaks versions ${asked.versionMin} to ${asked.versionMax}, this broker ${VERSION_MIN} to ${VERSION_MAX}`,
        { detail: { versionMin: VERSION_MIN, versionMax: VERSION_MAX } },
      )
    }
    if (asked.clusterId !== '' && asked.clusterId !== options.clusterId) {
      throw new EastGuardError(
        'CLUSTER_MISMATCH',
        `the client expects cluster ${asked.clusterId}, this is ${options.clusterId}`,
        { detail: { clusterId: options.clusterId } },
      )
    }
    this.version = version
    this.phase = 'ready'
    this.reader.frameBytesMax = this.settings.frameBytesMax
    this.outbox.push(
      responseFrame(hello, requestId, {
        version,
        nodeId: options.nodeId,
        clusterId: options.clusterId,
        brokerVersion: options.version,
        frameBytesMax: this.settings.frameBytesMax,
        requestsInFlightMax: this.settings.requestsInFlightMax,
      }),
    )
  }

  private dispatch(operation: number, requestId: number, frame: Uint8Array): void {
    const fault = requestFault(operation, versionOf(frame), this.version)
    if (fault !== undefined) throw fault
    switch (operation) {
      case OPERATION.FETCH:
        this.fetch(requestId, readRequest(fetch, frame))
        return
      case OPERATION.CONSUME: {
        const request = readRequest(consume, frame)
        this.run(operation, requestId, frame.length, () => this.streams.open(requestId, request))
        return
      }
      case OPERATION.CONSUME_CREDIT:
        this.streams.grant(requestId, readRequest(consumeCredit, frame).bytes)
        return
      case OPERATION.CONSUME_CLOSE:
        this.streams.close(requestId)
        return
      default: {
        const handler = handlerOf(operation)
        assert(handler !== undefined, `${operationName(operation)} is in the protocol and not here`)
        this.run(operation, requestId, frame.length, async () => {
          this.outbox.push(await handler(this.broker, frame))
        })
      }
    }
  }

  /** A request that is answered in a later turn; `work` pushes the answer itself. */
  private run(
    operation: number,
    requestId: number,
    bytes: number,
    work: () => Promise<void>,
  ): void {
    this.inFlight++
    this.inFlightBytes += bytes
    work()
      .catch((error: unknown) => this.failed(operation, requestId, error))
      .finally(() => this.answered(bytes))
      .catch((error: unknown) => this.crash(error))
  }

  private failed(operation: number, requestId: number, error: unknown): void {
    if (error instanceof AssertionFailed) throw error
    const known = toEastGuardError(error)
    if (known.code === 'INTERNAL') {
      this.broker.parts.ports.log.error('a request failed for a reason that it should not', {
        operation,
        err: error,
      })
    }
    this.outbox.push(errorFrame(operation, requestId, known))
  }

  /** A broken promise of our own must not be swallowed by a promise chain. */
  private crash(error: unknown): void {
    queueMicrotask(() => {
      throw error
    })
  }

  private fetch(requestId: number, request: FetchRequest): void {
    const maxBytes = Math.min(request.maxBytes, FETCH_BYTES_MAX)
    this.inFlight++
    this.inFlightBytes += maxBytes
    const parts = request.partitions.map(({ topicId, partition, offset, maxBytes: most }) => ({
      cursor: this.broker.cursor(topicId, partition, offset),
      maxBytes: most,
    }))
    const limits = {
      maxWaitMs: Math.min(request.maxWaitMs, FETCH_WAIT_MS_MAX),
      minBytes: Math.min(request.minBytes, maxBytes),
      maxBytes,
    }
    const { clock } = this.broker.parts.ports
    const waiting = new Fetch(clock, parts, limits, (partitions) => {
      this.fetches.delete(waiting)
      const answer = fetchedParts(requestId, { partitions: partitions.map(fetched) })
      for (const part of answer) this.outbox.push(part)
      this.answered(maxBytes)
    })
    this.fetches.add(waiting)
    waiting.start()
  }

  private answered(bytes: number): void {
    this.inFlight--
    this.inFlightBytes -= bytes
    if (this.paused || this.phase === 'closing') this.regulate()
  }

  /** Reads on or not, and ends a closing connection that owes nothing any more. */
  private regulate(): void {
    if (this.phase === 'closed') return
    if (this.phase === 'closing') {
      if (this.inFlight === 0 && this.endedAt === undefined) {
        this.endedAt = this.now()
        this.outbox.flush()
        this.connection.end()
      }
      return
    }
    const { requestsInFlightMax, connectionBytesMax, answerBytesMax } = this.settings
    const full =
      this.inFlight >= requestsInFlightMax ||
      this.inFlightBytes >= connectionBytesMax ||
      (this.outbox.blocked && this.outbox.waitingBytes >= answerBytesMax)
    if (full === this.paused) return
    this.paused = full
    if (full) this.connection.pause()
    else {
      // The time in which we did not read is not the client's.
      if (this.frameBegunAt !== undefined) this.frameBegunAt = this.now()
      this.connection.resume()
    }
  }

  private behind(): void {
    if (this.behindSince === undefined) {
      this.behindSince = this.now()
      this.takenBytes = this.taken()
    }
    this.regulate()
  }

  private taken(): number {
    return this.outbox.writtenBytes - this.connection.queuedBytes
  }

  private onDrain(): void {
    this.outbox.blocked = false
    this.behindSince = undefined
    this.streams.drained()
    this.regulate()
  }

  /** Called now and then by the door: ends what has lasted too long. */
  check(now: number): void {
    const { frameTimeoutMs, answerTimeoutMs } = this.settings
    if (this.phase === 'connected' && now >= this.helloBy) this.giveUp('said no hello')
    else if (this.endedAt !== undefined && now - this.endedAt >= answerTimeoutMs) {
      this.giveUp('did not close its end')
    } else if (
      !this.paused &&
      this.frameBegunAt !== undefined &&
      now - this.frameBegunAt >= frameTimeoutMs
    ) {
      this.giveUp('did not finish a frame')
    } else if (this.behindSince !== undefined) {
      const taken = this.taken()
      if (taken > this.takenBytes) {
        this.takenBytes = taken
        this.behindSince = now
      } else if (now - this.behindSince >= answerTimeoutMs) this.giveUp('did not read its answers')
    }
  }

  private giveUp(why: string): void {
    const { host, port } = this.connection.remote
    this.broker.parts.ports.log.info(`a client ${why} in time and was disconnected`, {
      client: `${host}:${port}`,
    })
    this.connection.destroy()
  }

  /** The stream of frames cannot go on: the client is told why and the connection ends. */
  private fatal(operation: number, requestId: number, error: EastGuardError): void {
    this.outbox.push(errorFrame(operation, requestId, error))
    this.drain()
  }

  /** Takes no more requests; ends when those in flight are answered. */
  drain(): void {
    if (this.phase === 'closing' || this.phase === 'closed') return
    this.phase = 'closing'
    this.streams.closeAll()
    for (const waiting of this.fetches) waiting.finish()
    this.regulate()
  }

  destroy(): void {
    this.connection.destroy()
  }

  private onClose(): void {
    this.phase = 'closed'
    this.streams.closeAll()
    for (const waiting of this.fetches) waiting.cancel()
    this.fetches.clear()
    this.onClosed(this)
  }
}

function fetched({ error, highWatermark, logStart, entries }: FetchedPartition): {
  error: EastGuardError['code'] | undefined
  highWatermark: number
  logStart: number
  batches: Uint8Array[]
} {
  return {
    error: error?.code,
    highWatermark,
    logStart,
    batches: entries.map((entry) => entry.batch),
  }
}
