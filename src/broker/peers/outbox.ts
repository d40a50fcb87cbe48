// Frames on their way to one peer: kept while there is no connection, and while the connection has enough.

import { assert } from '../../base/assert.ts'
import type { Counter } from '../../ports/metrics.ts'
import type { Connection } from '../../ports/streams.ts'

export class Outbox {
  private connection: Connection | undefined
  private sent: Counter | undefined
  private kept: Uint8Array[] = []
  private keptBytes = 0
  private keptMessages = 0
  /** The connection has enough, or there is none. */
  private blocked = true

  /** Given and not yet taken by the operating system. */
  get waitingBytes(): number {
    return this.keptBytes + (this.connection?.queuedBytes ?? 0)
  }

  /** The caller has seen to the bound. */
  push(frames: readonly Uint8Array[], bytes: number, messages: number): void {
    for (const frame of frames) this.kept.push(frame)
    this.keptBytes += bytes
    this.keptMessages += messages
    if (!this.blocked) this.flush()
  }

  open(connection: Connection, sent: Counter): void {
    assert(this.connection === undefined, 'an outbox has one connection at a time')
    this.connection = connection
    this.sent = sent
    this.flush()
  }

  drained(): void {
    if (this.kept.length > 0) this.flush()
    else this.blocked = false
  }

  /** Gives all to the connection, whether or not that has enough. */
  flush(): void {
    const { connection, kept } = this
    if (connection === undefined) return
    this.sent?.add(this.keptBytes)
    this.kept = []
    this.keptBytes = 0
    this.keptMessages = 0
    this.blocked = !connection.write(kept)
  }

  /** The messages that were kept and will not go. */
  close(): number {
    const dropped = this.keptMessages
    this.connection = undefined
    this.kept = []
    this.keptBytes = 0
    this.keptMessages = 0
    this.blocked = true
    return dropped
  }
}
