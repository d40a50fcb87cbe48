// A connection that a peer has dialled. The peer speaks; here it is only greeted, or refused, and its pings are answered.
//
//   connected ── hello ──> remembering ── its start is kept ──> greeted ── replaced, garbage, silence, closed ──> closed
//
//   a start that is news is kept durably before the peer is greeted: whatever it says from then on, an older copy of it will
//   not be let in, also after a crash of this broker. The peer waits so long, nobody else does
//
//   no hello in time                       closed
//   hello that is not for us               refused with a reason, closed
//   its start cannot be kept               closed
//   bytes that no broker writes            closed, counted; nobody else is disturbed
//   silent: not even a ping                closed: the peer is gone and nobody has told us
//   bytes, and a ping is still behind them told, now and then: the link is slow and not dead
//   pongs are not taken                    closed

import type { NodeId } from '../../model/ids.ts'
import { newestStart } from '../../model/starts.ts'
import type { Connection } from '../../ports/streams.ts'
import { pongFrame } from '../../wire/peer/frame.ts'
import {
  type Hello,
  type HelloRefusal,
  PEER_VERSION,
  refusalFrame,
  welcomeFrame,
} from '../../wire/peer/hello.ts'
import type { PeerFrame } from '../../wire/peer/read-frame.ts'
import type { PeerMessage } from '../../wire/peer/types.ts'
import { Frames } from './frames.ts'
import type { Shared } from './types.ts'

/** Pongs and what else waits to be taken by a peer. */
const WAITING_BYTES_MAX = 64 * 1024

export interface InboundOwner {
  refusalOf(hello: Hello): HelloRefusal | undefined
  greeted(inbound: Inbound, hello: Hello): void
  receive(from: NodeId, messages: readonly PeerMessage[]): void
  gone(inbound: Inbound): void
}

export class Inbound {
  /** Once it is greeted. */
  from: NodeId | undefined
  private readonly connection: Connection
  private readonly shared: Shared
  private readonly owner: InboundOwner
  private readonly frames: Frames
  private state: 'connected' | 'remembering' | 'greeted' | 'refused' | 'closed' = 'connected'
  private silentTicks = 0
  private lastPing = 0
  /** Since the last pong. */
  private gotBytes = false

  constructor(connection: Connection, shared: Shared, owner: InboundOwner) {
    this.connection = connection
    this.shared = shared
    this.owner = owner
    this.frames = new Frames(shared.identity.nodeId)
    shared.opened(connection)
    connection.handle({
      onData: (chunk) => this.onData(chunk),
      onClose: () => {
        this.state = 'closed'
        shared.closed(connection)
        owner.gone(this)
      },
    })
  }

  private get reading(): boolean {
    return this.state !== 'refused' && this.state !== 'closed'
  }

  private onData(chunk: Uint8Array): void {
    if (!this.reading) return
    this.shared.counters.receivedBytes.add(chunk.length)
    this.gotBytes = true
    const { frames, fault } = this.frames.cut(chunk)
    for (const frame of frames) {
      this.onFrame(frame)
      if (!this.reading) return
    }
    if (fault !== undefined) this.bad(fault)
    else if (this.state === 'greeted') this.silentTicks = 0
  }

  private onFrame(frame: PeerFrame): void {
    const { from } = this
    if (this.state === 'remembering') {
      this.bad(`a ${frame.kind} came before the welcome`)
      return
    }
    if (from === undefined) {
      if (frame.kind === 'hello') this.greet(frame.hello)
      else this.bad(`a ${frame.kind} came before a hello`)
      return
    }
    if (frame.kind === 'messages') this.owner.receive(from, frame.messages)
    else if (frame.kind === 'ping') this.answer(frame.number)
    else this.bad(`a ${frame.kind} came behind a hello`)
  }

  private answer(ping: number): void {
    this.lastPing = ping
    this.gotBytes = false
    this.connection.write([pongFrame(ping)])
    if (this.connection.queuedBytes > WAITING_BYTES_MAX) this.bad('it does not take its pongs')
  }

  private greet(hello: Hello): void {
    const refusal = this.owner.refusalOf(hello)
    if (refusal !== undefined) return this.refuse(hello, refusal)
    this.state = 'remembering'
    this.shared.remember(hello.nodeId, newestStart(hello.starts)).then(
      () => this.welcome(hello),
      (error: unknown) => this.unkept(hello, error),
    )
  }

  private welcome(hello: Hello): void {
    if (this.state !== 'remembering') return
    // Meanwhile a later start may have said hello.
    const refusal = this.owner.refusalOf(hello)
    if (refusal !== undefined) return this.refuse(hello, refusal)
    this.from = hello.nodeId
    this.state = 'greeted'
    this.silentTicks = 0
    this.frames.greeted(hello.nodeId)
    this.connection.write([welcomeFrame({ version: PEER_VERSION, ...this.shared.identity })])
    this.owner.greeted(this, hello)
  }

  private refuse(hello: Hello, refusal: HelloRefusal): void {
    const { counters, ports } = this.shared
    counters.refusals.add(1)
    ports.log.warn('a broker is refused', { node: hello.nodeId, why: refusal.text })
    this.state = 'refused'
    this.connection.write([refusalFrame(refusal)])
    this.connection.end()
  }

  private unkept(hello: Hello, error: unknown): void {
    if (this.state !== 'remembering') return
    this.shared.ports.log.warn('a broker is not let in: that it was here cannot be kept', {
      node: hello.nodeId,
      why: error instanceof Error ? error.message : String(error),
    })
    this.close()
  }

  private bad(fault: string): void {
    const { counters, ports } = this.shared
    counters.badFrames.add(1)
    ports.log.warn('a connection is closed: it brought bytes that no broker writes', {
      node: this.from,
      address: this.connection.remote,
      why: fault,
    })
    this.close()
  }

  /** Called every `pingMs`: ends what says nothing, not even who it is or that it has read its refusal. */
  tick(): void {
    if (this.state === 'closed') return
    const { pingMs, pongTimeoutMs, dialTimeoutMs } = this.shared.settings
    // One tick more than it takes, since the first comes at any time after the last byte.
    const timeoutMs = this.state === 'greeted' ? pingMs + pongTimeoutMs : dialTimeoutMs
    if (this.silentTicks++ * pingMs >= timeoutMs) this.silent()
    else if (this.state === 'greeted' && this.gotBytes) this.answer(this.lastPing)
  }

  private silent(): void {
    this.shared.ports.log.info('a connection from a broker is closed: it is silent', {
      node: this.from,
      address: this.connection.remote,
    })
    this.close()
  }

  close(): void {
    if (this.state === 'closed') return
    this.state = 'closed'
    this.connection.destroy()
  }

  stop(): void {
    if (this.reading) this.connection.end()
    this.state = 'closed'
  }
}
