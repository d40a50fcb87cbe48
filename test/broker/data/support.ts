// Brokers' data links on a simulated network. What is done with them here is the least that replication does: a leader opens a
// channel for each segment, the follower says which entry it wants next, entries follow one another from there, and how far
// they have come is told back. So each entry has to come exactly once, whatever happens to connections.

import assert from 'node:assert/strict'
import { equalBytes } from '../../../src/base/bytes.ts'
import { DataPeers } from '../../../src/broker/data/data-peers.ts'
import { DATA_SETTINGS, type DataSettings } from '../../../src/broker/data/settings.ts'
import type { Flow } from '../../../src/broker/data/types.ts'
import { ENVELOPE_BYTES } from '../../../src/model/entry.ts'
import type { ClusterId, NodeId } from '../../../src/model/ids.ts'
import { topicId } from '../../../src/model/ids.ts'
import { placeOfKey, type SegmentKey } from '../../../src/model/segment-key.ts'
import type { Starts } from '../../../src/model/starts.ts'
import type { Address, Streams } from '../../../src/ports/streams.ts'
import type { SimProcess } from '../../../src/sim/process.ts'
import type { World } from '../../../src/sim/world.ts'
import { type EncodedEntries, encodeEntries } from '../../../src/wire/data/entries.ts'
import { appendFrame } from '../../../src/wire/data/load.ts'
import type { DataMessage } from '../../../src/wire/data/types.ts'
import { batchOf, entryOf } from '../../wire/data/arbitraries.ts'
import { CLUSTER, idOf, Memory, startsTo } from '../peers/support.ts'
import { metricOf, SimNet } from '../support/sim-net.ts'

export { CLUSTER, idOf, Memory, startsTo }

const PORT = 2923
const TOPIC = topicId('7'.repeat(32))

export function keyOf(segment: number): SegmentKey {
  return { topicId: TOPIC, range: 0, segment }
}

/** What a leader sends of one segment to one follower. */
export class Sender {
  readonly channel: number
  readonly to: DataNode
  readonly bulk: boolean
  /** Batches of entries from 0 on, by their bytes; `end` of them are there. */
  readonly batchBytes: (entryNumber: number) => number
  end = 0
  acked = 0
  /** Given to the connection, over all times. */
  givenBytes = 0
  /** Undefined: the channel is not open. */
  private next: number | undefined
  private readonly node: DataNode
  private readonly flow: Flow
  /** By entry number, when it was appended; and how long it then took until the follower had it, in ms. */
  private readonly appendedAt: number[] = []
  readonly tookMs: number[] = []

  constructor(
    node: DataNode,
    to: DataNode,
    channel: number,
    bulk: boolean,
    batchBytes: (n: number) => number,
  ) {
    this.node = node
    this.to = to
    this.channel = channel
    this.bulk = bulk
    this.batchBytes = batchBytes
    this.flow = node.links.flow(to.id, { way: 'out', bulk, fill: (budget) => this.fill(budget) })
  }

  append(entries: number): void {
    for (let i = 0; i < entries; i++) this.appendedAt.push(this.node.now())
    this.end += entries
    if (this.next !== undefined) this.flow.ready()
  }

  close(): void {
    this.flow.close()
  }

  linked(up: boolean): void {
    this.next = undefined
    if (!up) return
    const { channel, end } = this
    this.node.links.send(this.to.id, {
      kind: 'open',
      channel,
      key: keyOf(channel),
      token: 'token',
      end,
      highWatermark: 0,
    })
  }

  opened(next: number): void {
    this.next = next
    // What was acknowledged on a connection that broke may not have been heard.
    this.heard(next)
    if (next < this.end) this.flow.ready()
  }

  heard(end: number): void {
    for (let i = this.acked; i < end; i++) {
      this.tookMs.push(this.node.now() - (this.appendedAt[i] as number))
    }
    this.acked = Math.max(this.acked, end)
  }

  private fill(budgetBytes: number): readonly Uint8Array[] {
    assert.ok(this.node.isUp(this.to), 'a flow is asked only while its connection is up')
    const { next } = this
    if (next === undefined || next === this.end) return []
    const entries = []
    let bytes = 0
    let upTo = next
    while (upTo < this.end) {
      const size = ENVELOPE_BYTES + batchOf(0).length + this.batchBytes(upTo)
      if (bytes > 0 && bytes + size > budgetBytes) break
      entries.push(entryOf(upTo, this.batchBytes(upTo)))
      bytes += size
      upTo++
    }
    this.next = upTo
    const encoded = this.node.spoil(encodeEntries(placeOfKey(keyOf(this.channel)), entries))
    const frame = appendFrame({ channel: this.channel, highWatermark: 0 }, encoded)
    this.givenBytes += frame.reduce((sum, piece) => sum + piece.length, 0)
    return frame
  }
}

interface NodeOptions {
  readonly bootCount?: number
  readonly starts?: Starts
  readonly memory?: Memory
  readonly clusterId?: ClusterId
  readonly settings?: Partial<DataSettings>
  readonly streams?: (real: Streams, process: SimProcess) => Streams
}

export class DataNode {
  readonly name: string
  readonly id: NodeId
  readonly process: SimProcess
  readonly links: DataPeers
  readonly memory: Memory
  readonly refusedBy: NodeId[] = []
  readonly events: string[] = []
  readonly senders: Sender[] = []
  /** By leader and channel: entries that have come, of which each is the next. */
  readonly have: Map<string, number> = new Map()
  readonly addresses: Map<NodeId, Address | undefined> = new Map()
  /** What came, entries left out. */
  readonly words: DataMessage['kind'][] = []
  spoil: (entries: EncodedEntries) => EncodedEntries = (entries) => entries
  private readonly ups = new Set<string>()
  private readonly world: World

