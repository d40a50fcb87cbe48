// The native door: listens, keeps the connections, and looks now and then for those that have lasted too long in a
// state that must end.

import type { Broker } from '../../broker/broker.ts'
import type { Timer } from '../../ports/clock.ts'
import type { Address, Connection, Listener, Streams as Network } from '../../ports/streams.ts'
import { NativeConnection } from './connection.ts'
import type { NativeDoorSettings } from './settings.ts'

export class NativeDoor {
  private readonly broker: Broker
  private readonly settings: NativeDoorSettings
  private readonly connections = new Set<NativeConnection>()
  private listener: Listener | undefined
  private timer: Timer | undefined
  private stopping = false
  private emptied: (() => void) | undefined

  constructor(broker: Broker, settings: NativeDoorSettings) {
    this.broker = broker
    this.settings = settings
    broker.parts.ports.metrics.gauge(
      'eastguard_native_connections',
      'Clients connected to the native door',
      () => this.connections.size,
    )
  }

  /** Where it listens; port 0 chooses a free one. Rejects with an Error that names the address. */
  async listen(network: Network, address: Address): Promise<Address> {
    this.listener = await network.listen(address, (connection) => this.accept(connection))
    this.watch()
    return this.listener.address
  }

  private accept(connection: Connection): void {
    if (this.stopping || this.connections.size >= this.settings.connectionsMax) {
      connection.handle({ onData: () => {}, onClose: () => {} })
      connection.destroy()
      return
    }
    this.connections.add(
      new NativeConnection(this.broker, this.settings, connection, (closed) => {
        this.connections.delete(closed)
        if (this.connections.size === 0) this.emptied?.()
      }),
    )
  }

  private watch(): void {
    const { helloTimeoutMs, frameTimeoutMs, answerTimeoutMs } = this.settings
    const shortest = Math.min(helloTimeoutMs, frameTimeoutMs, answerTimeoutMs)
    const period = Math.min(1000, Math.max(5, shortest / 4))
    const { clock } = this.broker.parts.ports
    this.timer = clock.after(period, () => {
      const now = clock.monotonic()
      for (const connection of this.connections) connection.check(now)
      this.watch()
    })
  }

  /** Takes no more connections and requests; answers those in flight, then closes; after `withinMs` cuts off the rest. */
  async stop(withinMs: number): Promise<void> {
    this.stopping = true
    await this.listener?.close()
    for (const connection of Array.from(this.connections)) connection.drain()
    if (this.connections.size > 0) await this.empty(withinMs)
    this.timer?.cancel()
  }

  private empty(withinMs: number): Promise<void> {
    return new Promise((resolve) => {
      const timer = this.broker.parts.ports.clock.after(withinMs, () => {
        for (const connection of Array.from(this.connections)) connection.destroy()
      })
      this.emptied = () => {
        timer.cancel()
        resolve()
      }
    })
  }
}
