// Messages to the other brokers on the cluster port, and from them. On each connection only its dialer sends messages.
//
// What is promised: messages that arrive come whole, in the order of their sending as long as the link holds, from the node
// that they say. What is not: that they arrive. Whoever sends repeats, as Raft does. Nothing here blocks.

import { assert } from '../../base/assert.ts'
import { Truncated } from '../../base/cursor.ts'
import type { NodeId } from '../../model/ids.ts'
import type { StartMemory } from '../../model/starts.ts'
import type { Address, Listener } from '../../ports/streams.ts'
import { PEER_FRAME_BYTES_MAX } from '../../wire/peer/frame.ts'
import { type Identity, PEER_MAGIC, PEER_VERSION } from '../../wire/peer/hello.ts'
import { readMessagesFrame } from '../../wire/peer/read-frame.ts'
import type { PeerMessage } from '../../wire/peer/types.ts'
import { Links } from '../links/links.ts'
import {
  type Directory,
  type LinkCounters,
  type LinkPorts,
  makeLinkCounters,
  type Protocol,
} from '../links/types.ts'
import { Outbox, Pongs } from './outbox.ts'
import type { PeersSettings } from './settings.ts'

export interface PeersOptions {
  readonly ports: LinkPorts
  readonly identity: Identity
  readonly directory: Directory
  /** Messages of one frame, in order. What it throws is thrown on: it has no other way to be told. */
  receive(from: NodeId, messages: readonly PeerMessage[]): void
  readonly settings: PeersSettings
  readonly memory: StartMemory
  /**
   * `by` has met a start of this node that is not in its past: this is an older copy. Called at most once; from here on
   * nothing is sent or received.
   */
  onRefusedAsOld(by: NodeId): void
}

export type LinkListener = (node: NodeId, up: boolean) => void

const PROTOCOL: Protocol<PeerMessage> = {
  magic: PEER_MAGIC,
  version: PEER_VERSION,
  frameBytesMax: PEER_FRAME_BYTES_MAX,
  read(frame, from, to, way) {
    if (way === 'out') throw new Truncated('messages came on a link that is up')
    return readMessagesFrame(frame, from, to)
  },
}

export class Peers {
  private readonly links: Links<PeerMessage>
  private readonly options: PeersOptions
  private readonly counters: LinkCounters
  private readonly outboxes = new Map<NodeId, Outbox>()
  private readonly listeners: LinkListener[] = []

  constructor(options: PeersOptions) {
    const { metrics } = options.ports
    this.options = options
    this.counters = makeLinkCounters(metrics, 'peer', '')
    this.links = new Links({
      ...options,
      port: 'cluster',
      counters: this.counters,
      protocol: PROTOCOL,
      outletOf: (node, way) => (way === 'out' ? this.outboxOf(node) : new Pongs()),
      receive: (from, _boot, messages) => options.receive(from, messages),
      changed: (node, way, up) => {
        if (way === 'out') for (const listener of this.listeners) listener(node, up)
      },
      onRefusedAsOld: (by) => options.onRefusedAsOld(by),
    })
    const { links } = this
    metrics.gauge('eastguard_peer_links', 'Links to other brokers that are up', () => links.upCount)
    metrics.gauge(
      'eastguard_peer_connections',
      'Connections from other brokers',
      () => links.inboundCount,
    )
  }

  /** The listener knows the port that was chosen for 0; `stop` closes it. Rejects with an Error that names the address. */
  listen(address: Address): Promise<Listener> {
    return this.links.listen(address)
  }

  /**
   * Queues the messages, all in one frame if they are not many MiB, and dials if there is no link. False: some were dropped,
   * because there is no link or no room on it. Calls nobody back before it returns.
   */
  send(to: NodeId, messages: readonly PeerMessage[]): boolean {
    assert(to !== this.options.identity.nodeId, 'a broker sends itself nothing')
    if (messages.length === 0) return true
    const outbox = this.outboxOf(to)
    return this.links.ask(to) === 'away' ? outbox.drop(messages.length) : outbox.send(messages)
  }

  private outboxOf(to: NodeId): Outbox {
    let outbox = this.outboxes.get(to)
    if (outbox === undefined) {
      const { ports, settings } = this.options
      outbox = new Outbox(to, { log: ports.log, settings, counters: this.counters })
      this.outboxes.set(to, outbox)
    }
    return outbox
  }

  linked(to: NodeId): boolean {
    return this.links.linked(to)
  }

  /** `listener` is told when a link to a node comes up and when it is lost; not of those that `stop` ends. */
  onLink(listener: LinkListener): void {
    this.listeners.push(listener)
  }

  /** What waits on links is still sent, for a moment; nothing is received any more. */
  stop(): Promise<void> {
    return this.links.stop()
  }
}
