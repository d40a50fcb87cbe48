// The other brokers, as far as messages can reach them: one link to each that this broker has something for, and one
// connection from each that has something for this one. A pair of brokers so has up to two connections, and on each only
// its dialer sends messages: neither side has to decide whose connection stays when both dial at once.
//
//   this broker ── link ──────────> peer          frames of messages, pings;  back: welcome, pongs
//   this broker <── inbound ─────── peer          the same the other way round
//
// What is promised: messages that arrive come whole, in the order of their sending as long as the link holds, from the node that they say.
// What is not: that they arrive. Whoever sends repeats, as Raft does. Nothing here blocks, and a peer that is slow, gone
// or mad disturbs no other.

import { assert } from '../../base/assert.ts'
import type { NodeId } from '../../model/ids.ts'
import { inPast, newestStart, type Starts } from '../../model/starts.ts'
import type { Timer } from '../../ports/clock.ts'
import type { Address, Connection, Listener } from '../../ports/streams.ts'
import { type Hello, type HelloRefusal, PEER_VERSION } from '../../wire/peer/hello.ts'
import type { PeerMessage } from '../../wire/peer/types.ts'
import { Inbound, type InboundOwner } from './inbound.ts'
import { Link } from './link.ts'
import { makeCounters, type PeersOptions, type Shared } from './types.ts'

/** What waits on links when the broker stops gets so long. */
const STOP_MS = 1000

export type LinkListener = (node: NodeId, up: boolean) => void

export class Peers {
  private readonly options: PeersOptions
  private readonly shared: Shared
  private readonly owner: InboundOwner
  private readonly links = new Map<NodeId, Link>()
  private readonly listeners: LinkListener[] = []
  private readonly inbounds = new Set<Inbound>()
  private readonly inboundOf = new Map<NodeId, Inbound>()
  /** Both kinds, until each has told its end. */
  private readonly open = new Set<Connection>()
  private readonly listening: Listener[] = []
  private watchTimer: Timer | undefined
  private stopping: Promise<void> | undefined
  private emptied: (() => void) | undefined
  /** As an older copy: it is silent from then on. */
  private refused = false

  constructor(options: PeersOptions) {
    const { ports, identity, settings } = options
    assert(settings.backoffMs <= settings.backoffMaxMs, 'a pause is no longer than the longest')
    assert(settings.pingMs <= settings.pongTimeoutMs, 'a ping is not late before the next is due')
    this.options = options
    this.shared = {
      ports,
      identity,
      settings,
      counters: makeCounters(ports.metrics),
      opened: (connection) => this.opened(connection),
      closed: (connection) => this.closed(connection),
      isOld: (node, starts) => this.isOld(node, starts),
      remember: (node, start) => options.memory.remember(node, start),
      refusedAsOld: (by) => this.refusedAsOld(by),
    }
    this.owner = {
      refusalOf: (hello) => this.refusalOf(hello),
      greeted: (inbound, hello) => this.greeted(inbound, hello),
      receive: (from, messages) => options.receive(from, messages),
      gone: (inbound) => this.gone(inbound),
    }
    ports.metrics.gauge('eastguard_peer_links', 'Links to other brokers that are up', () =>
      this.countLinks(),
    )
    ports.metrics.gauge(
      'eastguard_peer_connections',
      'Connections from other brokers',
      () => this.inbounds.size,
    )
  }

  /** The listener knows the port that was chosen for 0; `stop` closes it. Rejects with an Error that names the address. */
  async listen(address: Address): Promise<Listener> {
    const { streams } = this.options.ports
    const listener = await streams.listen(address, (connection) => this.accept(connection))
    this.listening.push(listener)
    if (this.stopping !== undefined) await listener.close()
    return listener
  }

  /**
   * Queues the messages, all in one frame if they are not many MiB, and dials if there is no link. False: some were dropped,
   * because there is no link or no room on it. Calls nobody back before it returns.
   */
  send(to: NodeId, messages: readonly PeerMessage[]): boolean {
    assert(to !== this.options.identity.nodeId, 'a broker sends itself nothing')
    if (messages.length === 0) return true
    if (this.stopping !== undefined || this.refused) {
      this.shared.counters.dropped.add(messages.length)
      return false
    }
    return this.linkTo(to).send(messages)
  }

  linked(to: NodeId): boolean {
    return this.links.get(to)?.up ?? false
  }

