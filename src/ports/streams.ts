// Ordered byte streams between processes (TCP). Callbacks, not promises, because this is the hot path.

import type { Address } from '../base/address.ts'

export type { Address }

export interface Connection {
  readonly remote: Address
  /**
   * Set once, at once on receipt of the connection. Chunks are lent: their bytes may be changed, and are written over
   * when `onData` has returned, so what is to be kept is copied. `onClose` comes exactly once, last; `error` is absent
   * after an orderly end.
   */
  handle(handlers: ConnectionHandlers): void
  /**
   * Queues buffers, which must not change afterwards; all that is queued in one turn leaves in one system call.
   * False when more than `highWaterBytes` wait: then stop until `onDrain`, which comes when half as many do.
   */
  write(buffers: readonly Uint8Array[]): boolean
  /** Higher: fewer stalls. Lower: what is urgent waits behind less. A MiB until it is set. */
  highWaterBytes: number
  /** Bytes queued and not yet taken by the operating system. */
  readonly queuedBytes: number
  pause(): void
  resume(): void
  /** Sends what is queued, then closes. */
  end(): void
  /** Closes now; queued bytes are dropped. */
  destroy(): void
}

export interface ConnectionHandlers {
  onData(chunk: Uint8Array): void
  onDrain?(): void
  onClose(error?: Error): void
}

export interface Listener {
  /** The address it listens on, with the port that was chosen when 0 was asked for. */
  readonly address: Address
  /** Stops taking connections; those that are open live on. */
  close(): Promise<void>
}

export interface ConnectOptions {
  readonly timeoutMs: number
  readonly signal?: AbortSignal
}

export interface Streams {
  listen(address: Address, onConnection: (connection: Connection) => void): Promise<Listener>
  /** Rejects with an Error whose message names the address and the cause. */
  connect(address: Address, options: ConnectOptions): Promise<Connection>
}
