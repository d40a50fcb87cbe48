// A connection that a peer has dialled. It is greeted, or refused; from then on its pings are answered, what it says is passed
// on, and what this broker has to answer goes out.
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

import { messageOf } from '../../base/errors.ts'
import type { NodeId } from '../../model/ids.ts'
import { newestStart } from '../../model/starts.ts'
import type { Connection } from '../../ports/streams.ts'
import { pongFrame } from '../../wire/peer/frame.ts'
import { type Hello, type HelloRefusal, refusalFrame, welcomeFrame } from '../../wire/peer/hello.ts'
import { type AnyFrame, Frames } from './frames.ts'
import type { Outlet, Shared } from './types.ts'

export interface InboundOwner<M> {
  refusalOf(hello: Hello): HelloRefusal | undefined
  /** Others of its node are to be closed: what still came on them would mix with what comes on this one. */
  greeted(inbound: Inbound<M>, hello: Hello): void
  /** Its connection is closed. */
  gone(inbound: Inbound<M>): void
}

export class Inbound<M> {
  /** Once it is greeted. */
  from: NodeId | undefined
  /** And which start of it. */
  boot = 0
  private outlet: Outlet | undefined
  private readonly connection: Connection
  private readonly shared: Shared<M>
  private readonly owner: InboundOwner<M>
  private readonly frames: Frames<M>
  private state: 'connected' | 'remembering' | 'greeted' | 'refused' | 'closed' = 'connected'
  private silentTicks = 0
  private lastPing = 0
  /** Since the last pong. */
  private gotBytes = false

  constructor(connection: Connection, shared: Shared<M>, owner: InboundOwner<M>) {
    this.connection = connection
    this.shared = shared
    this.owner = owner
    const { identity, protocol } = shared.options
    this.frames = new Frames(identity.nodeId, protocol, 'in')
    shared.opened(connection)
    connection.handle({
      onData: (chunk) => this.onData(chunk),
      onDrain: () => {
        if (this.state === 'greeted') this.outlet?.drained()
      },
      onClose: () => {
        this.leave('closed')
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
    this.shared.options.counters.receivedBytes.add(chunk.length)
    this.gotBytes = true
    const { frames, fault } = this.frames.cut(chunk)
    for (const frame of frames) {
      this.onFrame(frame)
      if (!this.reading) return
    }
    if (fault !== undefined) this.bad(fault)
    else if (this.state === 'greeted') this.silentTicks = 0
  }

  /** It is greeted no more, if it was. */
  private leave(state: 'refused' | 'closed'): void {
    const { from, boot } = this
    const greeted = this.state === 'greeted'
    this.state = state
    if (!greeted || from === undefined) return
    this.outlet?.close()
    this.shared.options.changed(from, 'in', false, boot)
  }

  private onFrame(frame: AnyFrame<M>): void {
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
    if (frame.kind === 'messages') this.shared.options.receive(from, this.boot, frame.messages)
    else if (frame.kind === 'ping') this.answer(frame.number)
    else this.bad(`a ${frame.kind} came behind a hello`)
  }

  private answer(ping: number): void {
    this.lastPing = ping
    this.gotBytes = false
    if (this.outlet?.beat(pongFrame(ping)) === false) this.bad('it does not take its pongs')
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
    const { options } = this.shared
    const { identity, protocol } = options
    this.from = hello.nodeId
    this.boot = newestStart(hello.starts).bootCount
    this.state = 'greeted'
    this.silentTicks = 0
    this.frames.greeted(hello.nodeId)
    const welcome = { version: protocol.version, ...identity }
    this.connection.write([welcomeFrame(welcome, protocol.magic)])
    this.owner.greeted(this, hello)
    this.outlet = options.outletOf(hello.nodeId, 'in')
    this.outlet.open(this.connection)
    options.changed(hello.nodeId, 'in', true, this.boot)
  }

  private refuse(hello: Hello, refusal: HelloRefusal): void {
    const { nodeId: node } = hello
    this.shared.options.counters.refusals.add(1)
    this.tell('warn', `${node} ${refusal.reason}`, 'a broker is refused', {
      node,
      why: refusal.text,
    })
    this.leave('refused')
    this.connection.write([refusalFrame(refusal)])
    this.connection.end()
  }

  private unkept(hello: Hello, error: unknown): void {
    if (this.state !== 'remembering') return
    const { port, ports } = this.shared.options
    ports.log.warn('a broker is not let in: that it was here cannot be kept', {
      node: hello.nodeId,
      port,
      why: messageOf(error),
    })
    this.close()
  }

  private bad(fault: string): void {
    this.shared.options.counters.badFrames.add(1)
    const text = 'a connection is closed: it brought bytes that no broker writes'
    this.tell('warn', `garbage ${this.whose}`, text, {
      node: this.from,
      address: this.connection.remote,
      why: fault,
    })
    this.close()
  }

  private get whose(): string {
    return this.from ?? this.connection.remote.host
  }

  /** `about`: what is told once in a while. */
  private tell(
    level: 'info' | 'warn',
    about: string,
    text: string,
    fields: Readonly<Record<string, unknown>>,
  ): void {
    const { options, unwanted } = this.shared
    const { port, ports } = options
    const sinceLast = unwanted.next(about, ports.clock.monotonic())
    if (sinceLast === undefined) return
    const more = sinceLast === 0 ? {} : { alsoSinceLastLine: sinceLast }
    ports.log[level](text, { port, ...fields, ...more })
  }

  /** Called every `pingMs`: ends what says nothing, not even who it is or that it has read its refusal. */
  tick(): void {
    if (this.state === 'closed') return
    const { pingMs, pongTimeoutMs, dialTimeoutMs } = this.shared.options.settings
    // One tick more than it takes, since the first comes at any time after the last byte.
    const timeoutMs = this.state === 'greeted' ? pingMs + pongTimeoutMs : dialTimeoutMs
    if (this.silentTicks++ * pingMs >= timeoutMs) this.silent()
    else if (this.state === 'greeted' && this.gotBytes) this.answer(this.lastPing)
  }

  private silent(): void {
    this.tell(
      'info',
      `silence ${this.whose}`,
      'a connection from a broker is closed: it is silent',
      {
        node: this.from,
        address: this.connection.remote,
      },
    )
    this.close()
  }

  close(): void {
    if (this.state === 'closed') return
    this.leave('closed')
    this.connection.destroy()
  }

  stop(): void {
    if (this.reading) {
      this.outlet?.flush()
      this.connection.end()
    }
    this.outlet?.close()
    this.state = 'closed'
  }
}
