// Entries from segments' leaders, on their way to the followers here. A channel is known as long as the connection on which it
// was opened; acknowledgements of all channels of a connection that a sync has brought go back in one message.

import { openOf, rangeByNumber } from '../../core/metadata/lookup.ts'
import { samePlace } from '../../model/entry.ts'
import type { NodeId } from '../../model/ids.ts'
import type { Append, DataWord, Open, OpenedResult, Watermarks } from '../../wire/data/types.ts'
import type { DataLinks } from '../data/types.ts'
import type { RangeContext } from '../range/context.ts'
import { type FollowerEnds, RangeFollower } from '../range/follower.ts'
import type { TopicRuntimes } from '../topics/runtimes.ts'

/** The link has no room for answers. */
const AGAIN_MS = 10

export class Incoming {
  private readonly context: RangeContext
  private readonly runtimes: TopicRuntimes
  private readonly links: DataLinks
  private readonly peers = new Map<NodeId, IncomingPeer>()

  constructor(context: RangeContext, runtimes: TopicRuntimes, links: DataLinks) {
    this.context = context
    this.runtimes = runtimes
    this.links = links
  }

  link(node: NodeId, up: boolean): void {
    this.peers.get(node)?.close()
    if (up) this.peers.set(node, new IncomingPeer(node, this.context, this.links))
    else this.peers.delete(node)
  }

  open(from: NodeId, boot: number, open: Open): void {
    const peer = this.peers.get(from)
    if (peer === undefined) return
    const { channel } = open
    const answer = this.answer(from, boot, open)
    if (answer instanceof RangeFollower) peer.begin(channel, answer, open.highWatermark)
    else peer.say(() => ({ kind: 'opened', channel, result: answer }))
  }

  private answer(from: NodeId, boot: number, { key, token }: Open): RangeFollower | OpenedResult {
    const runtime = this.runtimes.get(key.topicId)
    const copy = runtime?.copyOfRange(key.range)
    if (runtime === undefined || copy?.key.segment !== key.segment) {
      const range = runtime === undefined ? undefined : rangeByNumber(runtime.topic, key.range)
      const open = range === undefined ? undefined : openOf(range)
      const passed = open !== undefined && open.segment > key.segment
      return passed ? { kind: 'refused', why: 'the segment is sealed' } : { kind: 'not-yet' }
    }
    const { role } = copy
    if (!(role instanceof RangeFollower) || copy.open.replicas[0] !== from) {
      return { kind: 'refused', why: 'the sender does not lead the segment' }
    }
    if (copy.open.token !== token) return { kind: 'refused', why: 'it was staged otherwise' }
    if (copy.status !== 'live') return { kind: 'refused', why: copy.fault?.message ?? 'damaged' }
    if (role.segment.fenced) return { kind: 'refused', why: 'the segment is fenced here' }
    role.leaderBoot ??= boot
    if (role.leaderBoot !== boot) return { kind: 'refused', why: 'its leader has restarted' }
    if (copy.state !== undefined) return role
    copy.ensureLoaded()?.catch(() => {})
    return { kind: 'not-yet' }
  }

  append(from: NodeId, append: Append): void {
    this.peers.get(from)?.append(append)
  }

  watermarks(from: NodeId, { of }: Watermarks): void {
    const peer = this.peers.get(from)
    if (peer === undefined) return
    peer.heardAtMs = this.context.clock.monotonic()
    for (const { channel, highWatermark } of of) peer.heard(channel, highWatermark)
  }
}

class IncomingPeer implements FollowerEnds {
  heardAtMs: number
  private readonly node: NodeId
  private readonly context: RangeContext
  private readonly links: DataLinks
  private readonly followers = new Map<number, RangeFollower>()
  private readonly channels = new Map<RangeFollower, number>()
  private due = new Set<RangeFollower>()
  private flushing = false
  /** Found no room: nobody asks again for them on this connection. At most one for each `open` and each channel. */
  private unsaid: (() => DataWord)[] = []
  private closed = false

  constructor(node: NodeId, context: RangeContext, links: DataLinks) {
    this.node = node
    this.context = context
    this.links = links
    this.heardAtMs = context.clock.monotonic()
  }

  /** As it is when there is room for it. */
  say(message: () => DataWord): void {
    if (this.unsaid.length === 0 && this.send(message())) return
    if (this.unsaid.push(message) === 1) this.sayAgain()
  }

  private sayAgain(): void {
    this.context.clock.after(AGAIN_MS, () => {
      if (this.closed) return
      const said = this.unsaid.findIndex((message) => !this.send(message()))
      this.unsaid = said < 0 ? [] : this.unsaid.slice(said)
      if (this.unsaid.length > 0) this.sayAgain()
    })
  }

  private send(message: DataWord): boolean {
    return this.links.send(this.node, message)
  }

  begin(channel: number, follower: RangeFollower, highWatermark: number): void {
    this.left(follower)
    this.followers.set(channel, follower)
    this.channels.set(follower, channel)
    const segment = follower.begin(this)
    follower.onRefused = (entryNumber, why) => this.refuse(channel, entryNumber, why)
    this.say(() => {
      const { next, ackable: durableEnd } = segment
      return { kind: 'opened', channel, result: { kind: 'ready', next, durableEnd } }
    })
    follower.heard(highWatermark)
  }

  append({ channel, place, entries, highWatermark }: Append): void {
    const follower = this.followers.get(channel)
    if (follower === undefined) return
    const [first] = entries
    if (first !== undefined && (place === undefined || !samePlace(place, follower.place))) {
      this.refuse(channel, first.entryNumber, 'it is of another segment')
      return
    }
    const refused = follower.take(this.node, entries)
    if (refused !== undefined) this.refuse(channel, refused.entryNumber, refused.why)
    else follower.heard(highWatermark)
  }

  heard(channel: number, highWatermark: number): void {
    this.followers.get(channel)?.heard(highWatermark)
  }

  left(follower: RangeFollower): void {
    const channel = this.channels.get(follower)
    if (channel !== undefined) this.end(channel)
  }

  private refuse(channel: number, entryNumber: number, why: string): void {
    // What was parked may be refused later than its connection lasts; another start of the leader numbers channels anew.
    if (this.closed) return
    this.end(channel)
    this.say(() => ({ kind: 'refuse', channel, entryNumber, why }))
  }

  private end(channel: number): void {
    const follower = this.followers.get(channel)
    if (follower === undefined) return
    this.followers.delete(channel)
    this.channels.delete(follower)
    this.due.delete(follower)
    follower.over(this)
  }

  acked(follower: RangeFollower): void {
    this.due.add(follower)
    if (this.flushing) return
    this.flushing = true
    this.context.clock.nextTurn(() => this.flush())
  }

  /** All that the syncs of this turn have made durable. */
  private flush(): void {
    this.flushing = false
    if (this.closed || this.due.size === 0) return
    const { due } = this
    const of = Array.from(due, (follower) => ({
      channel: this.channels.get(follower) ?? 0,
      end: follower.segment.ackable,
    }))
    this.due = new Set()
    if (this.send({ kind: 'acks', of })) return
    for (const follower of due) this.due.add(follower)
    this.flushing = true
    this.context.clock.after(AGAIN_MS, () => this.flush())
  }

  close(): void {
    this.closed = true
    for (const channel of Array.from(this.followers.keys())) this.end(channel)
  }
}
