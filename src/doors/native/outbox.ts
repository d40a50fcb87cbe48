// Answers on their way out of one connection. Small ones are written one behind another into a slab, large ones go by
// reference; at the end of the turn all of it is one write. The socket keeps what it was given, so a slab is never
// reused: when it is full the next one is taken.
//
//   slab  [ sent | this turn's answers | free ]        parts  [ slice, frame, slice, ... ]

import type { Connection } from '../../ports/streams.ts'

const SLAB_BYTES = 64 * 1024

export class Outbox {
  private readonly connection: Connection
  private readonly onBlocked: () => void
  private slab: Uint8Array = Buffer.allocUnsafeSlow(0)
  private from = 0
  private at = 0
  private parts: Uint8Array[] = []
  private scheduled = false
  private writing = 0
  /** The client is behind: nothing that can wait is given to it before `drained`. */
  blocked = false
  /** Bytes ever given to the connection. */
  writtenBytes = 0

  constructor(connection: Connection, onBlocked: () => void) {
    this.connection = connection
    this.onBlocked = onBlocked
  }

  /** Bytes waiting for the end of the turn or for the client. */
  get waitingBytes(): number {
    return this.connection.queuedBytes + this.writing + (this.at - this.from)
  }

  /** Room for a small answer of exactly `bytes`; it is written at the returned place of `buffer`. */
  reserve(bytes: number): number {
    if (this.at + bytes > this.slab.length) {
      this.cut()
      this.slab = Buffer.allocUnsafeSlow(SLAB_BYTES)
      this.from = 0
      this.at = 0
    }
    const place = this.at
    this.at += bytes
    this.schedule()
    return place
  }

  get buffer(): Uint8Array {
    return this.slab
  }

  /** A frame or a part of one, which must not change any more. */
  push(part: Uint8Array): void {
    this.cut()
    this.parts.push(part)
    this.writing += part.length
    this.schedule()
  }

  private cut(): void {
    if (this.at === this.from) return
    this.parts.push(this.slab.subarray(this.from, this.at))
    this.writing += this.at - this.from
    this.from = this.at
  }

  private schedule(): void {
    if (this.scheduled) return
    this.scheduled = true
    queueMicrotask(this.flush)
  }

  readonly flush = (): void => {
    this.scheduled = false
    this.cut()
    if (this.parts.length === 0) return
    const parts = this.parts
    this.parts = []
    this.writtenBytes += this.writing
    this.writing = 0
    if (this.connection.write(parts)) return
    this.blocked = true
    this.onBlocked()
  }
}
