// A closed-loop load of PRODUCE requests, as lean as a client can be, so that the broker and not the client is
// measured: one frame is encoded beforehand and only its request id changes; all requests of one turn leave in one write.
// After a refusal it waits for what is still on its way, asks who leads now, and goes on there.

import { connect, type Socket } from 'node:net'
import { build, type Histogram } from 'hdr-histogram-js'
import { pause } from '../test/support/time.ts'

/** Where the request id stands in a frame: behind length, operation and version. */
const REQUEST_ID_AT = 6
const RESPONSE_STATUS_AT = 10

/** From a refusal on until somebody is asked. */
const FOLLOW_MS = 20

export interface Load {
  readonly port: number
  /** Who leads after a refusal; by default nobody else does. */
  readonly leader?: () => Promise<number>
  readonly hello: Uint8Array
  /** One encoded PRODUCE request with one batch. */
  readonly frame: Uint8Array
  readonly connections: number
  /** Over all connections. */
  readonly inFlight: number
  readonly seconds: number
  readonly warmupSeconds: number
  /** Told when the warm-up is over, and when all that counts is. */
  onMeasuring?(begins: boolean): void
}

export interface LoadResult {
  readonly perSecond: number
  /** Requests that were answered well while it was measured. */
  readonly answered: number
  readonly latency: Histogram
  readonly errors: number
}

interface Shared {
  latency: Histogram
  answered: number
  errors: number
  measuring: boolean
  over: boolean
}

/** Runs the load; resolves when every request that was sent has its answer. */
export async function run(load: Load): Promise<LoadResult> {
  const shared: Shared = {
    latency: build({
      lowestDiscernibleValue: 1,
      highestTrackableValue: 60_000_000,
      numberOfSignificantValueDigits: 3,
    }),
    answered: 0,
    errors: 0,
    measuring: false,
    over: false,
  }
  const each = Math.ceil(load.inFlight / load.connections)
  const clients = Array.from({ length: load.connections }, () => new Client(load, each, shared))
  await Promise.all(clients.map((client) => client.opened))
  for (const client of clients) client.start()
  await pause(load.warmupSeconds * 1000)
  load.onMeasuring?.(true)
  shared.measuring = true
  const began = performance.now()
  await pause(load.seconds * 1000)
  shared.measuring = false
  load.onMeasuring?.(false)
  const seconds = (performance.now() - began) / 1000
  shared.over = true
  await Promise.all(clients.map((client) => client.drained))
  const { answered, latency, errors } = shared
  return { perSecond: answered / seconds, answered, latency, errors }
}

class Client {
  readonly opened: Promise<void>
  readonly drained: Promise<void>
  private socket: Socket
  private port: number
  private readonly load: Load
  private readonly shared: Shared
  /** Request ids are slots; a slot's entry is the time at which its request was sent. */
  private readonly sentAt: Float64Array
  private waiting = 0
  /** Their requests were refused. */
  private parked: number[] = []
  private following = false
  private helloDone = false
  private pending: Buffer = Buffer.alloc(0)
  private onDrained: () => void = () => {}
  private onOpened: () => void = () => {}

  constructor(load: Load, slots: number, shared: Shared) {
    this.load = load
    this.shared = shared
    this.sentAt = new Float64Array(slots)
    this.port = load.port
    this.drained = new Promise((resolve) => {
      this.onDrained = resolve
    })
    this.socket = this.connect()
    this.opened = new Promise((resolve, reject) => {
      this.onOpened = resolve
      this.socket.on('error', reject)
    })
  }

  private connect(): Socket {
    const socket = connect({ port: this.port, host: '127.0.0.1', noDelay: true })
    socket.on('connect', () => socket.write(this.load.hello))
    socket.on('data', (chunk) => this.receive(chunk))
    return socket
  }

  start(): void {
    this.send(Array.from(this.sentAt.keys()))
  }

  private send(slots: readonly number[]): void {
    const now = performance.now()
    const { frame } = this.load
    // Small frames are copied together into one write; of large ones only the head is copied, which is cheaper.
    const head = Math.min(frame.length, 4096)
    this.socket.cork()
    const together = Buffer.allocUnsafe(slots.length * head)
    for (const [index, slot] of slots.entries()) {
      const at = index * head
      together.set(frame.subarray(0, head), at)
      together.writeUInt32BE(slot, at + REQUEST_ID_AT)
      this.sentAt[slot] = now
      if (head < frame.length) {
        this.socket.write(together.subarray(at, at + head))
        this.socket.write(frame.subarray(head))
      }
    }
    if (head === frame.length) this.socket.write(together)
    this.socket.uncork()
    this.waiting += slots.length
  }

  private receive(chunk: Buffer): void {
    const bytes = this.pending.length === 0 ? chunk : Buffer.concat([this.pending, chunk])
    const now = performance.now()
    const free: number[] = []
    let at = 0
    while (bytes.length - at >= 4) {
      const end = at + 4 + bytes.readUInt32BE(at)
      if (end > bytes.length) break
      if (this.helloDone) this.answer(bytes, at, now, free)
      else {
        this.helloDone = true
        this.onOpened()
      }
      at = end
    }
    this.pending = bytes.subarray(at)
    if (this.shared.over) {
      if (this.waiting > 0) return
      this.socket.destroy()
      this.onDrained()
    } else if (this.parked.length > 0) {
      this.parked.push(...free)
      if (this.waiting === 0 && !this.following) void this.follow()
    } else if (free.length > 0) this.send(free)
  }

  /** To whoever leads now, with all that was refused. */
  private async follow(): Promise<void> {
    this.following = true
    await pause(FOLLOW_MS)
    const port = (await this.load.leader?.()) ?? this.port
    if (port !== this.port) {
      this.socket.destroy()
      this.port = port
      this.pending = Buffer.alloc(0)
      this.helloDone = false
      const opened = new Promise<void>((resolve) => {
        this.onOpened = resolve
      })
      this.socket = this.connect()
      await opened
    }
    const { parked } = this
    this.parked = []
    this.following = false
    if (!this.shared.over) return this.send(parked)
    this.socket.destroy()
    this.onDrained()
  }

  private answer(bytes: Buffer, at: number, now: number, free: number[]): void {
    const slot = bytes.readUInt32BE(at + REQUEST_ID_AT)
    this.waiting--
    const requestStatus = bytes.readUInt16BE(at + RESPONSE_STATUS_AT)
    // Behind the status of the request: the count of batches, then the status of the first.
    const batchStatus = requestStatus === 0 ? bytes.readUInt16BE(at + RESPONSE_STATUS_AT + 4) : 0
    if (requestStatus !== 0 || batchStatus !== 0) {
      this.shared.errors++
      this.parked.push(slot)
      return
    }
    free.push(slot)
    if (!this.shared.measuring) return
    this.shared.answered++
    const started = this.sentAt[slot] as number
    this.shared.latency.recordValue(Math.max(1, Math.round((now - started) * 1000)))
  }
}
