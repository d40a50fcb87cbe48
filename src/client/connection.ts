// One connection to one broker, shared by everybody: opened by the first call, many calls in flight, answers matched by
// request id, opened again by the first call after a loss.
//
//    idle ──call──> opening ──hello──> ready ──lost──> idle
//      ^   (pause)     │ failed
//      └───────────────┘
//
// A call is tried once here; who may try again, and when, is decided above. What matters for that is told with every
// failure: `maybeArrived` is false when not one byte of the request was written. All calls written in one turn leave in one
// system call (ports/streams.ts). Who waits for what until when is kept beside this, in calls.ts.

import { Backoff } from '../base/backoff.ts'
import { putU32 } from '../base/bytes.ts'
import { EastGuardError, messageOf } from '../base/errors.ts'
import { Fifo } from '../base/fifo.ts'
import { FRAME_BYTES_MAX, REQUESTS_IN_FLIGHT_MAX } from '../model/limits.ts'
import type { Timer } from '../ports/clock.ts'
import type { Address, Connection as Stream } from '../ports/streams.ts'
import { describeTopics } from '../wire/native/describe-topics.ts'
import { FrameReader } from '../wire/native/frame-reader.ts'
import { operationOf, readResponse, requestFrame, requestIdOf } from '../wire/native/header.ts'
import { type HelloResponse, hello } from '../wire/native/hello.ts'
import type { Message } from '../wire/native/message.ts'
import { OPERATION, VERSION_MAX, VERSION_MIN } from '../wire/native/operations.ts'
import { type Abortable, unwatchAbort, watchAbort } from './aborts.ts'
import { type Call, Calls, HELLO_REQUEST_ID, type Reply } from './calls.ts'
import type { ClientPorts } from './ports.ts'
import { Pulse } from './pulse.ts'
import { aborted } from './timing.ts'

/** What comes of a stream after its opening was answered: any number of `pushed`, then at most one `lost`. */
export interface StreamHandler {
  pushed(payload: Uint8Array): void
  lost(error: EastGuardError): void
}

export interface ConnectionSettings {
  readonly clientName: string
  readonly connectTimeoutMs: number
  readonly backoffMs: number
  readonly backoffMaxMs: number
}

/** The cluster that the first answer named: brokers of another are refused from then on. */
export interface ClusterIdentity {
  clusterId: string | undefined
}

/** Calls that wait for the connection or for room on it. */
const WAITING_MAX = 2 * REQUESTS_IN_FLIGHT_MAX
/** Longer than a pulse takes to give the broker up. */
const PING_TIMEOUT_MS = 10_000
/** Where a frame has its request id: behind length, operation and version. */
const REQUEST_ID_AT = 6

export class BrokerConnection {
  readonly address: Address
  /** What the broker said in its last hello. */
  welcome: HelloResponse | undefined
  private readonly ports: ClientPorts
  private readonly settings: ConnectionSettings
  private readonly cluster: ClusterIdentity
  private readonly backoff: Backoff
  private state: 'idle' | 'pausing' | 'opening' | 'ready' | 'closed' = 'idle'
  private stream: Stream | undefined
  private readonly calls: Calls
  private readonly waiting = new Fifo<Call>(WAITING_MAX)
  private readonly streams = new Map<number, StreamHandler>()
  private written = 0
  private inFlightMax = REQUESTS_IN_FLIGHT_MAX
  private choked = false
  private notBeforeMs = 0
  /** Why it did not open, or was lost, the last time; undefined while it is open. */
  private trouble: EastGuardError | undefined
  private pauseTimer: Timer | undefined
  private readonly opening = new AbortController()
  private readonly pulse: Pulse

  constructor(
    address: Address,
    ports: ClientPorts,
    settings: ConnectionSettings,
    cluster: ClusterIdentity,
  ) {
    this.address = address
    this.ports = ports
    this.settings = settings
    this.cluster = cluster
    this.calls = new Calls(ports.clock, (late) => this.late(late))
    this.backoff = new Backoff(ports.random, settings.backoffMs, settings.backoffMaxMs)
    this.pulse = new Pulse(ports.clock, {
      waits: () => this.state === 'ready' && (this.calls.size > 0 || this.streams.size > 0),
      ping: () => this.ping(),
      dead: () => this.unanswered(),
    })
  }

