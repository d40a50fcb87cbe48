// The way to one peer: a connection that this broker dials when it first has something to send, and on which it alone
// speaks. The other side only greets, and answers pings.
//
//          send                 welcome
//   idle ────────> dialling ─────────────> up ──┐
//    ^                │ failed, refused,        │ closed, bad frame, no pong,
//    │                │ too late                │ the peer has started anew
//    │ nothing asked  v                         │
//    └──────────── pausing <────────────────────┘
//                     │ pause is over, and something was asked meanwhile, or a link was lost
//                     └──────> dialling
//
// What is sent while dialling is kept, up to a small bound, and goes when the link is up or with the dial. What is sent
// while pausing is dropped at once: it would be old by the time it arrived, and those who send know how to live with loss.
//
// A link may be half open: the peer's machine is gone and nobody has told us. So a ping goes out now and then, and something
// must come back. Where bytes arrive only slowly a ping waits behind them; so the peer also says that it gets bytes. The
// time is counted in ticks of our own: a pause of this process must not be taken for the peer's.

import { Backoff } from '../../base/backoff.ts'
import type { NodeId } from '../../model/ids.ts'
import { newestStart } from '../../model/starts.ts'
import type { Timer } from '../../ports/clock.ts'
import type { Connection } from '../../ports/streams.ts'
import { messageFrames, PEER_MESSAGE_BYTES_MAX, pingFrame } from '../../wire/peer/frame.ts'
import { helloFrame, PEER_VERSION, type Welcome } from '../../wire/peer/hello.ts'
import type { PeerFrame } from '../../wire/peer/read-frame.ts'
import type { PeerMessage } from '../../wire/peer/types.ts'
import { Frames } from './frames.ts'
import { Outbox } from './outbox.ts'
import type { Directory, Shared } from './types.ts'

export class Link {
  readonly to: NodeId
  private readonly shared: Shared
  private readonly directory: Directory
  private readonly onChange: (up: boolean) => void
  private readonly backoff: Backoff
  private state: 'idle' | 'dialling' | 'up' | 'pausing' | 'stopped' = 'idle'
  /** Of this dial or of this pause. */
  private timer: Timer | undefined
  private dial: AbortController | undefined
  private connection: Connection | undefined
  private readonly outbox = new Outbox()
  private askedWhilePausing = false
  private peerBoot = 0
  private upSince = 0
  private failures = 0
  private full = false
  private pings = 0
  /** Since something came back. */
  private silentTicks = 0

  constructor(to: NodeId, shared: Shared, directory: Directory, onChange: (up: boolean) => void) {
    this.to = to
    this.shared = shared
    this.directory = directory
    this.onChange = onChange
    const { backoffMs, backoffMaxMs } = shared.settings
    this.backoff = new Backoff(shared.ports.random, backoffMs, backoffMaxMs)
  }

  get up(): boolean {
    return this.state === 'up'
  }

  /** False: some were dropped. Calls nobody back. */
  send(messages: readonly PeerMessage[]): boolean {
    if (this.state === 'idle') this.startDial()
    if (this.state === 'pausing') this.askedWhilePausing = true
    if (this.state !== 'dialling' && this.state !== 'up') return this.drop(messages.length)
    const { frames, tooLarge } = messageFrames(messages)
    if (tooLarge > 0) this.tellTooLarge(tooLarge)
    const bytes = frames.reduce((sum, frame) => sum + frame.length, 0)
    if (!this.hasRoom(bytes)) return this.drop(messages.length)
    this.outbox.push(frames, bytes, messages.length - tooLarge)
    return tooLarge === 0 || this.drop(tooLarge)
  }

  private drop(messages: number): false {
    this.shared.counters.dropped.add(messages)
    return false
  }

  private tellTooLarge(messages: number): void {
    this.shared.ports.log.error('messages to a broker are dropped: no frame can hold them', {
      node: this.to,
      messages,
      bytesMax: PEER_MESSAGE_BYTES_MAX,
    })
  }

  private hasRoom(bytes: number): boolean {
    const { dialBytesMax, outboxBytesMax } = this.shared.settings
    const { waitingBytes } = this.outbox
    if (!this.up) return waitingBytes + bytes <= dialBytesMax
    if (waitingBytes + bytes <= outboxBytesMax) {
      // Only after a while is it news when there is no room again.
      if (waitingBytes < outboxBytesMax / 2) this.full = false
      return true
    }
    if (!this.full) {
      this.full = true
      this.shared.ports.log.warn('messages to a broker are dropped: it takes them too slowly', {
        node: this.to,
        waitingBytes,
      })
    }
    return false
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
    const { clock, streams } = this.shared.ports
    const { dialTimeoutMs } = this.shared.settings
    const dial = new AbortController()
    this.state = 'dialling'
    this.dial = dial
    this.askedWhilePausing = false
    const address = this.directory.addressOf(this.to)
    if (address === undefined) return this.fail('its address is not known')
    this.timer = clock.after(dialTimeoutMs, () => this.fail(`no welcome in ${dialTimeoutMs} ms`))
    streams.connect(address, { timeoutMs: dialTimeoutMs, signal: dial.signal }).then(
      (connection) => {
        if (this.dial === dial) this.greet(connection)
        else closeUnused(connection)
      },
      (error: unknown) => {
        if (this.dial === dial) this.fail(error instanceof Error ? error.message : String(error))
      },
    )
  }

