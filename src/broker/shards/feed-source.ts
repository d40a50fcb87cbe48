// What a member of a shard tells brokers that are not: the entries it has applied, as they come, from where each asks for. A
// broker asks again every so often and says how far it is; who has not asked for a while is forgotten. What is compacted
// here is given as the snapshot that took its place: a part at each request, since a link takes only so much at once.

import type { NodeId } from '../../model/ids.ts'
import type { FeedRequest, PeerMessage } from '../../wire/peer/types.ts'
import type { Replica } from './replica.ts'

const MESSAGE_BYTES = 256 * 1024
const FORGET_MS = 7000

interface Follower {
  /** The next entry that it needs. */
  next: number
  askedAtMs: number
}

export class FeedSource {
  private readonly followers = new Map<number, Map<NodeId, Follower>>()
  private readonly send: (to: NodeId, message: PeerMessage) => void

  constructor(send: (to: NodeId, message: PeerMessage) => void) {
    this.send = send
  }

  /** `applied`: how far this broker's copy is. */
  asked(node: NodeId, replica: Replica, applied: number, request: FeedRequest, now: number): void {
    const { shard } = replica
    let all = this.followers.get(shard)
    if (all === undefined) {
      all = new Map()
      this.followers.set(shard, all)
    }
    const follower: Follower = { next: request.fromIndex, askedAtMs: now }
    all.set(node, follower)
    const told = this.feedSnapshot(node, follower, replica, request)
    // Even one that lacks nothing hears that it is heard.
    if (!this.feed(node, follower, replica, applied) && !told) {
      this.send(node, { kind: 'feed', shard, entries: [] })
    }
  }

  /** Entries were applied here. */
  advanced(replica: Replica, applied: number, now: number): void {
    const all = this.followers.get(replica.shard)
    if (all === undefined) return
    for (const [node, follower] of all) {
      if (now - follower.askedAtMs > FORGET_MS) all.delete(node)
      else this.feed(node, follower, replica, applied)
    }
  }

  /** Whether there was something. One that needs a snapshot asks for its parts. */
  private feed(node: NodeId, follower: Follower, replica: Replica, applied: number): boolean {
    const { shard, raft } = replica
    const { log } = raft
    const before = follower.next
    while (follower.next >= log.firstIndex && follower.next <= applied) {
      const entries = log.slice(follower.next, applied, MESSAGE_BYTES)
      if (entries.length === 0) break
      this.send(node, { kind: 'feed', shard, entries })
      follower.next += entries.length
    }
    return follower.next > before
  }

  /** Whether there was something: a part of a snapshot. */
  private feedSnapshot(
    node: NodeId,
    follower: Follower,
    { shard, raft }: Replica,
    { held }: FeedRequest,
  ): boolean {
    const { snapshot, firstIndex } = raft.log
    if (snapshot === undefined || follower.next >= firstIndex) return false
    const { index, term, members, data } = snapshot
    const totalBytes = data.length
    const offset = held?.index === index && held.bytes < totalBytes ? held.bytes : 0
    const bytes = data.subarray(offset, offset + MESSAGE_BYTES)
    const part = { index, term, members, totalBytes, offset, bytes }
    this.send(node, { kind: 'feed-snapshot', shard, ...part })
    if (offset + bytes.length === totalBytes) follower.next = index + 1
    return true
  }
}
