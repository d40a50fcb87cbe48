// One TCP connection as ports/streams.ts has it.
//
// What is written in one turn leaves in one system call: buffers gather in `out`, and the turn's last microtask hands
// them to the socket corked, small neighbours joined. Two water marks keep memory bounded: `write` says false above
// HIGH_WATER_BYTES, and `onDrain` comes when the queue has fallen to nothing.

import type { Socket } from 'node:net'
import { assert } from '../../base/assert.ts'
import type { Address, Connection, ConnectionHandlers } from '../../ports/streams.ts'
import { gather } from '../gather.ts'

export const HIGH_WATER_BYTES: number = 1024 * 1024

export class TcpConnection implements Connection {
  readonly remote: Address
  private readonly socket: Socket
  private handlers: ConnectionHandlers | undefined
  private out: Uint8Array[] = []
  private outBytes = 0
  private flushing = false
  private needsDrain = false
  private ending = false
  private error: Error | undefined

  constructor(socket: Socket) {
    this.socket = socket
    this.remote = { host: socket.remoteAddress ?? '', port: socket.remotePort ?? 0 }
    socket.setNoDelay(true)
    // Nothing is read before there is somebody to take it.
    socket.pause()
    socket.on('error', (error) => {
      this.error = error
    })
  }

  handle(handlers: ConnectionHandlers): void {
    assert(this.handlers === undefined, 'a connection is handled once')
    this.handlers = handlers
    const { socket } = this
    socket.on('data', (chunk: Buffer) => handlers.onData(chunk))
    socket.on('drain', () => this.drained())
    // The peer will send no more. Nobody here uses half-open connections: what is queued goes out, then it is over.
    socket.on('end', () => this.end())
    socket.once('close', () => {
      this.out = []
      this.outBytes = 0
      handlers.onClose(this.error)
    })
    if (socket.destroyed) queueMicrotask(() => handlers.onClose(this.error))
    else socket.resume()
  }

  get queuedBytes(): number {
    return this.outBytes + this.socket.writableLength
  }

  write(buffers: readonly Uint8Array[]): boolean {
    if (this.ending || this.socket.destroyed) return false
    for (const buffer of buffers) {
      this.out.push(buffer)
      this.outBytes += buffer.length
    }
    if (!this.flushing) {
      this.flushing = true
      // setImmediate and not a microtask: a group commit answers many requests in many callbacks of one turn.
      setImmediate(this.flush)
    }
    if (this.queuedBytes <= HIGH_WATER_BYTES) return true
    this.needsDrain = true
    return false
  }

  private readonly flush = (): void => {
    this.flushing = false
    if (this.out.length === 0 || this.socket.destroyed) return
    const buffers = gather(this.out)
    this.out = []
    this.outBytes = 0
    let taken = true
    this.socket.cork()
    for (const buffer of buffers) taken = this.socket.write(buffer)
    this.socket.uncork()
    if (taken) this.drained()
  }

  private drained(): void {
    if (!this.needsDrain || this.queuedBytes > HIGH_WATER_BYTES / 2) return
    this.needsDrain = false
    this.handlers?.onDrain?.()
  }

  pause(): void {
    this.socket.pause()
  }

  resume(): void {
    this.socket.resume()
  }

  end(): void {
    if (this.ending) return
    this.flush()
    this.ending = true
    this.socket.end()
  }

  destroy(): void {
    this.ending = true
    this.socket.destroy()
  }
}