  private greet(connection: Connection): void {
    const { identity } = this.shared
    const frames = new Frames(identity.nodeId)
    this.connection = connection
    this.shared.opened(connection)
    connection.handle({
      onData: (chunk) => this.onData(connection, frames, chunk),
      onDrain: () => {
        if (this.connection === connection) this.outbox.drained()
      },
      onClose: (error) => {
        this.shared.closed(connection)
        if (this.connection === connection) this.end(error?.message ?? 'the other side closed it')
      },
    })
    connection.write([helloFrame({ version: PEER_VERSION, ...identity, to: this.to })])
  }

  private onData(connection: Connection, frames: Frames, chunk: Uint8Array): void {
    const { frames: whole, fault } = frames.cut(chunk)
    for (const frame of whole) {
      if (this.connection !== connection) return
      this.onFrame(connection, frame)
    }
    if (fault !== undefined && this.connection === connection) this.bad(fault)
  }

  private onFrame(connection: Connection, frame: PeerFrame): void {
    if (this.state === 'up') {
      if (frame.kind !== 'pong') this.bad(`a ${frame.kind} came on a link that is up`)
      else this.silentTicks = 0
    } else if (frame.kind === 'welcome') this.onWelcome(connection, frame.welcome)
    else if (frame.kind === 'refusal') {
      const { reason, text } = frame.refusal
      this.end(`it refuses: ${text} (${reason})`)
      if (reason === 'old-boot') this.shared.refusedAsOld(this.to)
    } else this.bad(`a ${frame.kind} came instead of a welcome`)
  }

  private onWelcome(connection: Connection, welcome: Welcome): void {
    const { identity, ports } = this.shared
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
    this.full = false
    this.silentTicks = 0
    this.outbox.open(connection, this.shared.counters.sentBytes)
    ports.log.info('linked to a broker', { node: this.to, bootCount: start.bootCount })
    this.onChange(true)
  }

  // The ends of a dial and of a link.

  private bad(fault: string): void {
    this.shared.counters.badFrames.add(1)
    this.end(`it sent bytes that no broker writes: ${fault}`)
  }

  private end(why: string): void {
    if (this.state === 'up') this.lose(why)
    else this.fail(why)
  }

  private lose(why: string): void {
    const { counters, ports, settings } = this.shared
    counters.lostLinks.add(1)
    ports.log.warn('the link to a broker is lost', { node: this.to, why })
    if (ports.clock.monotonic() - this.upSince >= settings.backoffMaxMs) this.backoff.reset()
    this.disconnect()
    this.pause()
    this.askedWhilePausing = true
    this.onChange(false)
  }

  private fail(why: string): void {
    const { counters, ports } = this.shared
    counters.failedDials.add(1)
    const told = this.failures++ === 0 ? 'warn' : 'debug'
    ports.log[told]('a broker cannot be reached', { node: this.to, why })
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
    this.shared.counters.dropped.add(this.outbox.close())
  }

  private pause(): void {
    this.state = 'pausing'
    this.timer = this.shared.ports.clock.after(this.backoff.next(), () => {
      if (this.askedWhilePausing) this.startDial()
      else this.state = 'idle'
    })
  }

  /** Called every `pingMs`. */
  tick(): void {
    if (this.state !== 'up') return
    const { pingMs, pongTimeoutMs } = this.shared.settings
    if (this.silentTicks * pingMs >= pongTimeoutMs) {
      this.lose(`it has not answered in ${pongTimeoutMs} ms`)
      return
    }
    this.silentTicks++
    this.pings = (this.pings + 1) >>> 0
    const ping = pingFrame(this.pings)
    this.outbox.push([ping], ping.length, 0)
  }

  /** What waits on the link is still sent; nothing else is, from now on. */
  stop(): void {
    const { connection } = this
    if (this.state !== 'up' || connection === undefined) return this.cut()
    this.outbox.flush()
    connection.end()
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

function closeUnused(connection: Connection): void {
  connection.handle({ onData: () => {}, onClose: () => {} })
  connection.destroy()
}
