// One end of a simulated connection. Each end owns the bytes that it sends until the other end's receiver has taken
// them; what is under way plus what the receiver has not read never exceeds a window, and the rest waits here.

import { assert } from '../../base/assert.ts'
import type { Prng } from '../../base/prng.ts'
import type { Address, Connection, ConnectionHandlers } from '../../ports/streams.ts'
import type { SimClock } from './clock.ts'

/** The same mark as the real connections'. */
const HIGH_WATER_BYTES = 1024 * 1024
const WINDOW_BYTES = 256 * 1024
const CHUNK_BYTES_MAX = 64 * 1024
const SPENT = 0xdd

export interface Line {
  readonly host: string
  readonly remote: Address
  readonly clock: SimClock
  readonly chance: Prng
  readonly latency: () => number
  readonly closed: () => void
}

export class SimConnection implements Connection {
  readonly host: string
  readonly remote: Address
  private readonly line: Line
  private peer: SimConnection | undefined
  private handlers: ConnectionHandlers | undefined
  private state: 'open' | 'ending' | 'ended' | 'closed' = 'open'
  private queue: Uint8Array[] = []
  private queueBytes = 0
  private underWayBytes = 0
  private pumping = false
  private overHighWater = false
  /** Nothing that is sent later arrives before this. */
  private lastArrival = 0
  private paused = false
  private unread: Uint8Array[] = []
  private peerEnded = false
  private closeDue = false
  private error: Error | undefined
  private vanished = false

  constructor(line: Line) {
    this.line = line
    this.host = line.host
    this.remote = line.remote
  }

  join(peer: SimConnection): void {
    this.peer = peer
  }

  handle(handlers: ConnectionHandlers): void {
    assert(this.handlers === undefined, 'handlers are set once')
    this.handlers = handlers
    this.line.clock.nextTurn(() => {
      this.readOn()
      if (this.closeDue) this.tellClose()
    })
  }

  get queuedBytes(): number {
    return this.queueBytes
  }

  write(buffers: readonly Uint8Array[]): boolean {
    if (this.state !== 'open') return false
    for (const buffer of buffers) {
      if (buffer.length === 0) continue
      this.queue.push(buffer)
      this.queueBytes += buffer.length
    }
    this.pumpLater()
    if (this.queueBytes <= HIGH_WATER_BYTES) return true
    this.overHighWater = true
    return false
  }

  pause(): void {
    this.paused = true
  }

  resume(): void {
    if (!this.paused) return
    this.paused = false
    this.line.clock.nextTurn(() => this.readOn())
  }

  end(): void {
    if (this.state !== 'open') return
    this.state = 'ending'
    this.pumpLater()
  }

  destroy(): void {
    if (this.state === 'closed') return
    const reset = this.line.chance.below(2) === 0
    const { peer } = this
    if (reset) this.line.clock.after(this.line.latency(), () => peer?.fail())
    else this.arrive(() => peer?.receiveEnd())
    this.close(undefined)
  }

  /** Both ends see the connection break. */
  reset(): void {
    this.fail()
    const { peer } = this
    this.line.clock.after(this.line.latency(), () => peer?.fail())
  }

  /** The process at this end is gone: it hears nothing more; the other end sees a reset. */
  vanish(): void {
    this.vanished = true
    this.reset()
  }

  /** The turn's writes leave together. */
  private pumpLater(): void {
    if (this.pumping) return
    this.pumping = true
    this.line.clock.nextTurn(() => {
      this.pumping = false
      this.pump()
    })
  }

  private pump(): void {
    while (this.queueBytes > 0 && this.underWayBytes < WINDOW_BYTES && this.sending()) {
      const chunk = this.takeChunk(WINDOW_BYTES - this.underWayBytes)
      this.underWayBytes += chunk.length
      const { peer } = this
      this.arrive(() => peer?.receive(chunk))
    }
    if (this.state === 'open' && this.overHighWater && this.queueBytes <= HIGH_WATER_BYTES / 2) {
      this.overHighWater = false
      this.handlers?.onDrain?.()
    }
    if (this.state === 'ending' && this.queueBytes === 0) {
      this.state = 'ended'
      const { peer } = this
      this.arrive(() => peer?.receiveEnd())
      if (this.peerEnded) this.close(undefined)
    }
  }

  private sending(): boolean {
    return this.state === 'open' || this.state === 'ending'
  }

  private arrive(run: () => void): void {
    const { clock, latency } = this.line
    this.lastArrival = Math.max(this.lastArrival, clock.monotonic() + latency())
    clock.after(this.lastArrival - clock.monotonic(), run)
  }

  /** Cuts where the seed says: often short, so that frames are split everywhere; copied, for the receiver may change it. */
  private takeChunk(bytesMax: number): Uint8Array {
    const { chance } = this.line
    const most = chance.below(4) === 0 ? 16 : CHUNK_BYTES_MAX
    const length = Math.min(this.queueBytes, bytesMax, 1 + chance.below(most))
    const chunk = new Uint8Array(length)
    let at = 0
    let whole = 0
    while (at < length) {
      const first = this.queue[whole] as Uint8Array
      const part = first.subarray(0, length - at)
      chunk.set(part, at)
      at += part.length
      if (part.length === first.length) whole++
      else this.queue[whole] = first.subarray(part.length)
    }
    this.queue.splice(0, whole)
    this.queueBytes -= length
    return chunk
  }

  private receive(chunk: Uint8Array): void {
    if (this.state === 'closed') {
      // What reaches a closed end is answered with a reset.
      const { peer } = this
      this.line.clock.after(this.line.latency(), () => peer?.fail())
      return
    }
    this.unread.push(chunk)
    this.readOn()
  }

  private receiveEnd(): void {
    this.peerEnded = true
    this.readOn()
  }

  private readOn(): void {
    if (this.handlers === undefined) return
    while (!this.paused && this.state !== 'closed') {
      const chunk = this.unread.shift()
      if (chunk === undefined) break
      const { length } = chunk
      this.handlers.onData(chunk)
      // As a real connection's buffer is when it is used again: whoever kept a view of it must notice.
      chunk.fill(SPENT)
      this.peer?.taken(length)
    }
    if (!this.peerEnded || this.unread.length > 0 || this.state === 'closed') return
    if (this.state === 'ended') this.close(undefined)
    else this.end()
  }

  private taken(length: number): void {
    this.underWayBytes -= length
    this.pumpLater()
  }

  private fail(): void {
    this.close(
      new Error(
        `connection with ${this.remote.host}:${this.remote.port} lost: the other side reset the connection (ECONNRESET)`,
      ),
    )
  }

  private close(error: Error | undefined): void {
    if (this.state === 'closed') return
    this.state = 'closed'
    this.error = error
    this.queue = []
    this.queueBytes = 0
    this.unread = []
    this.line.closed()
    this.line.clock.nextTurn(() => {
      this.closeDue = true
      if (this.handlers !== undefined) this.tellClose()
    })
  }

  private tellClose(): void {
    if (this.vanished) return
    this.closeDue = false
    this.handlers?.onClose(this.error)
  }
}
