// A network in one process, on virtual time. Every host gets its own ports from it; addresses are names.
//
//   host a                         network                             host b
//   write ─> queue ─> [window] ─ link: latency, cuts, chunks as the seed cuts ─> unread ─> onData
//
// What the seed decides: how bytes are cut into chunks and how long they take; for packets also loss, doubling and
// overtaking; whether the far side of a destroyed connection sees an end or a reset. What is fixed: order within a
// connection, and a window, so that a receiver that pauses stalls its sender. What its holder decides: which links are cut,
// slow or lossy (links.ts), which machines are on, and which connections break, at which byte or at one end only.

import { assert } from '../../base/assert.ts'
import { type Prng, prng } from '../../base/prng.ts'
import type { Datagrams } from '../../ports/datagrams.ts'
import type { Http, HttpRequest, HttpResponse } from '../../ports/http.ts'
import type { Address, Listener, Streams } from '../../ports/streams.ts'
import type { SimClock } from './clock.ts'
import { Gate } from './gate.ts'
import { type LinkConditions, Links } from './links.ts'
import { type ConnectionCounts, SimConnection } from './sim-connection.ts'
import { type PacketCounts, simDatagrams } from './sim-datagrams.ts'
import { type Acceptor, type Caller, type DialCounts, dial } from './sim-dial.ts'

export interface NetworkOptions {
  readonly clock: SimClock
  readonly seed: number
  /** Latency is drawn evenly between the two. */
  readonly latencyMs?: readonly [least: number, greatest: number]
  /** Chances, 0 to 1, per packet. */
  readonly packetLoss?: number
  readonly packetDoubling?: number
  /** How long a connection's bytes may stay unacknowledged. Default 20,000 ms. */
  readonly streamTimeoutMs?: number
}

interface NetworkCounts extends ConnectionCounts, PacketCounts, DialCounts {}

export interface SimNetwork {
  /** `gate`: where the network enters the process; by default nothing ever holds it. */
  streams(host: string, gate?: Gate): Streams
  datagrams(host: string, gate?: Gate): Datagrams
  http(host: string, gate?: Gate): Http
  /** What a browser or a probe would do. */
  request(to: Address, request: HttpRequest): Promise<HttpResponse>

  /** What holds from one host to another from now on, in that direction; what is not named stays as it is. */
  change(from: string, to: string, conditions: Partial<LinkConditions>): void
  /** Nothing passes from one host to the other, in that direction. */
  cut(from: string, to: string): void
  heal(from: string, to: string): void
  /** All links as they were at first. Machines that are off stay off, and resets that are planned still come. */
  calm(): void

  /** Resets all connections of the host, as a machine that loses its power or a cable that is pulled and put back. */
  resetConnections(host: string): void
  /** Of the connections from one host to another, the one that carries the `bytes`-th byte from now on is reset behind it. */
  resetAfter(from: string, to: string, bytes: number): void
  /** The hosts that it has connections with, sorted. */
  peersOf(host: string): readonly string[]
  /** No connection is reset any more behind a byte that was asked for. */
  disarm(): void
  /**
   * The connections of the two hosts end at `gone`, with an error, and the other end is not told: what it writes gets lost.
   * How many there were.
   */
  halfOpen(gone: string, other: string): number
  /** Resets its connections and forgets its listeners, without telling any of its callbacks: the process was killed. */
  kill(host: string): void
  /** As kill, and nobody is told: the machine is off and answers nothing until it is on again. */
  powerOff(host: string): void
  powerOn(host: string): void
  /** What went wrong so far. */
  readonly counts: Readonly<NetworkCounts>
}

type Handler = (request: HttpRequest) => Promise<HttpResponse>

const FIRST_FREE_PORT = 20_000
const LATENCY_MS = [0.05, 0.5] as const
const STREAM_TIMEOUT_MS = 20_000
/** So that what goes wrong and how long things take are drawn apart. */
const TROUBLE = 0x7f4a_7c15

export function simNetwork(options: NetworkOptions): SimNetwork {
  return new Network(options)
}

class Network implements SimNetwork {
  readonly counts: NetworkCounts = {
    stalls: 0,
    timeouts: 0,
    resets: 0,
    cutShort: 0,
    halfOpen: 0,
    lostPackets: 0,
    doubledPackets: 0,
    overtakenPackets: 0,
    unansweredDials: 0,
  }
  private readonly clock: SimClock
  private readonly chance: Prng
  private readonly streamTimeoutMs: number
  private readonly links: Links
  private readonly open: Gate
  private readonly acceptors = new Map<string, Acceptor>()
  private readonly receivers = new Map<string, (packet: Uint8Array, from: Address) => void>()
  private readonly handlers = new Map<string, Handler>()
  private readonly connections = new Set<SimConnection>()
  private nextPort = FIRST_FREE_PORT

