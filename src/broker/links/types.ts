// What links between brokers are made with, what is spoken on them, and what they count.

import type { Seldom } from '../../base/seldom.ts'
import type { NodeId } from '../../model/ids.ts'
import type { Start, StartMemory, Starts } from '../../model/starts.ts'
import type { Clock } from '../../ports/clock.ts'
import type { Log } from '../../ports/log.ts'
import type { Counter, Metrics } from '../../ports/metrics.ts'
import type { Random } from '../../ports/random.ts'
import type { Address, Connection, Streams } from '../../ports/streams.ts'
import type { Identity } from '../../wire/peer/hello.ts'
import type { LinkSettings } from './settings.ts'

export interface LinkPorts {
  readonly streams: Streams
  readonly clock: Clock
  readonly random: Random
  readonly log: Log
  readonly metrics: Metrics
}

/** Knows where nodes are to be found, as far as it knows. */
export interface Directory {
  addressOf(node: NodeId): Address | undefined
}

/** `out`: on a connection that this broker has dialled. `in`: on one that the peer has. */
export type Way = 'out' | 'in'

/** What is spoken on the links of one port. */
export interface Protocol<M> {
  /** Of its hellos, so that who reaches another port is told apart. */
  readonly magic: number
  readonly version: number
  readonly frameBytesMax: number
  /**
   * What a frame of another kind than the links' own says (wire/peer/frame.ts), with the node that it came from and the one
   * that it came to. `way`: of the connection that it came on. Throws Truncated.
   */
  read(frame: Uint8Array, from: NodeId, to: NodeId, way: Way): readonly M[]
}

/** What this broker has to send on one connection, and when there is none, on the next. */
export interface Outlet {
  /** From now on it may write, until `close`. */
  open(connection: Connection): void
  drained(): void
  /** A ping or a pong. False: the peer has not taken those before. */
  beat(frame: Uint8Array): boolean
  /** Gives all that waits to the connection, whether or not that has enough. */
  flush(): void
  /** There is no connection, nor will be one from this dial: what waits for it is dropped. */
  close(): void
}

export interface LinksOptions<M> {
  readonly ports: LinkPorts
  /** What the log calls the port: a broker has links to two ports of each other one. */
  readonly port: 'cluster' | 'data'
  readonly identity: Identity
  readonly directory: Directory
  readonly settings: LinkSettings
  readonly memory: StartMemory
  readonly counters: LinkCounters
  readonly protocol: Protocol<M>
  /** One for each link, and one at a time for each connection that a peer has dialled. */
  outletOf(node: NodeId, way: Way): Outlet
  /** `boot` is the peer's. What it throws is thrown on: it has no other way to be told. */
  receive(from: NodeId, boot: number, messages: readonly M[]): void
  /** Not of what `stop` ends. Nothing is received before it is up, nor after it is down. */
  changed(node: NodeId, way: Way, up: boolean, boot: number): void
  /**
   * `by` has met a start of this node that is not in its past: this is an older copy. Called at most once; from here on
   * nothing is sent or received.
   */
  onRefusedAsOld(by: NodeId): void
}

/** What both kinds of connections need of their owner. */
export interface Shared<M> {
  readonly options: LinksOptions<M>
  /** Of connections that are not let in, or are no broker's: whoever dials may do so as often as he likes. */
  readonly unwanted: Seldom
  /** A connection is open from here on; until `closed` it keeps the watch going. */
  opened(connection: Connection): void
  closed(connection: Connection): void
  /** A start of the node was met that is not among these nor before them. */
  isOld(node: NodeId, starts: Starts): boolean
  /** Resolves when it would outlive a crash of this broker. */
  remember(node: NodeId, start: Start): Promise<void>
  refusedAsOld(by: NodeId): void
}

export interface LinkCounters {
  readonly sentBytes: Counter
  readonly receivedBytes: Counter
  readonly dropped: Counter
  readonly failedDials: Counter
  readonly lostLinks: Counter
  readonly badFrames: Counter
  readonly refusals: Counter
}

/** `name` begins those of the metrics; `what` says in their help texts what the links are for. */
export function makeLinkCounters(metrics: Metrics, name: string, what: string): LinkCounters {
  const counter = (last: string, help: string): Counter =>
    metrics.counter(`eastguard_${name}_${last}_total`, `${help}${what}`)
  return {
    sentBytes: counter('sent_bytes', 'Bytes given to links to other brokers'),
    receivedBytes: counter('received_bytes', 'Bytes that came over links from other brokers'),
    dropped: counter('dropped_messages', 'Messages that had no link or no room on it'),
    failedDials: counter('failed_dials', 'Attempts to reach another broker that failed'),
    lostLinks: counter('lost_links', 'Links to other brokers that broke'),
    badFrames: counter('bad_frames', 'Links closed because of bytes that no broker writes'),
    refusals: counter('refusals', 'Links that this broker refused'),
  }
}
