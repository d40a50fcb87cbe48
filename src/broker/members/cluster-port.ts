// The cluster port: UDP and TCP under one number, opened once and before the broker belongs to any cluster. Packets are
// Members', and so are the connections that begin with a sync; those that begin otherwise are for the links between brokers,
// once there are such.
//
//   UDP  packet ────────────────────────────────────> onPacket
//   TCP  connection ── first frame a sync ──────────> onSync, answered, closed
//                   └─ any other ──> who listens on `streams` (broker/peers), or closed while nobody does
//
// With a cluster key every connection is sealed (broker/seal), and what is said here is true of what goes on inside. Without
// one, connections that begin sealed are refused.
//
// When port 0 was asked for, TCP chooses the number, since connections need it more; UDP takes the same, and if another
// process has that one the choice is made again.

import type { Clock } from '../../ports/clock.ts'
import type { DatagramSocket, Datagrams } from '../../ports/datagrams.ts'
import type { Address, Connection, Listener, Streams } from '../../ports/streams.ts'
import { FRAME } from '../../wire/peer/frame.ts'
import { refusalFrame } from '../../wire/peer/hello.ts'
import type { ClusterKeys } from '../seal/cluster-keys.ts'
import { type KeyRefusals, NO_KEY } from '../seal/refusals.ts'
import { sealedStreams } from '../seal/sealed-streams.ts'
import { Arrival } from './arrival.ts'
import { SyncReader, syncFrame } from './sync-frames.ts'

const CHOICES_MAX = 10
/** Connections of which it is not known yet what they are for; more are closed at once. */
const ARRIVALS_MAX = 256
/** Whoever connects speaks first, and soon. */
const ARRIVAL_MS = 2000
/** Syncs that are answered at a time; more are closed, and asked for again by their askers. */
const SYNCS_MAX = 32

export interface ClusterPortOptions {
  readonly ports: {
    readonly streams: Streams
    readonly datagrams: Datagrams
    readonly clock: Clock
  }
  /** Undefined: connections are in the clear. */
  readonly clusterKeys: ClusterKeys | undefined
  readonly keyRefusals: KeyRefusals
  /** For a whole sync, from its first byte. */
  readonly syncTimeoutMs: number
  onPacket(packet: Uint8Array, from: Address): void
  /** The answer; undefined when the request is malformed or cannot be answered now. */
  onSync(request: Uint8Array): Uint8Array | undefined
}

/** Rejects with an Error that names the address. */
export async function openClusterPort(
  options: ClusterPortOptions,
  address: Address,
): Promise<ClusterPort> {
  for (let choice = 1; ; choice++) {
    const port = new ClusterPort(options)
    try {
      await port.bind(address)
      return port
    } catch (error) {
      await port.close()
      if (address.port !== 0 || choice === CHOICES_MAX) throw error
    }
  }
}

export class ClusterPort {
  /** For broker/peers: connections to this port come from here. It has one listener at a time. */
  readonly streams: Streams
  private readonly options: ClusterPortOptions
  /** Sealed, if they are to be. */
  private readonly connections: Streams
  private listener: Listener | undefined
  private socket: DatagramSocket | undefined
  private readonly arrivals = new Set<Arrival>()
  /** And those that are being told that there is no key here. */
  private readonly syncs = new Set<Connection>()
  private onLink: ((connection: Connection) => void) | undefined
  private closed = false

  constructor(options: ClusterPortOptions) {
    const { ports, clusterKeys, keyRefusals } = options
    this.options = options
    this.connections =
      clusterKeys === undefined
        ? ports.streams
        : sealedStreams(ports.streams, clusterKeys, keyRefusals)
    this.streams = {
      listen: async (_, onConnection) => this.link(onConnection),
      connect: (to, how) => this.connections.connect(to, how),
    }
  }

  async bind(address: Address): Promise<void> {
    const { datagrams } = this.options.ports
    this.listener = await this.connections.listen(address, (connection) => this.accept(connection))
    this.socket = await datagrams.bind(this.listener.address, (packet, from) => {
      if (!this.closed) this.options.onPacket(packet, from)
    })
  }

  get address(): Address | undefined {
    return this.socket?.address
  }

  send(packet: Uint8Array, to: Address): void {
    this.socket?.send(packet, to)
  }

  private link(onConnection: (connection: Connection) => void): Listener {
    const { address } = this
    if (address === undefined || this.onLink !== undefined) {
      throw new Error('cannot listen: the cluster port is closed, or has its listener already')
    }
    this.onLink = onConnection
    return {
      address,
      close: async () => {
        if (this.onLink === onConnection) this.onLink = undefined
      },
    }
  }

  private accept(connection: Connection): void {
    const timer = this.options.ports.clock.after(ARRIVAL_MS, () => arrival.destroy())
    const arrival = new Arrival(connection, {
      known: (one, kind) => this.handOn(one, kind),
      left: (one) => {
        timer.cancel()
        this.arrivals.delete(one)
      },
    })
    this.arrivals.add(arrival)
    if (this.closed || this.arrivals.size > ARRIVALS_MAX) arrival.destroy()
  }

  private handOn(connection: Connection, kind: number): void {
    const mine = kind === FRAME.SYNC || kind === FRAME.KEY_HELLO
    if (mine && this.syncs.size < SYNCS_MAX) this.serve(connection, kind)
    else if (mine || this.onLink === undefined) connection.destroy()
    else this.onLink(connection)
  }

  /** What is asked comes in one frame, and so does the answer. */
  private serve(connection: Connection, kind: number): void {
    const { ports, syncTimeoutMs } = this.options
    const reader = new SyncReader(kind)
    const timer = ports.clock.after(syncTimeoutMs, () => connection.destroy())
    let answered = false
    this.syncs.add(connection)
    connection.handle({
      onData: (chunk) => {
        const found = answered ? undefined : reader.read(chunk)
        if (found === undefined) return
        answered = true
        const answer =
          'fault' in found ? undefined : this.answer(kind, found.bytes, connection.remote)
        if (answer === undefined) return connection.destroy()
        connection.write([answer])
        connection.end()
      },
      onClose: () => {
        timer.cancel()
        this.syncs.delete(connection)
      },
    })
  }

  private answer(kind: number, asked: Uint8Array, from: Address): Uint8Array | undefined {
    const { options } = this
    if (kind === FRAME.KEY_HELLO) {
      options.keyRefusals.tell(from, NO_KEY)
      return refusalFrame(NO_KEY)
    }
    const answer = options.onSync(asked)
    return answer && syncFrame(FRAME.SYNC_ANSWER, answer)
  }

  /** What was handed on lives on. */
  async close(): Promise<void> {
    this.closed = true
    this.onLink = undefined
    for (const one of [...this.arrivals, ...this.syncs]) one.destroy()
    await Promise.all([this.listener?.close(), this.socket?.close()])
    this.socket = undefined
  }
}
