// PRODUCE frames without an answer yet, and what becomes of those that wait for a broker that leads no more. A dead machine
// does not say that it is dead: a connection to it opens for seconds, or stands and is silent. So a frame that has waited for
// a while has its topics looked up again, and whoever leads elsewhere by then is taken out of it and goes there:
//
//   not yet sent                     taken back, as if it had never been given
//   sent, the lane is idempotent     its answer is waited for no more: sent again, it is stored once
//   sent, the lane is not            stays; only the end of the connection tells that no answer comes

import type { Clock, Timer } from '../../ports/clock.ts'
import type { BrokerConnection } from '../connection.ts'
import { addressName } from '../route.ts'
import type { ProducerBatch } from './batch.ts'
import type { Lane, ProducerTopic } from './sender.ts'
import { targetOf } from './target.ts'

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
  refresh(topic: ProducerTopic): Promise<void>
  /** The part is to be sent again. `maybeArrived`: it may have reached the broker. */
  again(part: Part, maybeArrived: boolean): void
}

/** How long a frame waits before its topics are looked up again, and how often. */
const STALLED_MS = 1000

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
    this.timer ??= this.clock.after(STALLED_MS, () => this.look())
  }

  /** It has its outcome. */
  end(flight: Flight): void {
    this.flying.delete(flight)
    if (this.flying.size > 0) return
    this.timer?.cancel()
    this.timer = undefined
  }

  private look(): void {
    this.timer = this.clock.after(STALLED_MS, () => this.look())
    const beforeMs = this.clock.monotonic() - STALLED_MS
    const topics = new Set<ProducerTopic>()
    for (const { sentAtMs, parts } of this.flying) {
      if (sentAtMs > beforeMs) continue
      for (const { lane, moved } of parts) if (!moved) topics.add(lane.topic)
    }
    for (const topic of topics) void this.hooks.refresh(topic).then(() => this.reroute(topic))
  }

  private reroute(topic: ProducerTopic): void {
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
  const now = targetOf(lane)
  if (moved || now.segment <= segment || now.address === undefined) return false
  return addressName(now.address) !== connection.name
}
