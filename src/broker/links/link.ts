// The way to one peer: a connection that this broker dials when it first has something to send. What the other side says on
// it are answers, at least to pings.
//
//          send                 welcome
//   idle ────────> dialling ─────────────> up ──┐
//    ^                │ failed, refused,        │ closed, bad frame, no pong,
//    │                │ too late                │ the peer has started anew
//    │ nothing asked  v                         │
//    └──────────── pausing <────────────────────┘
//                     │ pause is over, and something was asked meanwhile, or a link was lost, or is wanted in any case
//                     └──────> dialling
//
// What is to be sent, and what becomes of it while there is no connection, is the outlet's.
//
// A link may be half open: the peer's machine is gone and nobody has told us. So a ping goes out now and then, and something
// must come back. Where bytes arrive only slowly a ping waits behind them; so the peer also says that it gets bytes. The
// time is counted in ticks of our own: a pause of this process must not be taken for the peer's.

import { Backoff } from '../../base/backoff.ts'
import { messageOf } from '../../base/errors.ts'
import type { NodeId } from '../../model/ids.ts'
import { newestStart } from '../../model/starts.ts'
import type { Timer } from '../../ports/clock.ts'
import type { Connection } from '../../ports/streams.ts'
import { pingFrame } from '../../wire/peer/frame.ts'
import { helloFrame, type Welcome } from '../../wire/peer/hello.ts'
import { type AnyFrame, Frames } from './frames.ts'
import type { LinksOptions, Outlet, Shared } from './types.ts'

/** `away`: it would be dialled, but for a pause after a failure. */
export type LinkState = 'up' | 'dialling' | 'away'

export class Link<M> {
  readonly to: NodeId
  private readonly shared: Shared<M>
  private readonly options: LinksOptions<M>
  private readonly outlet: Outlet
  private readonly backoff: Backoff
  private state: 'idle' | 'dialling' | 'up' | 'pausing' | 'stopped' = 'idle'
  /** Of this dial or of this pause. */
  private timer: Timer | undefined
  private dial: AbortController | undefined
  private connection: Connection | undefined
  private askedWhilePausing = false
  private wanted = false
  private peerBoot = 0
  private upSince = 0
  private failures = 0
  private pings = 0
  /** Since something came back. */
  private silentTicks = 0

  constructor(to: NodeId, shared: Shared<M>) {
    const { options } = shared
    this.to = to
    this.shared = shared
    this.options = options
    this.outlet = options.outletOf(to, 'out')
    const { backoffMs, backoffMaxMs } = options.settings
    this.backoff = new Backoff(options.ports.random, backoffMs, backoffMaxMs)
  }

  get up(): boolean {
    return this.state === 'up'
  }

  /** There is something to send: dials if there is no link. Calls nobody back. */
  ask(): LinkState {
    if (this.state === 'idle') this.startDial()
    if (this.state === 'pausing') this.askedWhilePausing = true
    return this.state === 'up' || this.state === 'dialling' ? this.state : 'away'
  }

  /** Whether it is to be dialled again and again, asked or not. */
  want(wanted: boolean): void {
    this.wanted = wanted
    if (wanted) this.ask()
  }

  /** The peer has dialled this broker: it lives, and since that start. */
  heardFrom(bootCount: number): void {
    if (this.state === 'up' && bootCount > this.peerBoot) this.lose('the broker has started anew')
    if (this.state !== 'pausing') return
    this.backoff.reset()
    this.timer?.cancel()
    this.startDial()
  }

  // Dialling.

  private startDial(): void {
    const { clock, streams } = this.options.ports
    const { dialTimeoutMs } = this.options.settings
    const dial = new AbortController()
    this.state = 'dialling'
    this.dial = dial
    this.askedWhilePausing = false
    const address = this.options.directory.addressOf(this.to)
    if (address === undefined) return this.fail('its address is not known')
    this.timer = clock.after(dialTimeoutMs, () => this.fail(`no welcome in ${dialTimeoutMs} ms`))
    streams.connect(address, { timeoutMs: dialTimeoutMs, signal: dial.signal }).then(
      (connection) => {
        if (this.dial === dial) this.greet(connection)
        else closeUnused(connection)
      },
      (error: unknown) => {
        if (this.dial === dial) this.fail(messageOf(error))
      },
    )
  }

  private greet(connection: Connection): void {
    const { identity, protocol } = this.options
    const frames = new Frames(identity.nodeId, protocol, 'out')
    this.connection = connection
    this.shared.opened(connection)
    connection.handle({
      onData: (chunk) => this.onData(connection, frames, chunk),
      onDrain: () => {
        if (this.connection === connection) this.outlet.drained()
      },
      onClose: (error) => {
        this.shared.closed(connection)
        if (this.connection === connection) this.end(error?.message ?? 'the other side closed it')
      },
    })
    const hello = { version: protocol.version, ...identity, to: this.to }
    connection.write([helloFrame(hello, protocol.magic)])
  }

