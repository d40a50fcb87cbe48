// Produces that wait without a number: the range is loading or rolling, or the store has no room at the moment. They wait
// in the order they came and leave in that order. Bounded twice: by the time their producer allows, and by the bytes that
// one broker holds in all its ranges together, so that a stuck disk cannot take the memory.

import type { ProduceSink } from '../sinks.ts'
import type { RangeLeader } from './leader.ts'

export interface HeldProduce {
  readonly partition: number
  readonly batch: Uint8Array
  readonly leastKeyHash: number
  readonly greatestKeyHash: number
  readonly acks: number
  /** On clock.monotonic. */
  readonly deadline: number
  readonly sink: ProduceSink
  readonly slot: number
}

/** What all ranges of a broker hold together. */
export class HeldBudget {
  bytes = 0
  readonly bytesMax: number

  constructor(bytesMax: number) {
    this.bytesMax = bytesMax
  }
}

/** The ranges with produces that wait. */
export class Holding {
  private readonly leaders = new Set<RangeLeader>()
  /** Called when there were none and now there is one: whoever looks at deadlines has nothing to do before. */
  onFirst: () => void = () => {}

  get size(): number {
    return this.leaders.size
  }

  add(leader: RangeLeader): void {
    this.leaders.add(leader)
    if (this.leaders.size === 1) this.onFirst()
  }

  delete(leader: RangeLeader): void {
    this.leaders.delete(leader)
  }

  /** A copy: they come and go while they are walked. */
  all(): readonly RangeLeader[] {
    return [...this.leaders]
  }
}

export class HeldQueue {
  private queue: HeldProduce[] = []
  private head = 0
  private readonly budget: HeldBudget

  constructor(budget: HeldBudget) {
    this.budget = budget
  }

  get size(): number {
    return this.queue.length - this.head
  }

  /** False when the broker holds too much already. */
  push(held: HeldProduce): boolean {
    const { bytes, bytesMax } = this.budget
    // With nothing held one batch is taken whatever its size: it would be refused for ever otherwise.
    if (bytes > 0 && bytes + held.batch.length > bytesMax) return false
    this.budget.bytes += held.batch.length
    this.queue.push(held)
    return true
  }

  peek(): HeldProduce | undefined {
    return this.queue[this.head]
  }

  shift(): HeldProduce | undefined {
    const held = this.queue[this.head]
    if (held === undefined) return undefined
    this.head++
    this.budget.bytes -= held.batch.length
    if (this.head === this.queue.length) {
      this.queue = []
      this.head = 0
    } else if (this.head >= 1024 && 2 * this.head > this.queue.length) {
      this.queue = this.queue.slice(this.head)
      this.head = 0
    }
    return held
  }

  /** Takes out those whose deadline has passed, keeping the order of the others. */
  expire(now: number, tell: (held: HeldProduce) => void): void {
    const late = this.queue.filter((held, i) => i >= this.head && held.deadline <= now)
    if (late.length === 0) return
    this.queue = this.queue.slice(this.head).filter((held) => held.deadline > now)
    this.head = 0
    for (const held of late) {
      this.budget.bytes -= held.batch.length
      tell(held)
    }
  }
}
