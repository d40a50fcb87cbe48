// A connection to the cluster port before it is known what it is for. The kind of its first frame tells: then it goes, with
// the bytes that have come, to whoever handles such, who knows nothing of what was before.
//
//   connected ── u32 length │ u32 checksum │ u8 kind ──> handed on     the same bytes again, then all that follow
//       └─ too slow, closed ──> gone

import { concatBytes, EMPTY } from '../../base/bytes.ts'
import type { Address, Connection, ConnectionHandlers } from '../../ports/streams.ts'
import { kindAhead } from '../../wire/peer/frame.ts'

export interface ArrivalOwner {
  /** To be given handlers, or destroyed, at once. */
  known(arrival: Arrival, kind: number): void
  /** It was known, or it has closed. */
  left(arrival: Arrival): void
}

export class Arrival implements Connection {
  private readonly connection: Connection
  private readonly owner: ArrivalOwner
  private handlers: ConnectionHandlers | undefined
  private begin: Uint8Array = EMPTY
  private ended = false

  constructor(connection: Connection, owner: ArrivalOwner) {
    this.connection = connection
    this.owner = owner
    connection.handle({
      onData: (chunk) => {
        if (this.handlers !== undefined) this.handlers.onData(chunk)
        else if (!this.ended) this.onBegin(chunk)
      },
      onDrain: () => this.handlers?.onDrain?.(),
      onClose: (error) => {
        this.ended = true
        if (this.handlers === undefined) owner.left(this)
        this.handlers?.onClose(error)
      },
    })
  }

  private onBegin(chunk: Uint8Array): void {
    // Nearly always the first chunk is enough, and is handed on without a copy.
    const begin = this.begin.length === 0 ? chunk : concatBytes([this.begin, chunk])
    const kind = kindAhead(begin)
    if (kind === undefined) {
      this.begin = begin.slice()
      return
    }
    this.begin = EMPTY
    this.owner.left(this)
    this.owner.known(this, kind)
    if (!this.ended) this.handlers?.onData(begin)
  }

  get remote(): Address {
    return this.connection.remote
  }

  get highWaterBytes(): number {
    return this.connection.highWaterBytes
  }
  set highWaterBytes(bytes: number) {
    this.connection.highWaterBytes = bytes
  }

  get queuedBytes(): number {
    return this.connection.queuedBytes
  }

  handle(handlers: ConnectionHandlers): void {
    this.handlers = handlers
  }

  write(buffers: readonly Uint8Array[]): boolean {
    return this.connection.write(buffers)
  }

  pause(): void {
    this.connection.pause()
  }

  resume(): void {
    this.connection.resume()
  }

  end(): void {
    this.connection.end()
  }

  destroy(): void {
    this.ended = true
    this.connection.destroy()
  }
}
