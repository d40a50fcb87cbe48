// One TCP connection.
//
//   open ──end()──> ending ──sent, or no progress for a while──> closed ──> onClose()
//     └──destroy(), error, other side gone──────────────────────────┘
//
// When the other side ends its half, what is queued here is still sent, then this side ends too. An end that the
// other side never takes is cut off: a peer that stops reading must not hold a socket for ever.

import type net from 'node:net'
import { assert } from '../../base/assert.ts'
import type { Address, Connection, ConnectionHandlers } from '../../ports/streams.ts'
import { gather } from '../gather.ts'
import { networkError, showAddress } from './errors.ts'
import type { Lender } from './lent.ts'

const HIGH_WATER_BYTES = 1024 * 1024

/** An ending connection of which nothing more was taken for so long is cut. */
const END_STALL_MS = 5000

export class TcpConnection implements Connection {
  readonly remote: Address
  highWaterBytes: number = HIGH_WATER_BYTES
  private readonly socket: net.Socket
  private readonly lender: Lender
  private readonly flushLater: (connection: TcpConnection) => void
  private handlers: ConnectionHandlers | undefined
  /** Written in this turn, not yet given to the socket. */
  private pending: Uint8Array[] = []
  private pendingBytes = 0
  private scheduled = false
  private state: 'open' | 'ending' | 'closed' = 'open'
  private overHighWater = false
  private error: Error | undefined
  private closeSeen = false
  private closeTold = false

  /** `socket` is paused until there are handlers, and gives what it reads to `lender`. */
  constructor(
    socket: net.Socket,
    lender: Lender,
    remote: Address,
    flushLater: (connection: TcpConnection) => void,
  ) {
    this.socket = socket
    this.lender = lender
    this.remote = remote
    this.flushLater = flushLater
    socket.on('error', (error) => {
      this.error ??= networkError(`connection with ${showAddress(remote)} lost`, error)
    })
    socket.on('close', () => {
      this.state = 'closed'
      this.pending = []
      this.pendingBytes = 0
      this.closeSeen = true
      this.tellClose()
    })
    socket.on('end', () => this.end())
  }

  handle(handlers: ConnectionHandlers): void {
    assert(this.handlers === undefined, 'handlers are set once')
    this.handlers = handlers
    if (this.closeSeen) {
      queueMicrotask(() => this.tellClose())
      return
    }
    this.lender.lend = (chunk) => {
      if (!this.socket.destroyed) handlers.onData(chunk)
    }
    this.socket.resume()
  }

  get queuedBytes(): number {
    return this.pendingBytes + this.socket.writableLength
  }

  write(buffers: readonly Uint8Array[]): boolean {
    if (this.state !== 'open') return false
    for (const buffer of buffers) {
      this.pending.push(buffer)
      this.pendingBytes += buffer.length
    }
    this.schedule()
    if (this.queuedBytes <= this.highWaterBytes) return true
    this.overHighWater = true
    return false
  }

  /** Called once at the end of a turn in which something was written. */
  flush(): void {
    this.scheduled = false
    const buffers = this.pending
    if (this.state === 'closed' || this.socket.destroyed) return
    if (buffers.length > 0) {
      this.pending = []
      this.pendingBytes = 0
      this.send(gather(buffers))
    }
    if (this.state === 'ending') {
      this.socket.end()
      this.watchEnd(this.socket.writableLength)
    }
  }

  private send(buffers: readonly Uint8Array[]): void {
    const last = buffers.length - 1
    if (last > 0) this.socket.cork()
    for (let i = 0; i < last; i++) this.socket.write(buffers[i] as Uint8Array)
    this.socket.write(buffers[last] as Uint8Array, this.afterWrite)
    if (last > 0) this.socket.uncork()
  }

  private readonly afterWrite = (): void => {
    if (!this.overHighWater || this.state !== 'open') return
    if (this.queuedBytes > this.highWaterBytes / 2) return
    this.overHighWater = false
    this.handlers?.onDrain?.()
  }

  pause(): void {
    this.socket.pause()
  }

  resume(): void {
    this.socket.resume()
  }

  end(): void {
    if (this.state !== 'open') return
    this.state = 'ending'
    this.schedule()
  }

  destroy(): void {
    if (this.state === 'closed') return
    this.state = 'closed'
    this.pending = []
    this.pendingBytes = 0
    this.socket.destroy()
  }

  private schedule(): void {
    if (this.scheduled) return
    this.scheduled = true
    this.flushLater(this)
  }

  private watchEnd(queuedBefore: number): void {
    const timer = setTimeout(() => {
      const queued = this.socket.writableLength
      if (queued > 0 && queued < queuedBefore) this.watchEnd(queued)
      else this.socket.destroy()
    }, END_STALL_MS)
    timer.unref()
    this.socket.once('close', () => clearTimeout(timer))
  }

  private tellClose(): void {
    if (this.handlers === undefined || this.closeTold) return
    this.closeTold = true
    this.handlers.onClose(this.error)
  }
}