  get name(): string {
    return `${this.address.host}:${this.address.port}`
  }

  get ready(): boolean {
    return this.state === 'ready'
  }

  /**
   * Sends a frame (in one or several buffers, which must not change until the outcome); its request id is set here, and
   * returned. With `onWritten` no answer is expected: that is called instead, and `reply` only on failure.
   */
  call(
    frame: readonly Uint8Array[],
    timeoutMs: number,
    reply: Reply,
    onWritten?: () => void,
  ): number {
    const requestId = this.calls.nextRequestId()
    const deadlineMs = this.ports.clock.monotonic() + timeoutMs
    putU32(frame[0] as Uint8Array, REQUEST_ID_AT, requestId)
    const call: Call = { requestId, frame, reply, deadlineMs, onWritten, written: false }
    if (this.state === 'closed') {
      reply.failed(closed(this.name), false)
      return requestId
    }
    this.calls.add(call)
    if (this.state === 'ready' && this.waiting.size === 0 && this.hasRoom()) this.write(call)
    else if (!this.waiting.push(call)) {
      this.calls.take(requestId)
      const message = `${this.waiting.limit} requests wait for ${this.name}`
      reply.failed(new EastGuardError('TOO_MANY_REQUESTS', message), false)
    } else if (this.state === 'idle') this.openSoon()
    return requestId
  }

  /** `call` as a promise of the decoded answer. */
  request<Request, Response>(
    message: Message<Request, Response>,
    request: Request,
    timeoutMs: number,
    signal?: AbortSignal,
  ): Promise<Response> {
    return new Promise((resolve, reject) => {
      if (signal?.aborted === true) {
        reject(aborted(signal, 'a request'))
        return
      }
      const settle = (): void => {
        if (signal !== undefined) unwatchAbort(signal, waiting)
      }
      const waiting: Abortable = {
        aborted: (by) => {
          this.forget(requestId)
          reject(aborted(by, 'a request'))
        },
      }
      const frame = requestFrame(message, VERSION_MAX, 0, request)
      // Before the call, which may fail at once.
      if (signal !== undefined) watchAbort(signal, waiting)
      const requestId = this.call([frame], timeoutMs, {
        answered: (payload) => {
          settle()
          try {
            resolve(readResponse(message, payload))
          } catch (error) {
            reject(error instanceof Error ? error : new Error(String(error)))
          }
        },
        failed: (error) => {
          settle()
          reject(error)
        },
      })
    })
  }

  /** For what has no answer and belongs to an earlier request: sent when the connection is there, else dropped. */
  tell(frame: Uint8Array): void {
    if (this.state === 'ready' && this.stream !== undefined && !this.stream.write([frame])) {
      this.choked = true
    }
  }

  /** From now on pushes under this request id go to `handler`; call it beside the `call` that opens the stream. */
  attach(requestId: number, handler: StreamHandler): void {
    this.streams.set(requestId, handler)
    if (this.state === 'ready') this.pulse.begin()
  }

  detach(requestId: number): void {
    this.streams.delete(requestId)
  }

  /** The outcome of a call no longer matters; it may still happen. */
  forget(requestId: number): void {
    if (this.calls.take(requestId)?.written === true) this.written--
  }

  /** Takes a call back that nothing has been sent of; false when it is too late for that. */
  withdraw(requestId: number): boolean {
    if (this.calls.get(requestId)?.written !== false) return false
    this.calls.take(requestId)
    return true
  }

  private late(calls: readonly Call[]): void {
    for (const call of calls) if (call.written) this.written--
    for (const call of calls) {
      const message = `${this.name} did not answer in time`
      // What has kept the connection from opening says more.
      const error = call.written ? undefined : this.trouble
      call.reply.failed(error ?? new EastGuardError('TIMEOUT', message), call.written)
    }
  }

