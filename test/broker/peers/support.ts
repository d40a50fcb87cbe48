// Brokers' links on a simulated network: nodes that send one another numbered messages and keep what comes.

import assert from 'node:assert/strict'
import { Peers } from '../../../src/broker/peers/peers.ts'
import { PEERS_SETTINGS, type PeersSettings } from '../../../src/broker/peers/settings.ts'
import { type ClusterId, clusterId, type NodeId, nodeId } from '../../../src/model/ids.ts'
import { STARTS_MAX, type Start, type StartMemory, type Starts } from '../../../src/model/starts.ts'
import type { Address, Streams } from '../../../src/ports/streams.ts'
import type { SimProcess } from '../../../src/sim/process.ts'
import type { World } from '../../../src/sim/world.ts'
import type { PeerMessage } from '../../../src/wire/peer/types.ts'
import { metricOf, SimNet } from '../support/sim-net.ts'

export const CLUSTER: ClusterId = clusterId('c'.repeat(32))
const PORT = 2923

export function idOf(name: string): NodeId {
  const letter = name.codePointAt(0)?.toString(16) ?? ''
  return nodeId(letter.repeat(16))
}

/** The last starts of a directory that has come to `bootCount`; those before `from` are the directory's that it was copied from. */
export function startsTo(bootCount: number, from: number = 1, copy: number = 0): Starts {
  const all = Array.from({ length: bootCount }, (_, i) =>
    startNumber(i + 1, i + 1 < from ? 0 : copy),
  )
  const [first, ...later] = all.slice(-STARTS_MAX)
  assert.ok(first !== undefined)
  return [first, ...later]
}

export function startNumber(bootCount: number, copy: number = 0): Start {
  const id = `${copy.toString(16).padStart(8, '0')}${bootCount.toString(16).padStart(8, '0')}`
  return { bootCount, id }
}

/** Remembers as a data directory does, with what it takes for a disk. */
export class Memory implements StartMemory {
  readonly starts: Map<NodeId, Start> = new Map()
  /** What was news. */
  readonly kept: Start[] = []
  keep: () => Promise<void> = () => Promise.resolve()

  met(node: NodeId): Start | undefined {
    return this.starts.get(node)
  }

  remember(node: NodeId, start: Start): Promise<void> {
    const known = this.starts.get(node)
    if (known !== undefined && known.bootCount >= start.bootCount) return Promise.resolve()
    this.starts.set(node, start)
    this.kept.push(start)
    return this.keep()
  }
}

/** A message that is recognized by its number. */
export function numbered(number: number, bytes: number = 0): PeerMessage {
  const command = pattern(number, bytes)
  return { kind: 'propose', shard: number % 256, term: 1, proposer: '', number, below: 0, command }
}

function pattern(number: number, bytes: number): Uint8Array {
  return new Uint8Array(bytes).fill(number)
}

interface Received {
  readonly from: NodeId
  readonly number: number
}

interface NodeOptions {
  readonly bootCount?: number
  /** Of a directory that did not come there by itself. */
  readonly starts?: Starts
  /** Default: a new one. */
  readonly memory?: Memory
  readonly clusterId?: ClusterId
  readonly nodeId?: NodeId
  readonly settings?: Partial<PeersSettings>
  readonly streams?: (real: Streams) => Streams
}

export class Node {
  readonly name: string
  readonly id: NodeId
  readonly process: SimProcess
  readonly peers: Peers
  readonly memory: Memory
  /** Who has refused it as an older copy. */
  readonly refusedBy: NodeId[] = []
  readonly received: Received[] = []
  /** What came in one call. */
  readonly together: number[] = []
  readonly events: string[] = []
  /** Where it takes others to be; by default where they are. */
  readonly addresses: Map<NodeId, Address | undefined> = new Map()
  onReceive: (() => void) | undefined

  constructor(world: World, name: string, options: NodeOptions) {
    this.name = name
    this.id = options.nodeId ?? idOf(name)
    this.memory = options.memory ?? new Memory()
    this.process = world.process(name)
    const { ports } = this.process
    this.peers = new Peers({
      ports: { ...ports, streams: options.streams?.(ports.streams) ?? ports.streams },
      identity: {
        clusterId: options.clusterId ?? CLUSTER,
        nodeId: this.id,
        starts: options.starts ?? startsTo(options.bootCount ?? 1),
      },
      directory: { addressOf: (node) => this.addresses.get(node) },
      receive: (from, messages) => this.receive(from, messages),
      settings: { ...PEERS_SETTINGS, ...options.settings },
      memory: this.memory,
      onRefusedAsOld: (by) => this.refusedBy.push(by),
    })
    this.peers.onLink((node, up) => {
      this.events.push(`${nameOf(node)} ${up ? 'up' : 'down'}`)
    })
  }

  private receive(from: NodeId, messages: readonly PeerMessage[]): void {
    this.together.push(messages.length)
    for (const message of messages) {
      assert.ok(message.kind === 'propose')
      const { number } = message
      assert.deepEqual(message.command, pattern(number, message.command.length))
      assert.equal(message.shard, number % 256)
      this.received.push({ from, number })
    }
    this.onReceive?.()
  }

  numbersFrom(other: Node): readonly number[] {
    return this.received.filter(({ from }) => from === other.id).map(({ number }) => number)
  }

  send(to: Node, ...numbers: number[]): boolean {
    return this.peers.send(
      to.id,
      numbers.map((number) => numbered(number)),
    )
  }

  get log(): readonly string[] {
    return this.process.ports.log.lines.map(({ level, message, fields }) => {
      const why = fields['why']
      return `${level}: ${message}${typeof why === 'string' ? `: ${why}` : ''}`
    })
  }

  /** The fields of the lines that say so. */
  lines(text: string): readonly Readonly<Record<string, unknown>>[] {
    const { lines } = this.process.ports.log
    return lines.flatMap(({ message, fields }) => (message.includes(text) ? [fields] : []))
  }

  metric(name: string): Promise<number> {
    return metricOf(this.process, `eastguard_peer_${name}`)
  }
}

function nameOf(node: NodeId): string {
  return String.fromCodePoint(Number.parseInt(node.slice(0, 2), 16))
}

export class Net extends SimNet {
  readonly nodes: Node[] = []

  constructor(seed: number) {
    super(seed, 1)
  }

  /** Started and listening; all others know where. A second one of a name takes the place of the first. */
  async start(name: string, options: NodeOptions = {}): Promise<Node> {
    const node = new Node(this.world, name, options)
    await node.peers.listen({ host: name, port: PORT })
    for (const other of this.nodes) {
      node.addresses.set(other.id, { host: other.name, port: PORT })
      other.addresses.set(node.id, { host: name, port: PORT })
    }
    this.nodes.push(node)
    return node
  }
}