  constructor(world: World, name: string, options: NodeOptions) {
    this.world = world
    this.name = name
    this.id = idOf(name)
    this.memory = options.memory ?? new Memory()
    this.process = world.process(name)
    const { ports } = this.process
    this.links = new DataPeers({
      ports: {
        ...ports,
        streams: options.streams?.(ports.streams, this.process) ?? ports.streams,
      },
      identity: {
        clusterId: options.clusterId ?? CLUSTER,
        nodeId: this.id,
        starts: options.starts ?? startsTo(options.bootCount ?? 1),
      },
      directory: { addressOf: (node) => this.addresses.get(node) },
      receive: (from, boot, message) => this.receive(from, boot, message),
      settings: { ...DATA_SETTINGS, ...options.settings },
      memory: this.memory,
      onRefusedAsOld: (by) => this.refusedBy.push(by),
    })
    this.links.onLink((node, way, up, boot) => {
      const which = `${node} ${way}`
      assert.equal(this.ups.has(which), !up, `${which} is told once`)
      if (up) this.ups.add(which)
      else this.ups.delete(which)
      this.events.push(`${nameOf(node)} ${way} ${up ? 'up' : 'down'} ${boot}`)
      if (way === 'out') for (const one of this.sendersTo(node)) one.linked(up)
    })
  }

  now(): number {
    return this.world.clock.monotonic()
  }

  isUp(to: DataNode): boolean {
    return this.ups.has(`${to.id} out`)
  }

  private sendersTo(node: NodeId): readonly Sender[] {
    return this.senders.filter(({ to }) => to.id === node)
  }

  lead(
    to: DataNode,
    options: {
      readonly bulk?: boolean
      readonly batchBytes?: number | ((n: number) => number)
    } = {},
  ): Sender {
    const { bulk = false, batchBytes = 100 } = options
    const bytes = typeof batchBytes === 'number' ? () => batchBytes : batchBytes
    const sender = new Sender(this, to, this.senders.length, bulk, bytes)
    this.senders.push(sender)
    if (this.isUp(to)) sender.linked(true)
    return sender
  }

  private receive(from: NodeId, boot: number, message: DataMessage): void {
    const answers = message.kind === 'opened' || message.kind === 'acks'
    const which = `${from} ${answers ? 'out' : 'in'}`
    assert.ok(this.ups.has(which), `${message.kind} comes on a connection that is up: ${which}`)
    assert.ok(boot > 0)
    if (message.kind !== 'append') this.words.push(message.kind)
    if (message.kind === 'open') {
      const next = this.have.get(`${from} ${message.channel}`) ?? 0
      const { channel } = message
      const result = { kind: 'ready', next, durableEnd: next } as const
      this.links.send(from, { kind: 'opened', channel, result })
    } else if (message.kind === 'opened') {
      assert.ok(message.result.kind === 'ready')
      this.senders[message.channel]?.opened(message.result.next)
    } else if (message.kind === 'append') {
      const of = `${from} ${message.channel}`
      let next = this.have.get(of) ?? 0
      for (const { entryNumber, batch } of message.entries) {
        assert.equal(entryNumber, next, `${of}: the next entry comes`)
        const sent = entryOf(entryNumber, batch.length - batchOf(0).length)
        assert.ok(equalBytes(batch, sent.batch), `${of}: entry ${entryNumber} comes as it was sent`)
        next++
      }
      assert.equal(message.place?.segment, message.channel)
      this.have.set(of, next)
      this.links.send(from, { kind: 'acks', of: [{ channel: message.channel, end: next }] })
    } else if (message.kind === 'acks') {
      for (const { channel, end } of message.of) this.senders[channel]?.heard(end)
    }
  }

  haveOf(sender: Sender, leader: DataNode): number {
    return this.have.get(`${leader.id} ${sender.channel}`) ?? 0
  }

  get log(): readonly string[] {
    return this.process.ports.log.lines.map(({ level, message, fields }) => {
      const why = fields['why']
      return `${level}: ${message}${typeof why === 'string' ? `: ${why}` : ''}`
    })
  }

  metric(name: string): Promise<number> {
    return metricOf(this.process, `eastguard_data_${name}`)
  }
}

function nameOf(node: NodeId): string {
  return String.fromCodePoint(Number.parseInt(node.slice(0, 2), 16))
}

export class DataNet extends SimNet {
  readonly nodes: DataNode[] = []

  constructor(seed: number) {
    super(seed, 1)
  }

  /** Started and listening; all others know where. A second one of a name takes the place of the first. */
  async start(name: string, options: NodeOptions = {}): Promise<DataNode> {
    const node = new DataNode(this.world, name, options)
    await node.links.listen({ host: name, port: PORT })
    for (const other of this.nodes) {
      node.addresses.set(other.id, { host: other.name, port: PORT })
      other.addresses.set(node.id, { host: name, port: PORT })
    }
    this.nodes.push(node)
    return node
  }
}

/** Of the values, that below which the share of them lies. */
export function quantile(values: readonly number[], share: number): number {
  assert.ok(values.length > 0)
  const sorted = [...values].sort((x, y) => x - y)
  return sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))] as number
}
