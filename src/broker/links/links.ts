// The other brokers, as far as one port reaches them: one link to each that this broker has something for, and one connection
// from each that has something for this one. A pair of brokers so has up to two connections, and neither side has to decide
// whose stays when both dial at once.
//
//   this broker ── link ──────────> peer          messages, pings;  back: welcome, pongs, and answers if the protocol has such
//   this broker <── inbound ─────── peer          the same the other way round
//
// What is promised: messages that arrive come whole, in the order of their sending as long as the connection holds, from the
// node that they say. Nothing here blocks, and a peer that is slow, gone or mad disturbs no other. What goes out, when, and
// what is dropped, is up to the outlets (types.ts).

import { assert } from '../../base/assert.ts'
import { Seldom } from '../../base/seldom.ts'
import type { NodeId } from '../../model/ids.ts'
import { inPast, newestStart, type Starts } from '../../model/starts.ts'
import type { Timer } from '../../ports/clock.ts'
import type { Address, Connection, Listener } from '../../ports/streams.ts'
import type { Hello, HelloRefusal } from '../../wire/peer/hello.ts'
import { Inbound, type InboundOwner } from './inbound.ts'
import { closeUnused, Link, type LinkState } from './link.ts'
import type { LinksOptions, Shared } from './types.ts'

/** What waits on links when the broker stops gets so long. */
const STOP_MS = 1000
/** A connection that is not wanted is logged once in so long for each address, or broker and reason; of so many of these. */
const UNWANTED_TOLD_MS = 60_000
const UNWANTED_MAX = 256

export class Links<M> {
  private readonly options: LinksOptions<M>
  private readonly shared: Shared<M>
  private readonly owner: InboundOwner<M>
  private readonly links = new Map<NodeId, Link<M>>()
  private readonly inbounds = new Set<Inbound<M>>()
  private readonly inboundOf = new Map<NodeId, Inbound<M>>()
  /** Both kinds, until each has told its end. */
  private readonly open = new Set<Connection>()
  private readonly listening: Listener[] = []
  private watchTimer: Timer | undefined
  private stopping: Promise<void> | undefined
  private emptied: (() => void) | undefined
  /** As an older copy: it is silent from then on. */
  private refused = false

  constructor(options: LinksOptions<M>) {
    const { settings } = options
    assert(settings.backoffMs <= settings.backoffMaxMs, 'a pause is no longer than the longest')
    assert(settings.pingMs <= settings.pongTimeoutMs, 'a ping is not late before the next is due')
    this.options = options
    this.shared = {
      options,
      unwanted: new Seldom(UNWANTED_TOLD_MS, UNWANTED_MAX),
      opened: (connection) => this.opened(connection),
      closed: (connection) => this.closed(connection),
      isOld: (node, starts) => this.isOld(node, starts),
      remember: (node, start) => options.memory.remember(node, start),
      refusedAsOld: (by) => this.refusedAsOld(by),
    }
    this.owner = {
      refusalOf: (hello) => this.refusalOf(hello),
      greeted: (inbound, hello) => this.greeted(inbound, hello),
      gone: (inbound) => this.gone(inbound),
    }
  }

  /** The listener knows the port that was chosen for 0; `stop` closes it. Rejects with an Error that names the address. */
  async listen(address: Address): Promise<Listener> {
    const { streams } = this.options.ports
    const listener = await streams.listen(address, (connection) => this.accept(connection))
    this.listening.push(listener)
    if (this.stopping !== undefined) await listener.close()
    return listener
  }

  /** There is something to send: dials if there is no link. Calls nobody back. */
  ask(to: NodeId): LinkState {
    return this.silent ? 'away' : this.linkTo(to).ask()
  }

  /** Whether the node is to be dialled again and again, asked or not. */
  want(to: NodeId, wanted: boolean): void {
    if (!this.silent) this.linkTo(to).want(wanted)
  }

  private get silent(): boolean {
    return this.stopping !== undefined || this.refused
  }

  linked(to: NodeId): boolean {
    return this.links.get(to)?.up ?? false
  }

  /** Links that are up. */
  get upCount(): number {
    let up = 0
    for (const link of this.links.values()) if (link.up) up++
    return up
  }

  get inboundCount(): number {
    return this.inbounds.size
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

  private linkTo(to: NodeId): Link<M> {
    assert(to !== this.options.identity.nodeId, 'a broker sends itself nothing')
    let link = this.links.get(to)
    if (link === undefined) {
      link = new Link(to, this.shared)
      this.links.set(to, link)
    }
    return link
  }

  // Connections from peers.

  private accept(connection: Connection): void {
    const { connectionsMax } = this.options.settings
    if (this.silent || this.inbounds.size >= connectionsMax) {
      closeUnused(connection)
      return
    }
    this.inbounds.add(new Inbound(connection, this.shared, this.owner))
  }

  private greeted(inbound: Inbound<M>, { nodeId, starts }: Hello): void {
    this.inboundOf.get(nodeId)?.close()
    this.inboundOf.set(nodeId, inbound)
    this.links.get(nodeId)?.heardFrom(newestStart(starts).bootCount)
  }

  private refusalOf(hello: Hello): HelloRefusal | undefined {
    const { identity, protocol } = this.options
    const { clusterId, nodeId } = identity
    if (hello.version !== protocol.version) {
      const text = `version ${hello.version} is spoken, here only ${protocol.version} is`
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
    if (this.silent) return
    this.refused = true
    for (const link of this.links.values()) link.cut()
    for (const inbound of this.inbounds) inbound.close()
    this.options.onRefusedAsOld(by)
  }

  private gone(inbound: Inbound<M>): void {
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
