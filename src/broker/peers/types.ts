// What links between brokers are made with, and what they count.

import type { NodeId } from '../../model/ids.ts'
import type { Start, StartMemory, Starts } from '../../model/starts.ts'
import type { Clock } from '../../ports/clock.ts'
import type { Log } from '../../ports/log.ts'
import type { Counter, Metrics } from '../../ports/metrics.ts'
import type { Random } from '../../ports/random.ts'
import type { Address, Connection, Streams } from '../../ports/streams.ts'
import type { Identity } from '../../wire/peer/hello.ts'
import type { PeerMessage } from '../../wire/peer/types.ts'
import type { PeersSettings } from './settings.ts'

interface PeersPorts {
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

export interface PeersOptions {
  readonly ports: PeersPorts
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

/** What both kinds of connections need of their owner. */
export interface Shared {
  readonly ports: PeersPorts
  readonly identity: Identity
  readonly settings: PeersSettings
  readonly counters: Counters
  /** A connection is open from here on; until `closed` it keeps the watch going. */
  opened(connection: Connection): void
  closed(connection: Connection): void
  /** A start of the node was met that is not among these nor before them. */
  isOld(node: NodeId, starts: Starts): boolean
  /** Resolves when it would outlive a crash of this broker. */
  remember(node: NodeId, start: Start): Promise<void>
  refusedAsOld(by: NodeId): void
}

export interface Counters {
  readonly sentBytes: Counter
  readonly receivedBytes: Counter
  readonly dropped: Counter
  readonly failedDials: Counter
  readonly lostLinks: Counter
  readonly badFrames: Counter
  readonly refusals: Counter
}

export function makeCounters(metrics: Metrics): Counters {
  const counter = (name: string, help: string): Counter =>
    metrics.counter(`eastguard_peer_${name}_total`, help)
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
