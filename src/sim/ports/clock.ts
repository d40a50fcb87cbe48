// Virtual time. Nothing happens by itself: whoever holds the clock runs the events, in order of their due time and,
// at the same time, in the order in which they were asked for. Between two events all promises must settle, or a
// continuation would run late, at a moment that no seed decides; how to wait for that is given from outside (`settle`,
// usually setImmediate), because it takes a real event loop.
//
//   now ──────────┬────────┬──────────────────> time
//                 │ event  │ event, event      step() jumps to the first and runs it
//                 └ settle └ settle, settle    advance(ms) runs all that is due by then

import { assert } from '../../base/assert.ts'
import type { Clock, Timer } from '../../ports/clock.ts'

/** Where the wall clock stands when a simulation begins: 2026-01-01T00:00:00Z. */
const WALL_START_MS = 1_767_225_600_000

interface Event {
  readonly due: number
  readonly order: number
  run: (() => void) | undefined
}

export class SimClock implements Clock {
  private now = 0
  private order = 0
  private readonly heap: Event[] = []
  private wallShiftMs = 0

  monotonic(): number {
    return this.now
  }

  wall(): number {
    return Math.floor(WALL_START_MS + this.now + this.wallShiftMs)
  }

  /** The wall clock jumps, as when somebody sets it. */
  shiftWall(ms: number): void {
    this.wallShiftMs += ms
  }

  after(ms: number, run: () => void): Timer {
    const event: Event = { due: this.now + Math.max(0, ms), order: this.order++, run }
    push(this.heap, event)
    return {
      cancel: () => {
        event.run = undefined
      },
    }
  }

  nextTurn(run: () => void): void {
    this.after(0, run)
  }

  /** Jumps to the next event and runs it. False when there is none. */
  step(): boolean {
    for (;;) {
      const event = pop(this.heap)
      if (event === undefined) return false
      const { run } = event
      if (run === undefined) continue
      assert(event.due >= this.now, 'time never goes back')
      this.now = event.due
      run()
      return true
    }
  }

  /** Runs everything that is due within `ms`, and ends that much later. */
  async advance(ms: number, settle: () => Promise<void>): Promise<void> {
    const until = this.now + ms
    await settle()
    for (;;) {
      const first = this.heap[0]
      if (first === undefined || first.due > until) break
      if (first.run === undefined) pop(this.heap)
      else {
        this.step()
        await settle()
      }
    }
    this.now = until
  }

  /** Runs events until `done` says so. Throws when there are none left before. */
  async runUntil(done: () => boolean, settle: () => Promise<void>): Promise<void> {
    await settle()
    while (!done()) {
      assert(this.step(), 'the simulation has come to a standstill')
      await settle()
    }
  }
}

function before(a: Event, b: Event): boolean {
  return a.due < b.due || (a.due === b.due && a.order < b.order)
}

/** A binary heap: the children of i are 2i+1 and 2i+2, and none comes before its parent. */
function push(heap: Event[], event: Event): void {
  let at = heap.length
  heap.push(event)
  while (at > 0) {
    const parentAt = (at - 1) >> 1
    const parent = heap[parentAt] as Event
    if (!before(event, parent)) break
    heap[at] = parent
    at = parentAt
  }
  heap[at] = event
}

function pop(heap: Event[]): Event | undefined {
  const first = heap[0]
  const last = heap.pop()
  if (first === undefined || last === undefined || first === last) return first
  let at = 0
  for (;;) {
    let childAt = 2 * at + 1
    const left = heap[childAt]
    if (left === undefined) break
    const right = heap[childAt + 1]
    if (right !== undefined && before(right, left)) childAt++
    const child = heap[childAt] as Event
    if (!before(child, last)) break
    heap[at] = child
    at = childAt
  }
  heap[at] = last
  return first
}
