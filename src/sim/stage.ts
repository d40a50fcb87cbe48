// What every run of a cluster has: a world, its story and what is wrong with it, and a way to go on until something has come
// true. Between two events all promises settle (ports/clock.ts).

import type { Watcher } from './machine.ts'
import type { Loop } from './storage/scenario.ts'
import { type NetworkConditions, simWorld, type World } from './world.ts'

/** How often is looked whether something has come true. */
const LOOK_MS = 100
/** No run needs more; one that does goes round in circles. */
const EVENTS_MAX = 5_000_000

export class Stage implements Watcher {
  readonly world: World
  protected readonly story: string[] = []
  protected readonly wrong: string[] = []
  protected events = 0
  private readonly loop: Loop

  constructor(seed: number, loop: Loop, conditions: NetworkConditions = {}) {
    this.world = simWorld(seed, conditions)
    this.loop = loop
  }

  say(line: string): void {
    this.story.push(`${this.world.clock.monotonic().toFixed(3).padStart(10)} ${line}`)
  }

  violation(what: string): void {
    this.wrong.push(what)
    this.say(`VIOLATION: ${what}`)
  }

  /** Runs it once that has come true. */
  protected when(what: () => boolean, run: () => void): void {
    if (what()) run()
    else this.world.clock.after(LOOK_MS, () => this.when(what, run))
  }

  /** Resolves when that has come true, or something is wrong: it never coming true is. */
  protected async until(what: string, done: () => boolean, withinMs: number): Promise<void> {
    if (this.wrong.length > 0) return
    const { clock } = this.world
    const deadline = clock.monotonic() + withinMs
    const over = (): boolean =>
      clock.monotonic() > deadline || ++this.events > EVENTS_MAX || this.wrong.length > 0
    const ended = (): boolean => {
      this.noteUncaught()
      return done() || over()
    }
    // Between any two events is a settling: each promise more that it takes is seen in the time of a run.
    try {
      await clock.runUntil(ended, () => this.loop.settle())
    } catch (error) {
      // An event threw: that ends a real process.
      this.violation(`nobody caught ${error instanceof Error ? error.stack : String(error)}`)
    }
    if (!done() && this.wrong.length === 0) this.violation(`never came true: ${what}`)
  }

  /** Resolves when all of them have ended; what one resolves with is wrong, and that it rejects. */
  protected async untilAll(
    what: string,
    work: readonly Promise<string | undefined>[],
    withinMs: number,
  ): Promise<void> {
    let left = work.length
    for (const one of work) {
      one.then(
        (failure) => {
          left--
          if (failure !== undefined) this.violation(`${what}: ${failure}`)
        },
        (error: unknown) => {
          left--
          this.violation(`${what}: ${error instanceof Error ? error.stack : String(error)}`)
        },
      )
    }
    await this.until(what, () => left === 0, withinMs)
  }

  private noteUncaught(): void {
    const error = this.loop.uncaught()
    if (error !== undefined) this.violation(`nobody caught ${error.stack ?? error.message}`)
  }
}