  private onData(connection: Connection, frames: Frames<M>, chunk: Uint8Array): void {
    this.options.counters.receivedBytes.add(chunk.length)
    const { frames: whole, fault } = frames.cut(chunk)
    for (const frame of whole) {
      if (this.connection !== connection) return
      this.onFrame(connection, frame)
    }
    if (this.connection !== connection) return
    if (fault !== undefined) this.bad(fault)
    else if (this.state === 'up') this.silentTicks = 0
  }

  private onFrame(connection: Connection, frame: AnyFrame<M>): void {
    if (this.state === 'up') {
      if (frame.kind === 'messages') this.options.receive(this.to, this.peerBoot, frame.messages)
      else if (frame.kind !== 'pong') this.bad(`a ${frame.kind} came on a link that is up`)
    } else if (frame.kind === 'welcome') this.onWelcome(connection, frame.welcome)
    else if (frame.kind === 'refusal') {
      const { reason, text } = frame.refusal
      this.end(`it refuses: ${text} (${reason})`)
      if (reason === 'old-boot') this.shared.refusedAsOld(this.to)
    } else this.bad(`a ${frame.kind} came instead of a welcome`)
  }

  private onWelcome(connection: Connection, welcome: Welcome): void {
    const { identity, ports } = this.options
    if (welcome.nodeId !== this.to || welcome.clusterId !== identity.clusterId) {
      return this.end(`node ${welcome.nodeId} of cluster ${welcome.clusterId} answers there`)
    }
    const start = newestStart(welcome.starts)
    if (this.shared.isOld(welcome.nodeId, welcome.starts)) {
      return this.end(
        `its start ${start.bootCount} answers, and another was met that is not before it`,
      )
    }
    // Nobody need wait: what the peer has to say it says on a link that it dials itself.
    this.shared.remember(welcome.nodeId, start).catch(() => undefined)
    this.state = 'up'
    this.dial = undefined
    this.timer?.cancel()
    this.peerBoot = start.bootCount
    this.upSince = ports.clock.monotonic()
    this.failures = 0
    this.silentTicks = 0
    this.outlet.open(connection)
    const { bootCount } = start
    ports.log.info('linked to a broker', { node: this.to, port: this.options.port, bootCount })
    this.options.changed(this.to, 'out', true, this.peerBoot)
  }

  // The ends of a dial and of a link.

  private bad(fault: string): void {
    this.options.counters.badFrames.add(1)
    this.end(`it sent bytes that no broker writes: ${fault}`)
  }

  private end(why: string): void {
    if (this.state === 'up') this.lose(why)
    else this.fail(why)
  }

  private lose(why: string): void {
    const { counters, port, ports, settings } = this.options
    counters.lostLinks.add(1)
    ports.log.warn('the link to a broker is lost', { node: this.to, port, why })
    if (ports.clock.monotonic() - this.upSince >= settings.backoffMaxMs) this.backoff.reset()
    this.disconnect()
    this.pause()
    this.askedWhilePausing = true
    this.options.changed(this.to, 'out', false, this.peerBoot)
  }

  private fail(why: string): void {
    const { counters, port, ports } = this.options
    counters.failedDials.add(1)
    const told = this.failures++ === 0 ? 'warn' : 'debug'
    ports.log[told]('a broker cannot be reached', { node: this.to, port, why })
    this.disconnect()
    this.pause()
  }

  private disconnect(): void {
    const { dial, connection } = this
    this.dial = undefined
    this.connection = undefined
    this.timer?.cancel()
    dial?.abort()
    connection?.destroy()
    this.outlet.close()
  }

  private pause(): void {
    this.state = 'pausing'
    this.timer = this.options.ports.clock.after(this.backoff.next(), () => {
      if (this.askedWhilePausing || this.wanted) this.startDial()
      else this.state = 'idle'
    })
  }

  /** Called every `pingMs`. */
  tick(): void {
    if (this.state !== 'up') return
    const { pingMs, pongTimeoutMs } = this.options.settings
    if (this.silentTicks * pingMs >= pongTimeoutMs) {
      this.lose(`it has not answered in ${pongTimeoutMs} ms`)
      return
    }
    this.silentTicks++
    this.pings = (this.pings + 1) >>> 0
    this.outlet.beat(pingFrame(this.pings))
  }

  /** What waits on the link is still sent; nothing else is, from now on. */
  stop(): void {
    const { connection } = this
    if (this.state !== 'up' || connection === undefined) return this.cut()
    this.outlet.flush()
    connection.end()
    this.outlet.close()
    this.timer?.cancel()
    this.state = 'stopped'
    this.connection = undefined
  }

  /** Nothing is sent any more, from now on. */
  cut(): void {
    this.disconnect()
    this.state = 'stopped'
  }
}

/** For one that nobody wants. */
export function closeUnused(connection: Connection): void {
  connection.handle({ onData: () => {}, onClose: () => {} })
  connection.destroy()
}
