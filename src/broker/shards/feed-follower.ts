// How a broker that is no member of a shard keeps its copy: it asks the shard's leader, or any other who may be a member, to
// be told of applied entries from where it is, and asks again every so often, for it may have been forgotten, or something
// lost. What it is told is committed, so it may be behind, and is never wrong. A snapshot comes in parts of one source, each of
// which it asks for.

import { concatBytes } from '../../base/bytes.ts'
import type { NodeId } from '../../model/ids.ts'
import type { Clock } from '../../ports/clock.ts'
import type { Feed, FeedSnapshot, PeerMessage } from '../../wire/peer/types.ts'
import type { ShardCopy } from './copy.ts'

const ASK_MS = 2000
/** Since the source was last heard. */
const LOST_MS = 2 * ASK_MS
const RETRY_MS = 200

interface Following {
  source: NodeId | undefined
  askDueMs: number
  heardAtMs: number
  incoming: { readonly index: number; readonly parts: Uint8Array[]; bytes: number } | undefined
}

export interface FeedHost {
  readonly clock: Clock
  leaderOf(shard: number): { readonly node: NodeId } | undefined
  anyone(): NodeId | undefined
  send(to: NodeId, message: PeerMessage): void
}

export class FeedFollower {
  private readonly host: FeedHost
  private readonly following = new Map<number, Following>()

  constructor(host: FeedHost) {
    this.host = host
  }

  /** Called again and again while this broker is no member of the shard. */
  tick(copy: ShardCopy): void {
    const now = this.host.clock.monotonic()
    let feed = this.following.get(copy.shard)
    if (feed === undefined) {
      feed = { source: undefined, askDueMs: now, heardAtMs: now, incoming: undefined }
      this.following.set(copy.shard, feed)
    }
    if (now < feed.askDueMs) return
    this.ask(copy, feed, now)
  }

  private ask(copy: ShardCopy, feed: Following, now: number): void {
    const { host } = this
    const silent = now - feed.heardAtMs > LOST_MS
    const leader = host.leaderOf(copy.shard)?.node
    const source = silent || leader === undefined ? (feed.source ?? host.anyone()) : leader
    const before = feed.source
    feed.source = silent && source === before ? host.anyone() : source
    feed.askDueMs = now + (feed.source === undefined || silent ? RETRY_MS : ASK_MS)
    // Another's may be of other bytes.
    if (feed.source !== before) feed.incoming = undefined
    this.request(copy, feed)
  }

  private request({ shard, appliedIndex }: ShardCopy, { source, incoming }: Following): void {
    if (source === undefined) return
    const held = incoming && { index: incoming.index, bytes: incoming.bytes }
    this.host.send(source, { kind: 'feed-request', shard, fromIndex: appliedIndex + 1, held })
  }

  /** This broker has become a member: Raft keeps the copy from here on. */
  stop(shard: number): void {
    this.following.delete(shard)
  }

  /** A leader of a newer term is known: it hears of everything first. */
  leaderChanged(shard: number): void {
    const feed = this.following.get(shard)
    if (feed === undefined) return
    const now = this.host.clock.monotonic()
    feed.askDueMs = Math.min(feed.askDueMs, now)
    // However long the source has been silent: this one has not been asked.
    feed.heardAtMs = now
  }

  told(from: NodeId, copy: ShardCopy, { entries }: Feed): void {
    const feed = this.heard(from, copy.shard)
    if (feed === undefined) return
    const first = entries[0]?.index ?? 0
    if (first > copy.appliedIndex + 1) this.ask(copy, feed, this.host.clock.monotonic())
    else copy.apply(entries)
    if ((feed.incoming?.index ?? 0) <= copy.appliedIndex) feed.incoming = undefined
  }

  toldSnapshot(from: NodeId, copy: ShardCopy, part: FeedSnapshot): void {
    const feed = this.heard(from, copy.shard)
    if (feed === undefined || from !== feed.source) return
    const { index, term, members, totalBytes, offset, bytes } = part
    if (offset === 0) feed.incoming = { index, parts: [], bytes: 0 }
    const { incoming } = feed
    if (incoming?.index !== index || incoming.bytes !== offset) return
    incoming.parts.push(bytes)
    incoming.bytes += bytes.length
    if (incoming.bytes < totalBytes) {
      feed.askDueMs = this.host.clock.monotonic() + ASK_MS
      this.request(copy, feed)
      return
    }
    feed.incoming = undefined
    copy.install({ index, term, members, data: concatBytes(incoming.parts) })
  }

  /** Whoever was asked is no member. */
  ended(from: NodeId, shard: number): void {
    const feed = this.following.get(shard)
    if (feed?.source !== from) return
    feed.source = undefined
    feed.askDueMs = this.host.clock.monotonic() + RETRY_MS
  }

  private heard(from: NodeId, shard: number): Following | undefined {
    const feed = this.following.get(shard)
    if (feed === undefined) return undefined
    if (from === feed.source) feed.heardAtMs = this.host.clock.monotonic()
    return feed
  }
}
