// Links between brokers of one process: frames as they would go over the data port, given from turn to turn. A pair can be cut.

import { concatBytes } from '../../../src/base/bytes.ts'
import type {
  DataLinkListener,
  DataLinks,
  DataReceiver,
  Flow,
  FlowOptions,
} from '../../../src/broker/data/types.ts'
import type { NodeId } from '../../../src/model/ids.ts'
import { readDataMessage } from '../../../src/wire/data/load.ts'
import type { DataWord, Opened } from '../../../src/wire/data/types.ts'
import { wordFrame } from '../../../src/wire/data/word.ts'

type Way = FlowOptions['way']

const OUT: ReadonlySet<string> = new Set(['open', 'watermarks', 'fetch'])
const BUDGET = 64 * 1024

interface NetFlow extends FlowOptions {
  readonly to: NodeId
  closed: boolean
  ready: boolean
}

class NetLinks implements DataLinks {
  readonly node: NodeId
  readonly boot: number
  readonly receive: DataReceiver
  private readonly net: MemoryNet
  readonly listeners: DataLinkListener[] = []
  private readonly flows: Set<NetFlow> = new Set()

  constructor(net: MemoryNet, node: NodeId, boot: number, receive: DataReceiver) {
    this.net = net
    this.node = node
    this.boot = boot
    this.receive = receive
  }

  listen(): never {
    throw new Error('nothing listens here')
  }

  async stop(): Promise<void> {
    this.net.leave(this)
  }

  flow(to: NodeId, options: FlowOptions): Flow {
    const flow: NetFlow = {
      to,
      way: options.way,
      bulk: options.bulk,
      fill: (budget) => options.fill(budget),
      closed: false,
      ready: false,
    }
    this.flows.add(flow)
    this.net.dial(this, to)
    return {
      ready: () => {
        if (flow.ready || flow.closed) return
        flow.ready = true
        setImmediate(() => this.pump(flow))
      },
      close: () => {
        flow.closed = true
        this.flows.delete(flow)
      },
    }
  }

  private pump(flow: NetFlow): void {
    flow.ready = false
    while (!flow.closed && this.net.linked(this, flow.to)) {
      const frames = flow.fill(BUDGET)
      if (frames.length === 0) return
      this.net.deliver(this, flow.to, concatBytes(frames))
    }
  }

  send(to: NodeId, message: DataWord): boolean {
    if (message.kind === 'opened') this.net.channels.push(message)
    if (!this.net.linked(this, to)) {
      if (OUT.has(message.kind)) this.net.dial(this, to)
      return false
    }
    this.net.deliver(this, to, wordFrame(message))
    return true
  }

  onLink(listener: DataLinkListener): void {
    this.listeners.push(listener)
  }

  tell(node: NodeId, way: Way, up: boolean, boot: number): void {
    for (const listener of this.listeners) listener(node, way, up, boot)
  }
}

export class MemoryNet {
  private readonly all = new Map<NodeId, NetLinks>()
  /** Answers to openings. */
  readonly channels: Opened[] = []
  private readonly cuts = new Set<string>()
  /** Both ways are up. */
  private readonly up = new Set<string>()

  join(node: NodeId, boot: number, receive: DataReceiver): DataLinks {
    const links = new NetLinks(this, node, boot, receive)
    this.all.set(node, links)
    return links
  }

  leave(links: NetLinks): void {
    if (this.all.get(links.node) !== links) return
    for (const other of Array.from(this.all.keys())) this.break(links.node, other)
    this.all.delete(links.node)
  }

  dial(from: NetLinks, to: NodeId): void {
    setImmediate(() => this.connect(from.node, to))
  }

  private connect(a: NodeId, b: NodeId): void {
    const pair = pairOf(a, b)
    const [one, other] = [this.all.get(a), this.all.get(b)]
    if (this.up.has(pair) || this.cuts.has(pair) || one === undefined || other === undefined) return
    this.up.add(pair)
    for (const way of ['in', 'out'] as const) {
      other.tell(a, way, true, one.boot)
      one.tell(b, way, true, other.boot)
    }
  }

  /** As if one of them had dialled. */
  link(a: NodeId, b: NodeId): void {
    this.connect(a, b)
  }

  linked(from: NetLinks, to: NodeId): boolean {
    return this.all.get(from.node) === from && this.up.has(pairOf(from.node, to))
  }

  deliver(from: NetLinks, to: NodeId, frame: Uint8Array): void {
    const bytes = frame.slice(4)
    setImmediate(() => {
      if (!this.linked(from, to)) return
      this.all.get(to)?.receive(from.node, from.boot, readDataMessage(bytes))
    })
  }

  private break(a: NodeId, b: NodeId): void {
    if (!this.up.delete(pairOf(a, b))) return
    for (const way of ['in', 'out'] as const) {
      this.all.get(a)?.tell(b, way, false, 0)
      this.all.get(b)?.tell(a, way, false, 0)
    }
  }

  cut(a: NodeId, b: NodeId): void {
    this.cuts.add(pairOf(a, b))
    this.break(a, b)
  }

  heal(): void {
    this.cuts.clear()
    for (const a of this.all.keys()) for (const b of this.all.keys()) if (a < b) this.connect(a, b)
  }
}

function pairOf(a: NodeId, b: NodeId): string {
  return a < b ? `${a} ${b}` : `${b} ${a}`
}
