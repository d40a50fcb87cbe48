// A broker that somebody has removed from its cluster for good. It says so, gives back what it holds, and when it has held
// nothing for a moment its owner ends it: under its id it will never be given anything again.
//
//   a member ── SetNodeRole removed ──> told, not ready ── holds no shard and no segment, for a while ──> onEmpty, once

import type { NodeId } from '../model/ids.ts'
import type { Clock, Timer } from '../ports/clock.ts'
import type { Log } from '../ports/log.ts'

/** How often the broker looks whether it was removed: nothing hangs on the moment. */
const LOOK_MS = 1000
/** Others may still ask it who keeps now what it kept. */
const EMPTY_MS = 5000

export interface RemovalOptions {
  readonly clock: Clock
  readonly log: Log
  /** As the metadata says it of this broker. */
  removed(): boolean
  /** Shards and segments that this broker keeps, by the committed log. */
  held(): number
  onEmpty(): void
}

export class Removal {
  /** Why the broker is not ready; undefined while it belongs to its cluster. */
  reason: string | undefined
  private readonly options: RemovalOptions
  private timer: Timer | undefined
  private emptySince: number | undefined

  constructor(options: RemovalOptions) {
    this.options = options
    this.look()
  }

  stop(): void {
    this.timer?.cancel()
  }

  private look(): void {
    if (this.options.removed() && this.isOver()) return this.options.onEmpty()
    this.timer = this.options.clock.after(LOOK_MS, () => this.look())
  }

  private isOver(): boolean {
    const { clock, log } = this.options
    const held = this.options.held()
    if (this.reason === undefined) {
      log.warn(
        'this broker was removed from its cluster for good: it stops when it holds no shard and no segment',
        {
          held,
          hint: 'to use the machine again, start a broker on an empty data directory: it joins as a new one',
        },
      )
    }
    this.reason = `the broker was removed from its cluster for good, holds ${held} shards and segments, and stops when it holds none`
    const now = clock.monotonic()
    this.emptySince = held > 0 ? undefined : (this.emptySince ?? now)
    return this.emptySince !== undefined && now - this.emptySince >= EMPTY_MS
  }
}

interface Segment {
  readonly replicas: readonly NodeId[]
  readonly tail: { readonly holders: readonly NodeId[] } | undefined
}

interface Topic {
  readonly ranges: readonly { readonly segments: readonly Segment[] }[]
}

/** Those that it has a replica of, or the last entries: until a segment is settled its own replicas may lack them. */
export function segmentsHeld(topics: Iterable<Topic>, node: NodeId): number {
  let count = 0
  for (const { ranges } of topics) {
    for (const { segments } of ranges) {
      for (const { replicas, tail } of segments) {
        if (replicas.includes(node) || tail?.holders.includes(node) === true) count++
      }
    }
  }
  return count
}
