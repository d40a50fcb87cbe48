// A network in one process, on virtual time. Every host gets its own ports from it; addresses are names.
//
//   host a                         network                             host b
//   write ─> queue ─> [window] ─ latency, chunks as the seed cuts ─> unread ─> onData
//
// What the seed decides: how bytes are cut into chunks and how long they take; for packets also loss, doubling and
// overtaking; whether the far side of a destroyed connection sees an end or a reset. What is fixed: order within a
// connection, and a window, so that a receiver that pauses stalls its sender.

import { assert } from '../../base/assert.ts'
import { type Prng, prng } from '../../base/prng.ts'
import type { DatagramSocket, Datagrams } from '../../ports/datagrams.ts'
import type { Http, HttpRequest, HttpResponse } from '../../ports/http.ts'
import type { Address, Connection, ConnectOptions, Listener, Streams } from '../../ports/streams.ts'
import type { SimClock } from './clock.ts'
import { SimConnection } from './sim-connection.ts'

export interface NetworkOptions {
  readonly clock: SimClock
  readonly seed: number
  /** Latency is drawn evenly between the two. */
  readonly latencyMs?: readonly [least: number, greatest: number]
  /** Chances, 0 to 1, per packet. */
  readonly packetLoss?: number
  readonly packetDoubling?: number
}

export interface SimNetwork {
  streams(host: string): Streams
  datagrams(host: string): Datagrams
  http(host: string): Http
  /** What a browser or a probe would do. */
  request(to: Address, request: HttpRequest): Promise<HttpResponse>
  /** Resets all connections of the host, as a machine that loses its power or a cable that is pulled and put back. */
  resetConnections(host: string): void
  /** Resets its connections and forgets its listeners, without telling any of its callbacks: the process was killed. */
  kill(host: string): void
}

type Accept = (connection: Connection) => void
type OnPacket = (packet: Uint8Array, from: Address) => void
type Handler = (request: HttpRequest) => Promise<HttpResponse>

const FIRST_FREE_PORT = 20_000
const LATENCY_MS = [0.05, 0.5] as const

export function simNetwork(options: NetworkOptions): SimNetwork {
  return new Network(options)
}

class Network implements SimNetwork {
  private readonly clock: SimClock
  private readonly chance: Prng
  private readonly latencyMs: readonly [number, number]
  private readonly packetLoss: number
  private readonly packetDoubling: number
  private readonly acceptors = new Map<string, Accept>()
  private readonly receivers = new Map<string, OnPacket>()
  private readonly handlers = new Map<string, Handler>()
  private readonly connections = new Set<SimConnection>()
  private nextPort = FIRST_FREE_PORT

  constructor(options: NetworkOptions) {
    this.clock = options.clock
    this.chance = prng(options.seed)
    this.latencyMs = options.latencyMs ?? LATENCY_MS
    this.packetLoss = options.packetLoss ?? 0
    this.packetDoubling = options.packetDoubling ?? 0
  }

  private latency(): number {
    const [least, greatest] = this.latencyMs
    return least + this.chance.float() * (greatest - least)
  }

  streams(host: string): Streams {
    return {
      listen: async (address, onConnection) => this.bind(this.acceptors, address, onConnection),
      connect: (address, options) => this.connect(host, address, options),
    }
  }

  http(): Http {
    return { serve: async (address, handler) => this.bind(this.handlers, address, handler) }
  }

  datagrams(): Datagrams {
    return {
      bind: async (address, onPacket): Promise<DatagramSocket> => {
        const bound = this.bind(this.receivers, address, onPacket)
        let open = true
        return {
          address: bound.address,
          send: (packet, to) => {
            if (open) this.send(packet, bound.address, to)
          },
          close: () => {
            open = false
            return bound.close()
          },
        }
      },
    }
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

  private send(packet: Uint8Array, from: Address, to: Address): void {
    if (this.chance.float() < this.packetLoss) return
    const copies = this.chance.float() < this.packetDoubling ? 2 : 1
    for (let i = 0; i < copies; i++) {
      // A receiver may change what it gets, so each copy is its own.
      const copy = packet.slice()
      this.clock.after(this.latency(), () => this.receivers.get(show(to))?.(copy, from))
    }
  }

  private connect(host: string, to: Address, options: ConnectOptions): Promise<Connection> {
    const doing = `cannot connect to ${show(to)}`
    const { signal, timeoutMs } = options
    return new Promise((resolve, reject) => {
      if (signal?.aborted === true) return reject(new Error(`${doing}: aborted`))
      let settled = false
      const settle = (): boolean => {
        if (settled) return false
        settled = true
        timer.cancel()
        signal?.removeEventListener('abort', abort)
        return true
      }
      const fail = (why: string): void => {
        if (settle()) reject(new Error(`${doing}: ${why}`))
      }
      const abort = (): void => fail('aborted')
      const timer = this.clock.after(timeoutMs, () => fail(`no answer within ${timeoutMs} ms`))
      signal?.addEventListener('abort', abort, { once: true })
      this.clock.after(this.latency(), () => {
        const accept = this.acceptors.get(show(to))
        if (accept === undefined) {
          fail('connection refused: nothing listens there (ECONNREFUSED)')
          return
        }
        if (settled) return
        const near = this.open(host, to)
        const far = this.open(to.host, { host, port: this.nextPort++ })
        near.join(far)
        far.join(near)
        accept(far)
        this.clock.after(this.latency(), () => {
          if (settle()) resolve(near)
          else near.destroy()
        })
      })
    })
  }

  private open(host: string, remote: Address): SimConnection {
    const connection = new SimConnection({
      host,
      remote,
      clock: this.clock,
      chance: this.chance,
      latency: () => this.latency(),
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

  resetConnections(host: string): void {
    for (const connection of this.connections) if (connection.host === host) connection.reset()
  }

  kill(host: string): void {
    for (const connection of this.connections) if (connection.host === host) connection.vanish()
    for (const table of [this.acceptors, this.receivers, this.handlers]) {
      for (const key of table.keys()) if (key.startsWith(`${host}:`)) table.delete(key)
    }
  }
}

function show(address: Address): string {
  return `${address.host}:${address.port}`
}
