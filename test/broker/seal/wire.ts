// Two ends of a wire that a test holds in its hands: what each writes lies there until the test delivers it, as it is, cut
// otherwise, or changed.

import { concatBytes, EMPTY } from '../../../src/base/bytes.ts'
import type { Address, Connection, ConnectionHandlers } from '../../../src/ports/streams.ts'

export class WireEnd implements Connection {
  readonly remote: Address
  readonly queuedBytes = 0
  highWaterBytes: number = 1024 * 1024
  /** Not delivered yet. */
  written: Uint8Array = EMPTY
  state: 'open' | 'ended' | 'destroyed' = 'open'
  private handlers: ConnectionHandlers | undefined

  constructor(host: string) {
    this.remote = { host, port: 1 }
  }

  handle(handlers: ConnectionHandlers): void {
    this.handlers = handlers
  }

  write(buffers: readonly Uint8Array[]): boolean {
    if (this.state === 'open') this.written = concatBytes([this.written, ...buffers])
    return true
  }

  take(): Uint8Array {
    const { written } = this
    this.written = EMPTY
    return written
  }

  /** The memory is written over afterwards, as that of a real connection is. */
  deliver(bytes: Uint8Array, chunkBytes: number = 64 * 1024): void {
    for (let at = 0; at < bytes.length; at += chunkBytes) {
      const lent = bytes.slice(at, at + chunkBytes)
      if (this.state !== 'destroyed') this.handlers?.onData(lent)
      lent.fill(0)
    }
  }

  closed(error?: Error): void {
    this.handlers?.onClose(error)
  }

  pause(): void {}

  resume(): void {}

  end(): void {
    if (this.state === 'open') this.state = 'ended'
  }

  destroy(): void {
    if (this.state === 'destroyed') return
    this.state = 'destroyed'
    this.closed()
  }
}
