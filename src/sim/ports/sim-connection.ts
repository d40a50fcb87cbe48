// One end of a simulated connection: the socket of one process. Each end owns the bytes that it sends until the other end's
// receiver has taken them; what is under way plus what the receiver has not read never exceeds a window, and the rest waits
// here. How bytes get across is pipe.ts; the process hears of them through its gate.
//
// An end that is gone answers what still reaches it with a reset, if its machine is on; a reset that gets lost is not sent
// again. So ends can be left over that believe in a connection of which nobody else knows, until they send something, or
// their system asks whether the other side is there (TCP keep-alive; only those that nobody answers to are asked here).

import { assert } from '../../base/assert.ts'
import type { Prng } from '../../base/prng.ts'
import type { Address, Connection, ConnectionHandlers } from '../../ports/streams.ts'
import type { SimClock } from './clock.ts'
import type { Gate } from './gate.ts'
import type { Link } from './links.ts'
import { Pipe } from './pipe.ts'

/** The same mark as the real connections'. */
const HIGH_WATER_BYTES = 1024 * 1024
const WINDOW_BYTES = 256 * 1024
const SPENT = 0xdd
/** As the real connections'. */
const KEEP_ALIVE_MS = 10_000
const PROBE_MS = 1000
const PROBES = 10

export interface Line {
  readonly host: string
  readonly remote: Address
  readonly clock: SimClock
  readonly chance: Prng
  readonly gate: Gate
  readonly there: Link
  readonly back: Link
  /** Bytes that are not acknowledged for so long end the connection. */
  readonly timeoutMs: number
  readonly counts: ConnectionCounts
  readonly closed: () => void
}

/** What has happened to connections. */
export interface ConnectionCounts {
  /** Directions in which something had to be sent again. */
  stalls: number
  timeouts: number
  resets: number
  /** Connections that ended behind a byte that was chosen. */
  cutShort: number
  /** Ends that were left behind without being told. */
  halfOpen: number
}

export class SimConnection implements Connection {
  readonly host: string
  readonly remote: Address
  highWaterBytes: number = HIGH_WATER_BYTES
  private readonly line: Line
  private readonly out: Pipe
  private peer: SimConnection | undefined
  private handlers: ConnectionHandlers | undefined
  private state: 'open' | 'ending' | 'ended' | 'closed' = 'open'
  private queue: Uint8Array[] = []
  private queueBytes = 0
  private underWayBytes = 0
  private pumping = false
  private overHighWater = false
  private paused = false
  /** A reading waits at the gate. */
  private readingHeld = false
  private unread: Uint8Array[] = []
  private peerEnded = false
  private closeDue = false
  private error: Error | undefined
  private vanished = false

  constructor(line: Line) {
    this.line = line
    this.host = line.host
    this.remote = line.remote
    const { clock, there, back, timeoutMs, counts } = line
    this.out = new Pipe({
      clock,
      there,
      back,
      timeoutMs,
      onStall: () => {
        counts.stalls++
      },
      onGivenUp: () => this.giveUp(),
    })
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
    if (this.queueBytes <= this.highWaterBytes) return true
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
    if (reset) this.sendReset()
    else this.out.send(0, () => peer?.receiveEnd())
    this.close(undefined)
  }

  /** Both ends see the connection break. */
  reset(): void {
    this.fail()
    this.sendReset()
  }

  /** The process at this end is gone: it hears nothing more; the other end sees a reset. */
  vanish(): void {
    this.vanished = true
    this.reset()
  }

  /** The machine at this end is off: nobody hears anything. */
  lose(): void {
    this.vanished = true
    this.out.drop()
    this.close(undefined)
    this.peer?.probeLater()
    this.line.counts.halfOpen++
  }

  /** This end gives the connection up, and whatever the other end sends from then on gets lost, without an answer. */
  forsake(): void {
    this.out.darken()
    this.peer?.out.darken()
    this.giveUp()
    this.line.counts.halfOpen++
  }

  private sendReset(): void {
    const { clock, there } = this.line
    const { peer } = this
    clock.after(there.latency(), () => {
      if (there.passes) peer?.fail()
      else peer?.probeLater()
    })
  }

  /** Nobody is at the other side any more, and this end has not been told. */
  private probeLater(): void {
    this.line.clock.after(KEEP_ALIVE_MS, () => this.probe(PROBES))
  }

  private probe(left: number): void {
    if (this.state === 'closed') return
    // Its machine knows of no such connection.
    if (this.out.answers) this.fail()
    else if (left === 0) this.giveUp()
    else this.line.clock.after(PROBE_MS, () => this.probe(left - 1))
  }

  private giveUp(): void {
    if (this.state === 'closed') return
    this.line.counts.timeouts++
    this.out.drop()
    if (this.peer?.state !== 'closed') this.peer?.probeLater()
    this.close(this.broken('nothing was acknowledged for too long (ETIMEDOUT)'))
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
      this.out.send(chunk.length, () => this.cross(chunk))
    }
    if (this.state === 'open' && this.overHighWater && this.queueBytes <= this.highWaterBytes / 2) {
      this.overHighWater = false
      this.line.gate.pass(() => this.handlers?.onDrain?.())
    }
    if (this.state === 'ending' && this.queueBytes === 0) {
      this.state = 'ended'
      const { peer } = this
      this.out.send(0, () => peer?.receiveEnd())
      if (this.peerEnded) this.close(undefined)
    }
  }

  private sending(): boolean {
    return this.state === 'open' || this.state === 'ending'
  }

  /** A chunk is at the other machine. */
  private cross(chunk: Uint8Array): void {
    const { peer } = this
    const last = this.line.there.burn(chunk.length)
    if (last === undefined) return peer?.receive(chunk)
    this.line.counts.cutShort++
    peer?.receive(chunk.subarray(0, last))
    peer?.reset()
  }

  /** Cuts where the seed says: often short, so that frames are split everywhere; copied, for the receiver may change it. */
  private takeChunk(bytesMax: number): Uint8Array {
    const { chance, there } = this.line
    const most = chance.below(4) === 0 ? 16 : there.chunkBytesMax
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
      this.sendReset()
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
    if (this.line.gate.held) this.readLater()
    else this.readNow(this.handlers)
  }

  private readNow(handlers: ConnectionHandlers): void {
    while (!this.paused && this.state !== 'closed') {
      const chunk = this.unread.shift()
      if (chunk === undefined) break
      const { length } = chunk
      handlers.onData(chunk)
      // As a real connection's buffer is when it is used again: whoever kept a view of it must notice.
      chunk.fill(SPENT)
      this.peer?.tellTaken(length)
    }
    if (!this.peerEnded || this.unread.length > 0 || this.state === 'closed') return
    if (this.state === 'ended') this.close(undefined)
    else this.end()
  }

  private readLater(): void {
    if (this.readingHeld) return
    this.readingHeld = true
    this.line.gate.pass(() => {
      this.readingHeld = false
      if (this.handlers !== undefined) this.readNow(this.handlers)
    })
  }

  private tellTaken(length: number): void {
    this.out.tellSender(() => {
      this.underWayBytes -= length
      if (this.queueBytes > 0 || this.overHighWater) this.pumpLater()
    })
  }

  private fail(): void {
    if (this.state === 'closed') return
    this.line.counts.resets++
    this.close(this.broken('the other side reset the connection (ECONNRESET)'))
  }

  private broken(why: string): Error {
    return new Error(`connection with ${this.remote.host}:${this.remote.port} lost: ${why}`)
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
    this.line.gate.pass(() => this.handlers?.onClose(this.error))
  }
}
