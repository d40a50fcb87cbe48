// The native door: listens, keeps the connections, and looks now and then for those that have lasted too long in a
// state that must end.
//
//   listen ──> the port is ours, whoever connects is turned away ── open ──> clients are served ── stop ──> closed
//
// It listens long before there is a broker to serve: a start that finds the port taken must not have founded a cluster.

import type { Broker } from '../../broker/broker.ts'
import type { Clock, Timer } from '../../ports/clock.ts'
import type { Metrics } from '../../ports/metrics.ts'
import type { Address, Connection, Listener, Streams as Network } from '../../ports/streams.ts'
import { NativeConnection } from './connection.ts'
import type { NativeDoorSettings } from './settings.ts'

export interface NativeDoorPorts {
  readonly streams: Network
  readonly clock: Clock
  readonly metrics: Metrics
}

export class NativeDoor {
  private readonly ports: NativeDoorPorts
  private readonly settings: NativeDoorSettings
  private broker: Broker | undefined
  private readonly connections = new Set<NativeConnection>()
  private listener: Listener | undefined
  private timer: Timer | undefined
  private stopping = false
  private emptied: (() => void) | undefined

  constructor(ports: NativeDoorPorts, settings: NativeDoorSettings) {
    this.ports = ports
    this.settings = settings
    ports.metrics.gauge(
      'eastguard_native_connections',
      'Clients connected to the native door',
      () => this.connections.size,
    )
  }

  /** Where it listens; port 0 chooses a free one. Rejects with an Error that names the address. */
  async listen(address: Address): Promise<Address> {
    this.listener = await this.ports.streams.listen(address, (connection) =>
      this.accept(connection),
    )
    return this.listener.address
  }

  /** From here on clients are served. */
  open(broker: Broker): void {
    this.broker = broker
    this.watch()
  }

  private accept(connection: Connection): void {
    const { broker } = this
    const full = this.connections.size >= this.settings.connectionsMax
    if (broker === undefined || this.stopping || full) {
      connection.handle({ onData: () => {}, onClose: () => {} })
      connection.destroy()
      return
    }
    this.connections.add(
      new NativeConnection(broker, this.settings, connection, (closed) => {
        this.connections.delete(closed)
        if (this.connections.size === 0) this.emptied?.()
      }),
    )
  }

  private watch(): void {
    const { helloTimeoutMs, frameTimeoutMs, answerTimeoutMs } = this.settings
    const shortest = Math.min(helloTimeoutMs, frameTimeoutMs, answerTimeoutMs)
    const period = Math.min(1000, Math.max(5, shortest / 4))
    const { clock } = this.ports
    this.timer = clock.after(period, () => {
      const now = clock.monotonic()
      for (const connection of this.connections) connection.check(now)
      this.watch()
    })
  }

  /** Takes no more connections and requests; answers those in flight, then closes; after `withinMs` cuts off the rest. */
  async stop(withinMs: number): Promise<void> {
    this.stopping = true
    const { listener } = this
    this.listener = undefined
    await listener?.close()
    for (const connection of Array.from(this.connections)) connection.drain()
    if (this.connections.size > 0) await this.empty(withinMs)
    this.timer?.cancel()
  }

  private empty(withinMs: number): Promise<void> {
    return new Promise((resolve) => {
      const timer = this.ports.clock.after(withinMs, () => {
        for (const connection of Array.from(this.connections)) connection.destroy()
      })
      this.emptied = () => {
        timer.cancel()
        resolve()
      }
    })
  }
}
