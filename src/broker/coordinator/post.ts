// What a broker says about segments in one turn, gathered: one frame for each peer when the turn is over, and a call for what
// it says to itself. A coordinator so need not know whether a replica is its own.

import type { NodeId } from '../../model/ids.ts'
import type { Clock } from '../../ports/clock.ts'
import type { SegmentMessage } from '../../wire/peer/segments.ts'

export interface PostOptions {
  readonly clock: Pick<Clock, 'nextTurn'>
  readonly nodeId: NodeId
  /** To another broker, unless it is lost on the way. */
  send(to: NodeId, messages: readonly SegmentMessage[]): void
  /** To this one. */
  receive(from: NodeId, messages: readonly SegmentMessage[]): void
}

export class Post {
  private readonly options: PostOptions
  private outgoing = new Map<NodeId, SegmentMessage[]>()
  private waits = false
  private stopped = false

  constructor(options: PostOptions) {
    this.options = options
  }

  send(to: NodeId, message: SegmentMessage): void {
    const waiting = this.outgoing.get(to)
    if (waiting === undefined) this.outgoing.set(to, [message])
    else waiting.push(message)
    if (this.waits) return
    this.waits = true
    this.options.clock.nextTurn(() => this.deliver())
  }

  private deliver(): void {
    this.waits = false
    if (this.stopped) return
    const { outgoing, options } = this
    this.outgoing = new Map()
    for (const [to, messages] of outgoing) {
      if (to === options.nodeId) options.receive(to, messages)
      else options.send(to, messages)
    }
  }

  stop(): void {
    this.stopped = true
  }
}