  /** Closes now; whatever waits fails with CLOSED. */
  close(): void {
    if (this.state === 'closed') return
    const greeted = this.state === 'ready'
    this.state = 'closed'
    this.opening.abort()
    this.pauseTimer?.cancel()
    this.pulse.stop()
    const { stream } = this
    this.stream = undefined
    this.failEverything(closed(this.name))
    // Nothing but a hello waits to be sent, maybe to one who is stuck.
    if (greeted) stream?.end()
    else stream?.destroy()
  }

  /** Any answer will do; this question costs the broker nothing. */
  private ping(): boolean {
    if (!this.hasRoom()) return false
    const frame = requestFrame(describeTopics, VERSION_MAX, 0, { names: [], brief: true })
    this.call([frame], PING_TIMEOUT_MS, { answered: () => {}, failed: () => {} })
    return true
  }

  private unanswered(): void {
    const message = `the connection to ${this.name} was given up: the broker does not answer`
    if (this.stream !== undefined) {
      this.drop(this.stream, new EastGuardError('CONNECTION_LOST', message))
    }
  }

  private hasRoom(): boolean {
    return !this.choked && this.written < this.inFlightMax
  }

  private write(call: Call): void {
    const { stream } = this
    if (stream === undefined) return
    call.written = true
    if (!stream.write(call.frame)) this.choked = true
    if (this.state === 'ready') this.pulse.begin()
    if (call.onWritten === undefined) {
      this.written++
      return
    }
    this.calls.take(call.requestId)
    call.onWritten()
  }

  private writeWaiting(): void {
    while (this.state === 'ready' && this.hasRoom()) {
      const call = this.waiting.shift()
      if (call === undefined) return
      // Calls that were given up leave the map, not the queue.
      if (this.calls.get(call.requestId) === call) this.write(call)
    }
  }

  private openSoon(): void {
    const pauseMs = this.notBeforeMs - this.ports.clock.monotonic()
    if (pauseMs <= 0) {
      this.open()
      return
    }
    this.state = 'pausing'
    this.pauseTimer = this.ports.clock.after(pauseMs, () => this.open())
  }

  private open(): void {
    this.state = 'opening'
    const { connectTimeoutMs } = this.settings
    const options = { timeoutMs: connectTimeoutMs, signal: this.opening.signal }
    this.ports.streams.connect(this.address, options).then(
      (stream) => this.greet(stream),
      (cause: unknown) => this.openFailed(cause),
    )
  }

  /** The byte stream is there: say hello, and hand it over to `read` for good. */
  private greet(stream: Stream): void {
    if (this.state === 'closed') {
      stream.destroy()
      return
    }
    this.stream = stream
    const frames = new FrameReader(FRAME_BYTES_MAX)
    stream.handle({
      onData: (chunk) => {
        if (this.stream !== stream) return
        this.pulse.heard()
        this.read(stream, frames, chunk)
      },
      onDrain: () => {
        this.choked = false
        this.writeWaiting()
      },
      onClose: (error) => {
        if (this.stream === stream) this.lose(error)
      },
    })
    this.sayHello(stream)
  }

  private sayHello(stream: Stream): void {
    const deadlineMs = this.ports.clock.monotonic() + this.settings.connectTimeoutMs
    const frame = requestFrame(hello, VERSION_MIN, HELLO_REQUEST_ID, {
      versionMin: VERSION_MIN,
      versionMax: VERSION_MAX,
      clientName: this.settings.clientName,
      clusterId: this.cluster.clusterId ?? '',
    })
    const reply: Reply = {
      answered: (payload) => this.welcomed(stream, payload),
      failed: (error) => {
        if (this.stream === stream) this.drop(stream, this.noBroker(error))
      },
    }
    const requestId = HELLO_REQUEST_ID
    const call: Call = {
      requestId,
      frame: [frame],
      reply,
      deadlineMs,
      onWritten: undefined,
      written: false,
    }
    this.calls.add(call)
    this.write(call)
  }