  /** `listener` is told when a link to a node comes up and when it is lost; not of those that `stop` ends. */
  onLink(listener: LinkListener): void {
    this.listeners.push(listener)
  }

  /** What waits on links is still sent, for a moment; nothing is received any more. */
  stop(): Promise<void> {
    this.stopping ??= this.stopAll()
    return this.stopping
  }

  private async stopAll(): Promise<void> {
    for (const link of this.links.values()) link.stop()
    for (const inbound of this.inbounds) inbound.stop()
    await Promise.all(this.listening.map((listener) => listener.close()))
    if (this.open.size > 0) await this.allClosed()
    this.watchTimer?.cancel()
  }

  private allClosed(): Promise<void> {
    return new Promise((resolve) => {
      const timer = this.options.ports.clock.after(STOP_MS, () => {
        for (const connection of Array.from(this.open)) connection.destroy()
      })
      this.emptied = () => {
        timer.cancel()
        resolve()
      }
    })
  }

  // Links.

  private linkTo(to: NodeId): Link {
    let link = this.links.get(to)
    if (link === undefined) {
      link = new Link(to, this.shared, this.options.directory, (up) => {
        for (const listener of this.listeners) listener(to, up)
      })
      this.links.set(to, link)
    }
    return link
  }

  private countLinks(): number {
    let up = 0
    for (const link of this.links.values()) if (link.up) up++
    return up
  }

  // Connections from peers.

  private accept(connection: Connection): void {
    const { connectionsMax } = this.options.settings
    if (this.stopping !== undefined || this.refused || this.inbounds.size >= connectionsMax) {
      connection.handle({ onData: () => {}, onClose: () => {} })
      connection.destroy()
      return
    }
    this.inbounds.add(new Inbound(connection, this.shared, this.owner))
  }

  private greeted(inbound: Inbound, { nodeId, starts }: Hello): void {
    // What still comes on the older one would mix with what comes on this one.
    this.inboundOf.get(nodeId)?.close()
    this.inboundOf.set(nodeId, inbound)
    this.links.get(nodeId)?.heardFrom(newestStart(starts).bootCount)
  }

  private refusalOf(hello: Hello): HelloRefusal | undefined {
    const { clusterId, nodeId } = this.options.identity
    if (hello.version !== PEER_VERSION) {
      const text = `version ${hello.version} is spoken, here only ${PEER_VERSION} is`
      return { reason: 'version', text }
    }
    if (hello.clusterId !== clusterId) {
      return { reason: 'cluster', text: `it belongs to cluster ${hello.clusterId}` }
    }
    if (hello.nodeId === nodeId) {
      return { reason: 'own-node', text: `it has this broker's own node id ${nodeId}` }
    }
    if (hello.to !== nodeId) {
      return { reason: 'wrong-node', text: `node ${hello.to} is meant, this is ${nodeId}` }
    }
    if (this.isOld(hello.nodeId, hello.starts)) {
      const { bootCount } = newestStart(hello.starts)
      const text = `after its start ${bootCount}, or instead of it, another was met: it is an older copy`
      return { reason: 'old-boot', text }
    }
    return undefined
  }

  /** A machine may have been copied, or its disk restored: what has forgotten a start has forgotten what was promised in it. */
  private isOld(node: NodeId, starts: Starts): boolean {
    const met = this.options.memory.met(node)
    return met !== undefined && !inPast(met, starts)
  }

  private refusedAsOld(by: NodeId): void {
    if (this.stopping !== undefined || this.refused) return
    this.refused = true
    for (const link of this.links.values()) link.cut()
    for (const inbound of this.inbounds) inbound.close()
    this.options.onRefusedAsOld(by)
  }

  private gone(inbound: Inbound): void {
    this.inbounds.delete(inbound)
    const { from } = inbound
    if (from !== undefined && this.inboundOf.get(from) === inbound) this.inboundOf.delete(from)
  }

  // The watch over all that is open.

  private opened(connection: Connection): void {
    this.open.add(connection)
    this.watch()
  }

  private closed(connection: Connection): void {
    this.open.delete(connection)
    if (this.open.size === 0) this.emptied?.()
  }

  private watch(): void {
    if (this.watchTimer !== undefined || this.open.size === 0) return
    this.watchTimer = this.options.ports.clock.after(this.options.settings.pingMs, () => {
      this.watchTimer = undefined
      for (const link of this.links.values()) link.tick()
      for (const inbound of this.inbounds) inbound.tick()
      this.watch()
    })
  }
}
