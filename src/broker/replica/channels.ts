// The streams to followers, by the channel numbers that they are told, and what high watermarks are told beside appends: news
// after a few milliseconds, all of one peer in one message, and now and then that nothing is new, so that a follower of an idle
// segment knows that it lags behind nobody.

import type { NodeId } from '../../model/ids.ts'
import type { Clock, Timer } from '../../ports/clock.ts'
import type { Acks, Opened, Refuse } from '../../wire/data/types.ts'
import type { DataLinks } from '../data/types.ts'
import type { RangeLeader } from '../range/leader.ts'
import { type FollowerStream, Outgoing } from './outgoing.ts'
import type { Sending, Sendings } from './sending.ts'

const NEWS_MS = 3
/** Parts of the time after which a follower without news counts as stale. */
const CALM_PARTS = 4
/** Channels in one message. */
const NEWS_MAX = 4096

export class Channels implements Sendings {
  readonly links: DataLinks
  private readonly clock: Clock
  private readonly calmMs: number
  private readonly streams = new Map<number, FollowerStream>()
  private readonly byNode = new Map<NodeId, Set<FollowerStream>>()
  /** Of the peers whose links are up. */
  private readonly boots = new Map<NodeId, number>()
  private news = new Set<FollowerStream>()
  private newsTimer: Timer | undefined
  private calmTimer: Timer | undefined
  private lastChannel = 0

  constructor(links: DataLinks, clock: Clock, hwStaleMs: number) {
    this.links = links
    this.clock = clock
    this.calmMs = hwStaleMs / CALM_PARTS
  }

  of(leader: RangeLeader): Sending {
    return new Outgoing(leader, this)
  }

  /** Undefined: the link is down. */
  bootOf(node: NodeId): number | undefined {
    return this.boots.get(node)
  }

  add(stream: FollowerStream): number {
    this.lastChannel = (this.lastChannel + 1) % 2 ** 32
    this.streams.set(this.lastChannel, stream)
    const ofNode = this.byNode.get(stream.node) ?? new Set()
    this.byNode.set(stream.node, ofNode.add(stream))
    this.calmTimer ??= this.clock.after(this.calmMs, () => this.calm())
    return this.lastChannel
  }

  delete(stream: FollowerStream): void {
    this.streams.delete(stream.channel)
    this.byNode.get(stream.node)?.delete(stream)
    this.news.delete(stream)
  }

  link(node: NodeId, up: boolean, boot: number): void {
    if (up) this.boots.set(node, boot)
    else this.boots.delete(node)
    for (const stream of Array.from(this.byNode.get(node) ?? [])) {
      if (up) stream.linkUp()
      else stream.linkDown()
    }
  }

  // What followers say.

  opened(from: NodeId, boot: number, { channel, result }: Opened): void {
    this.streamOf(from, channel)?.opened(boot, result)
  }

  acks(from: NodeId, { of }: Acks): void {
    for (const { channel, end } of of) this.streamOf(from, channel)?.acked(end)
  }

  refuse(from: NodeId, { channel, entryNumber, why }: Refuse): void {
    this.streamOf(from, channel)?.refused(entryNumber, why)
  }

  private streamOf(from: NodeId, channel: number): FollowerStream | undefined {
    const stream = this.streams.get(channel)
    return stream?.node === from ? stream : undefined
  }

  // High watermarks.

  tellSoon(stream: FollowerStream): void {
    this.news.add(stream)
    this.newsTimer ??= this.clock.after(NEWS_MS, () => this.tell())
  }

  private tell(): void {
    this.newsTimer = undefined
    const { news } = this
    this.news = new Set()
    const byNode = new Map<NodeId, FollowerStream[]>()
    for (const stream of news) {
      if (!stream.hasNews) continue
      const list = byNode.get(stream.node)
      if (list === undefined) byNode.set(stream.node, [stream])
      else list.push(stream)
    }
    for (const [node, streams] of byNode) {
      for (let i = 0; i < streams.length; i += NEWS_MAX) {
        this.tellNode(node, streams.slice(i, i + NEWS_MAX))
      }
    }
  }

  private tellNode(node: NodeId, streams: readonly FollowerStream[]): void {
    const of = streams.map(({ channel, highWatermark }) => ({ channel, highWatermark }))
    const sent = this.links.send(node, { kind: 'watermarks', of })
    for (const stream of streams) {
      if (sent) stream.told()
      else this.tellSoon(stream)
    }
  }

  /** What has been told is what there is. */
  private calm(): void {
    this.calmTimer = undefined
    for (const [node, streams] of this.byNode) {
      if (streams.size === 0) this.byNode.delete(node)
      else if (this.boots.has(node)) this.links.send(node, { kind: 'watermarks', of: [] })
    }
    if (this.byNode.size > 0) this.calmTimer = this.clock.after(this.calmMs, () => this.calm())
  }

  stop(): void {
    this.newsTimer?.cancel()
    this.calmTimer?.cancel()
  }
}
