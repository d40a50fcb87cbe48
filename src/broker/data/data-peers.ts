// The links on the data port: entries to the other brokers and from them, fairly among the segments that they are of.
//
//   out   open, append, watermarks, stage, stage-dropped, fetch    this broker leads, holds or asks
//   in    opened, acks, refuse, stage-stored, fetched              the peer does
//
// As long as a connection holds nothing of a flow is lost or comes in another order. When it breaks, both sides are told, each
// as soon as it knows; what was on the way then may have arrived or not, and channels have to be opened anew.

import { assert } from '../../base/assert.ts'
import { Truncated } from '../../base/cursor.ts'
import type { NodeId } from '../../model/ids.ts'
import type { StartMemory } from '../../model/starts.ts'
import type { Address, Listener } from '../../ports/streams.ts'
import { DATA_FRAME_BYTES_MAX, DATA_MAGIC, DATA_VERSION } from '../../wire/data/frame.ts'
import { readDataMessage } from '../../wire/data/load.ts'
import type { DataMessage, DataWord } from '../../wire/data/types.ts'
import { wordFrame } from '../../wire/data/word.ts'
import type { Identity } from '../../wire/peer/hello.ts'
import { Links } from '../links/links.ts'
import {
  type Directory,
  type LinkCounters,
  type LinkPorts,
  makeLinkCounters,
  type Protocol,
  type Way,
} from '../links/types.ts'
import { DataOutlet } from './outlet.ts'
import type { DataSettings } from './settings.ts'
import type { DataLinkListener, DataLinks, DataReceiver, Flow, FlowOptions } from './types.ts'

export interface DataPeersOptions {
  readonly ports: LinkPorts
  readonly identity: Identity
  readonly directory: Directory
  readonly settings: DataSettings
  readonly memory: StartMemory
  /** What it throws is thrown on: it has no other way to be told. */
  receive: DataReceiver
  /** As that of broker/peers. */
  onRefusedAsOld(by: NodeId): void
}

/** On which connection a message goes, as its sender sees it. */
const WAYS: Readonly<Record<DataMessage['kind'], Way>> = {
  open: 'out',
  append: 'out',
  watermarks: 'out',
  stage: 'out',
  'stage-dropped': 'out',
  fetch: 'out',
  opened: 'in',
  acks: 'in',
  refuse: 'in',
  'stage-stored': 'in',
  fetched: 'in',
}

const PROTOCOL: Protocol<DataMessage> = {
  magic: DATA_MAGIC,
  version: DATA_VERSION,
  frameBytesMax: DATA_FRAME_BYTES_MAX,
  read(frame, _from, _to, way) {
    const message = readDataMessage(frame)
    if (WAYS[message.kind] === way) throw new Truncated(`${message.kind} came the wrong way`)
    return [message]
  },
}

interface Peer {
  readonly out: DataOutlet
  readonly in: DataOutlet
  /** Those with way `out`. */
  flows: number
}

export class DataPeers implements DataLinks {
  private readonly options: DataPeersOptions
  private readonly counters: LinkCounters
  private readonly links: Links<DataMessage>
  private readonly peers = new Map<NodeId, Peer>()
  private readonly listeners: DataLinkListener[] = []

  constructor(options: DataPeersOptions) {
    const { metrics } = options.ports
    this.options = options
    this.counters = makeLinkCounters(metrics, 'data', ', for what is replicated')
    const links = new Links<DataMessage>({
      ...options,
      port: 'data',
      counters: this.counters,
      protocol: PROTOCOL,
      outletOf: (node, way) => this.peerOf(node)[way],
      receive: (from, boot, messages) => {
        for (const message of messages) options.receive(from, boot, message)
      },
      changed: (node, way, up, boot) => {
        for (const listener of this.listeners) listener(node, way, up, boot)
      },
      onRefusedAsOld: (by) => options.onRefusedAsOld(by),
    })
    this.links = links
    metrics.gauge(
      'eastguard_data_links',
      'Links to other brokers that are up, for what is replicated',
      () => links.upCount,
    )
    metrics.gauge(
      'eastguard_data_connections',
      'Connections from other brokers, for what is replicated',
      () => links.inboundCount,
    )
  }

  listen(address: Address): Promise<Listener> {
    return this.links.listen(address)
  }

  flow(to: NodeId, options: FlowOptions): Flow {
    assert(to !== this.options.identity.nodeId, 'a broker sends itself nothing')
    const peer = this.peerOf(to)
    const turn = peer[options.way].add(options)
    const wants = options.way === 'out'
    if (wants && peer.flows++ === 0) this.links.want(to, true)
    let open = true
    return {
      ready: () => turn.ready(),
      close: () => {
        if (!open) return
        open = false
        turn.close()
        if (wants && --peer.flows === 0) this.links.want(to, false)
      },
    }
  }

  send(to: NodeId, message: DataWord): boolean {
    assert(to !== this.options.identity.nodeId, 'a broker sends itself nothing')
    const way = WAYS[message.kind]
    if (way === 'out') this.links.ask(to)
    return this.peerOf(to)[way].send(wordFrame(message))
  }

  onLink(listener: DataLinkListener): void {
    this.listeners.push(listener)
  }

  /** Words that wait are still sent, for a moment; flows are asked no more, and nothing is received. */
  stop(): Promise<void> {
    return this.links.stop()
  }

  private peerOf(node: NodeId): Peer {
    let peer = this.peers.get(node)
    if (peer === undefined) {
      const { settings } = this.options
      peer = {
        out: new DataOutlet(settings, this.counters),
        in: new DataOutlet(settings, this.counters),
        flows: 0,
      }
      this.peers.set(node, peer)
    }
    return peer
  }
}
