// Brokers that failed at something lately, and are left out of it for a while: for longer each time, up to ten seconds. Who has
// not failed for a minute is forgotten.

import type { NodeId } from '../../model/ids.ts'

/** Longer than SWIM takes to find that it is dead. */
const LEAST_MS = 7000
const MOST_MS = 10_000
const FORGET_MS = 60_000

export class Avoided {
  private readonly failures = new Map<NodeId, { times: number; untilMs: number }>()

  failed(node: NodeId, nowMs: number): void {
    const times = (this.failures.get(node)?.times ?? 0) + 1
    this.failures.delete(node)
    this.failures.set(node, { times, untilMs: nowMs + pauseMs(times, LEAST_MS) })
  }

  /** It did not fail. */
  forgive(node: NodeId): void {
    this.failures.delete(node)
  }

  has(node: NodeId, nowMs: number): boolean {
    return (this.failures.get(node)?.untilMs ?? nowMs) > nowMs
  }

  /** Who failed last comes last. */
  at(nowMs: number): Set<NodeId> {
    const now = new Set<NodeId>()
    for (const [node, { untilMs }] of this.failures) {
      if (untilMs > nowMs) now.add(node)
      else if (nowMs - untilMs > FORGET_MS) this.failures.delete(node)
    }
    return now
  }
}

/** Doubles with every failure, up to ten seconds. */
export function pauseMs(failures: number, leastMs: number): number {
  return Math.min(MOST_MS, leastMs * 2 ** Math.min(failures - 1, 20))
}