  constructor(options: NetworkOptions) {
    const { clock, seed, packetLoss = 0, packetDoubling = 0, latencyMs = LATENCY_MS } = options
    this.clock = clock
    this.chance = prng(seed)
    this.streamTimeoutMs = options.streamTimeoutMs ?? STREAM_TIMEOUT_MS
    this.open = new Gate(clock)
    const chances = { delay: this.chance, trouble: prng(seed ^ TROUBLE) }
    this.links = new Links(
      { clock, chances },
      {
        cut: false,
        latencyMs,
        stragglers: 0,
        stragglerMs: 0,
        bytesPerMs: Number.POSITIVE_INFINITY,
        packetLoss,
        packetDoubling,
      },
    )
  }

  streams(host: string, gate: Gate = this.open): Streams {
    const caller: Caller = {
      clock: this.clock,
      gate,
      counts: this.counts,
      acceptorAt: (to) => this.acceptors.get(show(to)),
      there: (to) => this.links.between(host, to),
      back: (to) => this.links.between(to, host),
      connect: (to, far) => this.connect(host, to, gate, far.gate),
    }
    return {
      listen: async (address, onConnection) =>
        this.bind(this.acceptors, address, { gate, accept: onConnection }),
      connect: (address, options) => dial(caller, address, options),
    }
  }

  http(_host: string, gate: Gate = this.open): Http {
    return {
      serve: async (address, handler) =>
        this.bind(this.handlers, address, (request: HttpRequest) => {
          return new Promise<HttpResponse>((resolve, reject) => {
            gate.pass(() => void handler(request).then(resolve, reject))
          })
        }),
    }
  }

  datagrams(_host: string, gate: Gate = this.open): Datagrams {
    return simDatagrams({
      clock: this.clock,
      gate,
      chance: this.chance,
      counts: this.counts,
      link: (from, to) => this.links.between(from, to),
      bind: (address, receiver) => this.bind(this.receivers, address, receiver),
      receiverAt: (to) => this.receivers.get(show(to)),
    })
  }

  private bind<T>(table: Map<string, T>, address: Address, receiver: T): Listener {
    const port = address.port === 0 ? this.nextPort++ : address.port
    const bound = { host: address.host, port }
    const key = show(bound)
    if (table.has(key)) {
      throw new Error(`cannot listen on ${key}: the port is in use (EADDRINUSE)`)
    }
    table.set(key, receiver)
    return {
      address: bound,
      close: async () => {
        if (table.get(key) === receiver) table.delete(key)
      },
    }
  }

  private connect(
    host: string,
    to: Address,
    gate: Gate,
    farGate: Gate,
  ): readonly [near: SimConnection, far: SimConnection] {
    const near = this.end(host, to, gate)
    const far = this.end(to.host, { host, port: this.nextPort++ }, farGate)
    near.join(far)
    far.join(near)
    return [near, far]
  }

  private end(host: string, remote: Address, gate: Gate): SimConnection {
    const connection = new SimConnection({
      host,
      remote,
      gate,
      clock: this.clock,
      chance: this.chance,
      there: this.links.between(host, remote.host),
      back: this.links.between(remote.host, host),
      timeoutMs: this.streamTimeoutMs,
      counts: this.counts,
      closed: () => this.connections.delete(connection),
    })
    this.connections.add(connection)
    return connection
  }

  async request(to: Address, request: HttpRequest): Promise<HttpResponse> {
    const handler = this.handlers.get(show(to))
    assert(handler !== undefined, `nothing serves HTTP on ${show(to)}`)
    return handler(request)
  }

  change(from: string, to: string, conditions: Partial<LinkConditions>): void {
    this.links.change(from, to, conditions)
  }

  cut(from: string, to: string): void {
    this.links.change(from, to, { cut: true })
  }

  heal(from: string, to: string): void {
    this.links.change(from, to, { cut: false })
  }

  calm(): void {
    this.links.calm()
  }

  resetConnections(host: string): void {
    for (const connection of this.endsAt(host)) connection.reset()
  }

  resetAfter(from: string, to: string, bytes: number): void {
    assert(bytes > 0, 'a connection is reset behind some byte')
    this.links.between(from, to).resetAfter(bytes)
  }

  peersOf(host: string): readonly string[] {
    return [...new Set(this.endsAt(host).map(({ remote }) => remote.host))].sort()
  }

  disarm(): void {
    this.links.disarm()
  }

  halfOpen(gone: string, other: string): number {
    const hit = this.endsAt(gone).filter(({ remote }) => remote.host === other)
    for (const connection of hit) connection.forsake()
    return hit.length
  }

  kill(host: string): void {
    for (const connection of this.endsAt(host)) connection.vanish()
    this.forget(host)
  }

  powerOff(host: string): void {
    this.links.machine(host).on = false
    for (const connection of this.endsAt(host)) connection.lose()
    this.forget(host)
  }

  powerOn(host: string): void {
    this.links.machine(host).on = true
  }

  private endsAt(host: string): readonly SimConnection[] {
    return [...this.connections].filter((connection) => connection.host === host)
  }

  private forget(host: string): void {
    for (const table of [this.acceptors, this.receivers, this.handlers]) {
      for (const key of table.keys()) if (key.startsWith(`${host}:`)) table.delete(key)
    }
  }
}

function show(address: Address): string {
  return `${address.host}:${address.port}`
}
