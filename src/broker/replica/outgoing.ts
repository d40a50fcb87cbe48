// Entries on their way from a segment's leader to its followers: for each follower one flow on the link to its broker.
//
//   link up ──> open ──> ready(next) ──> append append append ...          acks ──> SegmentLeader
//      ^          │ not-yet: again in a while                                │
//      └── link down: the stream begins anew where the follower is           └── the boot is another: it has failed
//
// What a follower lacks lies above the high watermark, and so in memory. Nothing is queued here: the flow asks for the next
// entries when the link takes more, so that a slow link holds no memory but its own.

import type { SegmentLeader } from '../../core/segment/leader.ts'
import type { NodeId } from '../../model/ids.ts'
import { placeOfKey, type SegmentKey } from '../../model/segment-key.ts'
import { DATA_FRAME_BYTES_ENOUGH } from '../../wire/data/frame.ts'
import { appendFrame } from '../../wire/data/load.ts'
import type { OpenedResult } from '../../wire/data/types.ts'
import type { Flow } from '../data/types.ts'
import type { RangeLeader } from '../range/leader.ts'
import type { Channels } from './channels.ts'
import { EntrySource } from './entry-source.ts'
import type { Sending } from './sending.ts'

const NOT_YET_MS_LEAST = 5
const NOT_YET_MS_MOST = 100
const NO_FRAMES: readonly Uint8Array[] = []

export class Outgoing implements Sending {
  readonly leader: RangeLeader
  private readonly channels: Channels
  private streams: FollowerStream[] = []
  private source: EntrySource | undefined

  constructor(leader: RangeLeader, channels: Channels) {
    this.leader = leader
    this.channels = channels
  }

  open(segment: SegmentLeader | undefined): void {
    this.close()
    if (segment === undefined) return
    const { leader, channels } = this
    const { key } = leader.copy
    const { followers } = leader
    const source = new EntrySource(() => leader.copy.log, placeOfKey(key), followers.length)
    this.source = source
    this.streams = followers.map((node) => new FollowerStream(leader, node, key, source, channels))
  }

  appended(): void {
    for (const stream of this.streams) stream.appended()
  }

  committed(): void {
    const { log } = this.leader.copy
    if (log !== undefined && log.highWatermark === log.end) this.source?.forget()
    for (const stream of this.streams) stream.committed()
  }

  close(): void {
    for (const stream of this.streams) stream.close()
    this.streams = []
    this.source = undefined
  }
}

type StreamState = 'down' | 'opening' | 'streaming' | 'over'

export class FollowerStream {
  readonly node: NodeId
  readonly channel: number
  private readonly leader: RangeLeader
  private readonly key: SegmentKey
  private readonly source: EntrySource
  private readonly channels: Channels
  private readonly flow: Flow
  private state: StreamState = 'down'
  /** Of the follower's broker, when the stream was first opened. */
  private boot: number | undefined
  /** The next entry to be sent. */
  private next = 0
  private toldHighWatermark = 0
  private notYetMs = NOT_YET_MS_LEAST

  constructor(
    leader: RangeLeader,
    node: NodeId,
    key: SegmentKey,
    source: EntrySource,
    channels: Channels,
  ) {
    this.leader = leader
    this.node = node
    this.key = key
    this.source = source
    this.channels = channels
    this.channel = channels.add(this)
    this.flow = channels.links.flow(node, {
      way: 'out',
      bulk: false,
      fill: (budget) => this.fill(budget),
    })
    if (channels.bootOf(node) !== undefined) this.linkUp()
  }

  get highWatermark(): number {
    return this.leader.copy.log?.highWatermark ?? 0
  }

  private get end(): number {
    return this.leader.copy.log?.end ?? 0
  }

  /** Whether the follower has not been told yet. */
  get hasNews(): boolean {
    return this.state === 'streaming' && this.toldHighWatermark < this.highWatermark
  }

  told(): void {
    this.toldHighWatermark = this.highWatermark
  }

  linkUp(): void {
    if (this.state === 'over') return
    this.state = 'opening'
    const { key, channel, end, highWatermark } = this
    const { token } = this.leader.copy.open
    const sent = this.channels.links.send(this.node, {
      kind: 'open',
      channel,
      key,
      token,
      end,
      highWatermark,
    })
    if (!sent) this.openAgain()
  }

  linkDown(): void {
    if (this.state !== 'over') this.state = 'down'
  }

  private openAgain(): void {
    this.state = 'down'
    const ms = this.notYetMs
    this.notYetMs = Math.min(NOT_YET_MS_MOST, 2 * ms)
    this.leader.context.clock.after(ms, () => {
      if (this.state === 'down' && this.channels.bootOf(this.node) !== undefined) this.linkUp()
    })
  }

  opened(boot: number, result: OpenedResult): void {
    if (this.state !== 'opening') return
    if (result.kind === 'not-yet') return this.openAgain()
    if (result.kind === 'refused') return this.fail(`it refuses the segment: ${result.why}`)
    this.boot ??= boot
    if (this.boot !== boot) return this.fail('it has restarted')
    const { next, durableEnd } = result
    const { end } = this
    if (next > end) return this.fail(`it has ${next} entries, there are ${end}`)
    this.state = 'streaming'
    this.notYetMs = NOT_YET_MS_LEAST
    this.next = next
    this.toldHighWatermark = -1
    this.leader.acked(this.node, durableEnd)
    if (this.next < this.end) this.flow.ready()
    else this.channels.tellSoon(this)
  }

  acked(end: number): void {
    if (this.state === 'streaming') this.leader.acked(this.node, end)
  }

  refused(entryNumber: number, why: string): void {
    if (this.state !== 'over') this.fail(`it refuses entry ${entryNumber}: ${why}`)
  }

  private fail(why: string): void {
    this.close()
    this.leader.failed(this.node, why)
  }

  appended(): void {
    if (this.state === 'streaming') this.flow.ready()
  }

  committed(): void {
    if (this.state === 'streaming' && this.next >= this.end) this.channels.tellSoon(this)
  }

  private fill(budgetBytes: number): readonly Uint8Array[] {
    if (this.state !== 'streaming' || this.next >= this.end) return NO_FRAMES
    const encoded = this.source.read(this.next, Math.min(budgetBytes, DATA_FRAME_BYTES_ENOUGH))
    if (encoded === undefined) {
      this.fail(`entry ${this.next} is not in memory any more`)
      return NO_FRAMES
    }
    if (encoded.count === 0) return NO_FRAMES
    this.next += encoded.count
    this.told()
    return appendFrame({ channel: this.channel, highWatermark: this.toldHighWatermark }, encoded)
  }

  close(): void {
    if (this.state === 'over') return
    this.state = 'over'
    this.flow.close()
    this.channels.delete(this)
  }
}