  private welcomed(stream: Stream, payload: Uint8Array): void {
    // Throws what the broker refused the hello with; `read` drops the connection for it.
    const welcome = readResponse(hello, payload)
    const expected = this.cluster.clusterId
    if (expected !== undefined && expected !== welcome.clusterId) {
      const message = `${this.name} belongs to cluster ${welcome.clusterId}, not ${expected}`
      this.drop(stream, new EastGuardError('CLUSTER_MISMATCH', message))
      return
    }
    this.cluster.clusterId = welcome.clusterId
    this.welcome = welcome
    this.inFlightMax = Math.max(1, welcome.requestsInFlightMax)
    this.state = 'ready'
    this.trouble = undefined
    this.backoff.reset()
    this.writeWaiting()
  }

  private read(stream: Stream, frames: FrameReader, chunk: Uint8Array): void {
    let answered = false
    try {
      frames.push(chunk, (frame) => {
        answered = true
        this.dispatch(frame)
      })
    } catch (cause) {
      this.drop(stream, this.misspoken(cause, answered))
    }
    this.writeWaiting()
  }

  private misspoken(cause: unknown, answered: boolean): EastGuardError {
    const opening = this.state === 'opening'
    // What the broker refuses the hello with.
    if (opening && answered && cause instanceof EastGuardError) return cause
    if (opening) return this.noBroker(cause)
    const message = `${this.name} sent something that is not our protocol`
    return new EastGuardError('CONNECTION_LOST', message, { cause })
  }

  /** Something listens there, and is no broker, or one that is stuck. */
  private noBroker(cause: unknown): EastGuardError {
    const silent = cause instanceof EastGuardError && cause.code === 'TIMEOUT'
    const why = silent ? 'it does not answer' : 'what listens there is no EastGuard broker'
    return new EastGuardError('CONNECTION_FAILED', `no connection to ${this.name}: ${why}`, {
      cause,
    })
  }

  private dispatch(frame: Uint8Array): void {
    const requestId = requestIdOf(frame)
    if (operationOf(frame) === OPERATION.CONSUME_DATA) {
      this.streams.get(requestId)?.pushed(frame)
      return
    }
    const call = this.calls.take(requestId)
    if (call === undefined) return
    this.written--
    call.reply.answered(frame)
  }

  private openFailed(cause: unknown): void {
    if (this.state === 'closed') return
    const why = messageOf(cause)
    const message = `no connection to ${this.name}: ${why}`
    this.restAfter(new EastGuardError('CONNECTION_FAILED', message, { cause }))
  }

  private lose(cause: Error | undefined): void {
    const why = cause === undefined ? 'the broker closed it' : cause.message
    const greeted = this.state === 'ready'
    const message = greeted
      ? `the connection to ${this.name} was lost: ${why}`
      : `no connection to ${this.name}: ${why} before it said hello; it may be starting or stopping, or the port is another one than its client_port`
    const code = greeted ? 'CONNECTION_LOST' : 'CONNECTION_FAILED'
    this.restAfter(new EastGuardError(code, message, { cause }))
  }

  private drop(stream: Stream, error: EastGuardError): void {
    stream.destroy()
    if (this.stream === stream) this.restAfter(error)
  }

  private restAfter(error: EastGuardError): void {
    this.stream = undefined
    this.choked = false
    this.pulse.stop()
    this.state = 'idle'
    this.trouble = error
    this.notBeforeMs = this.ports.clock.monotonic() + this.backoff.next()
    this.ports.log.debug(error.message, { code: error.code })
    this.failEverything(error)
  }

  private failEverything(error: EastGuardError): void {
    const calls = this.calls.takeAll()
    const streams = [...this.streams.values()]
    this.streams.clear()
    while (this.waiting.shift() !== undefined) continue
    this.written = 0
    for (const call of calls) call.reply.failed(error, call.written)
    for (const handler of streams) handler.lost(error)
  }
}

function closed(name: string): EastGuardError {
  return new EastGuardError('CLOSED', `the connection to ${name} is closed`)
}
