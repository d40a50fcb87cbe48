// PRODUCE frames without an answer yet, and what becomes of those that wait for a broker that leads no more. A dead machine
// does not say that it is dead: a connection to it opens for seconds, or stands and is silent. So a frame that has waited for
// a while has its topics looked up again, and whoever leads elsewhere by then is taken out of it and goes there:
//
//   not yet sent                     taken back, as if it had never been given
//   sent, the lane is idempotent     its answer is waited for no more: sent again, it is stored once
//   sent, the lane is not            stays; only the end of the connection tells that no answer comes

import type { Clock, Timer } from '../../ports/clock.ts'
import type { BrokerConnection } from '../connection.ts'
import type { ProducerBatch } from './batch.ts'
import type { Lane, ProducerTopic } from './sender.ts'
import { hasMoved, targetOf } from './target.ts'

export interface Part {
  readonly lane: Lane
  readonly batch: ProducerBatch
  /** The segment whose leader it went to. */
  readonly segment: number
  /** Went elsewhere meanwhile: what this frame comes to no longer matters to it. */
  moved: boolean
}

export interface Flight {
  readonly connection: BrokerConnection
  readonly parts: readonly Part[]
  requestId: number
  sentAtMs: number
}

interface FlightHooks {
  /** Has the topic looked up; `reroute` tells what comes of it. */
  refresh(topic: ProducerTopic): void
  /** The part is to be sent again. `maybeArrived`: it may have reached the broker. */
  again(part: Part, maybeArrived: boolean): void
}

/** How long a frame waits for its answer before its topics are looked up again. */
const STALLED_MS = 1000
/** How long one waits that has no connection: its broker may be gone, and another lead soon. */
const UNCONNECTED_MS = 250

export class Flights {
  private readonly clock: Clock
  private readonly hooks: FlightHooks
  private readonly flying = new Set<Flight>()
  private timer: Timer | undefined

  constructor(clock: Clock, hooks: FlightHooks) {
    this.clock = clock
    this.hooks = hooks
  }

  add(flight: Flight): void {
    this.flying.add(flight)
    this.timer ??= this.clock.after(UNCONNECTED_MS, () => this.look())
  }

  /** It has its outcome. */
  end(flight: Flight): void {
    this.flying.delete(flight)
    if (this.flying.size > 0) return
    this.timer?.cancel()
    this.timer = undefined
  }

  private look(): void {
    this.timer = this.clock.after(UNCONNECTED_MS, () => this.look())
    const nowMs = this.clock.monotonic()
    const topics = new Set<ProducerTopic>()
    for (const { connection, sentAtMs, parts } of this.flying) {
      if (nowMs - sentAtMs < (connection.ready ? STALLED_MS : UNCONNECTED_MS)) continue
      for (const { lane, moved } of parts) if (!moved) topics.add(lane.topic)
    }
    for (const topic of topics) this.hooks.refresh(topic)
  }

  /** Its route is another: those that wait for brokers that lead no more leave them. */
  reroute(topic: ProducerTopic): void {
    for (const flight of this.flying) {
      if (flight.parts.some((part) => part.lane.topic === topic && leadsElsewhere(flight, part))) {
        this.leave(flight)
      }
    }
  }

  private leave(flight: Flight): void {
    const { connection, requestId, parts } = flight
    if (connection.withdraw(requestId)) {
      this.end(flight)
      for (const part of parts) if (!part.moved) this.hooks.again(part, false)
      return
    }
    for (const part of parts) {
      if (!part.lane.queue.idempotent || !leadsElsewhere(flight, part)) continue
      part.moved = true
      this.hooks.again(part, true)
    }
    if (!parts.every(({ moved }) => moved)) return
    connection.forget(requestId)
    this.end(flight)
  }
}

function leadsElsewhere({ connection }: Flight, { lane, segment, moved }: Part): boolean {
  return !moved && hasMoved(targetOf(lane), { address: connection.address, segment })
}
