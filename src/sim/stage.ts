// What every run has: a world, its story and what is wrong with it, and a way to go on until something has come true. Between
// two events all promises settle (ports/clock.ts).

import { pause } from '../client/timing.ts'
import { checkLinearizable } from './linear/check.ts'
import type { Attempt } from './linear/types.ts'
import type { Watcher } from './machine.ts'
import { type NetworkConditions, simWorld, type World } from './world.ts'

/** How often is looked whether something has come true. */
const LOOK_MS = 100
const WELL_LOOK_MS = 200

/** What takes a real event loop, and so comes from outside. */
export interface Loop {
  /** Resolves when every promise that can go on has gone on. */
  settle(): Promise<void>
  /** An error that was thrown since and that nobody caught. */
  uncaught(): Error | undefined
}

export class Stage implements Watcher {
  readonly world: World
  protected readonly story: string[] = []
  protected readonly wrong: string[] = []
  /** No run needs more; one that does goes round in circles. */
  protected readonly eventsMax: number = 5_000_000
  private events = 0
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

  /** Nothing more is to be seen. */
  protected get over(): boolean {
    return this.wrong.length > 0
  }

  protected pause(ms: number): Promise<void> {
    return pause(this.world.clock, ms)
  }

  /** Runs it once that has come true. */
  protected when(what: () => boolean, run: () => void): void {
    if (what()) run()
    else this.world.clock.after(LOOK_MS, () => this.when(what, run))
  }

  /** Resolves when that has come true, or something is wrong: it never coming true is. */
  protected async until(what: string, done: () => boolean, withinMs: number): Promise<void> {
    if (this.over) return
    const { clock } = this.world
    const deadline = clock.monotonic() + withinMs
    const over = (): boolean =>
      clock.monotonic() > deadline || ++this.events > this.eventsMax || this.over
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
    if (!done() && !this.over) this.violation(`never came true: ${what}`)
  }

  /** Until `missing` names nothing any more; what it still names `withinMs` later is wrong. */
  protected async untilWell(missing: () => string | undefined, withinMs: number): Promise<void> {
    const { clock } = this.world
    const deadline = clock.monotonic() + withinMs
    let lookAt = 0
    let left: string | undefined = 'nothing was looked at'
    const look = (): boolean => {
      // Events are many, and a look costs more than most of them.
      if (clock.monotonic() >= lookAt) {
        lookAt = clock.monotonic() + WELL_LOOK_MS
        left = missing()
      }
      return left === undefined || clock.monotonic() > deadline
    }
    await this.until('all is as it should be', look, 2 * withinMs)
    if (left !== undefined && !this.over) this.violation(`it is not as it should be: ${left}`)
  }

  /** Resolves when all of them have ended; what one resolves with is wrong, and that it rejects. */
  protected async untilAll(
    what: string,
    work: readonly Promise<string | undefined | void>[],
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

  protected judgeHistories(attempts: readonly Attempt[]): void {
    const verdict = checkLinearizable(attempts)
    if (!verdict.ok) this.violation(`${verdict.name} has no order:\n${verdict.explanation}`)
  }

  private noteUncaught(): void {
    const error = this.loop.uncaught()
    if (error !== undefined) this.violation(`nobody caught ${error.stack ?? error.message}`)
  }
}
