// Messages on their way to one peer: kept while it is dialled, up to a small bound, and while the connection has enough, up
// to a larger one. What has no room, or whose dial fails, is dropped: it would be old by the time it arrived, and those who
// send know how to live with loss.

import { assert } from '../../base/assert.ts'
import type { NodeId } from '../../model/ids.ts'
import type { Log } from '../../ports/log.ts'
import type { Connection } from '../../ports/streams.ts'
import { messageFrames, PEER_MESSAGE_BYTES_MAX } from '../../wire/peer/frame.ts'
import type { PeerMessage } from '../../wire/peer/types.ts'
import type { LinkCounters, Outlet } from '../links/types.ts'
import type { PeersSettings } from './settings.ts'

export interface OutboxOptions {
  readonly log: Log
  readonly settings: PeersSettings
  readonly counters: LinkCounters
}

export class Outbox implements Outlet {
  private readonly to: NodeId
  private readonly options: OutboxOptions
  private connection: Connection | undefined
  private kept: Uint8Array[] = []
  private keptBytes = 0
  private keptMessages = 0
  /** The connection has enough, or there is none. */
  private blocked = true
  private full = false

  constructor(to: NodeId, options: OutboxOptions) {
    this.to = to
    this.options = options
  }

  /** All in one frame if they are not many MiB. False: some were dropped. */
  send(messages: readonly PeerMessage[]): boolean {
    const { frames, tooLarge } = messageFrames(messages)
    if (tooLarge > 0) this.tellTooLarge(tooLarge)
    const bytes = frames.reduce((sum, frame) => sum + frame.length, 0)
    if (!this.hasRoom(bytes)) return this.drop(messages.length)
    this.push(frames, bytes, messages.length - tooLarge)
    return tooLarge === 0 || this.drop(tooLarge)
  }

  drop(messages: number): false {
    this.options.counters.dropped.add(messages)
    return false
  }

  private tellTooLarge(messages: number): void {
    this.options.log.error('messages to a broker are dropped: no frame can hold them', {
      node: this.to,
      messages,
      bytesMax: PEER_MESSAGE_BYTES_MAX,
    })
  }

  private hasRoom(bytes: number): boolean {
    const { log, settings } = this.options
    const { dialBytesMax, outboxBytesMax } = settings
    const { waitingBytes } = this
    if (this.connection === undefined) return waitingBytes + bytes <= dialBytesMax
    if (waitingBytes + bytes <= outboxBytesMax) {
      // Only after a while is it news when there is no room again.
      if (waitingBytes < outboxBytesMax / 2) this.full = false
      return true
    }
    if (!this.full) {
      this.full = true
      log.warn('messages to a broker are dropped: it takes them too slowly', {
        node: this.to,
        waitingBytes,
      })
    }
    return false
  }

  /** Given and not yet taken by the operating system. */
  private get waitingBytes(): number {
    return this.keptBytes + (this.connection?.queuedBytes ?? 0)
  }

  private push(frames: readonly Uint8Array[], bytes: number, messages: number): void {
    for (const frame of frames) this.kept.push(frame)
    this.keptBytes += bytes
    this.keptMessages += messages
    if (!this.blocked) this.flush()
  }

  beat(frame: Uint8Array): boolean {
    this.push([frame], frame.length, 0)
    return true
  }

  open(connection: Connection): void {
    assert(this.connection === undefined, 'an outbox has one connection at a time')
    this.connection = connection
    this.full = false
    this.flush()
  }

  drained(): void {
    if (this.kept.length > 0) this.flush()
    else this.blocked = false
  }

  flush(): void {
    const { connection, kept } = this
    if (connection === undefined) return
    this.options.counters.sentBytes.add(this.keptBytes)
    this.kept = []
    this.keptBytes = 0
    this.keptMessages = 0
    this.blocked = !connection.write(kept)
  }

  close(): void {
    if (this.keptMessages > 0) this.drop(this.keptMessages)
    this.connection = undefined
    this.kept = []
    this.keptBytes = 0
    this.keptMessages = 0
    this.blocked = true
  }
}

/** Pongs and what else waits to be taken by a peer. */
const WAITING_BYTES_MAX = 64 * 1024

/** On a connection that a peer has dialled nothing goes back but pongs. */
export class Pongs implements Outlet {
  private connection: Connection | undefined

  open(connection: Connection): void {
    this.connection = connection
  }

  drained(): void {}

  beat(frame: Uint8Array): boolean {
    const { connection } = this
    if (connection === undefined) return true
    connection.write([frame])
    return connection.queuedBytes <= WAITING_BYTES_MAX
  }

  flush(): void {}

  close(): void {
    this.connection = undefined
  }
}
