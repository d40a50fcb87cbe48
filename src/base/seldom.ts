// What happens again and again is told once, and then now and then with how often it was not told: a log that repeats itself
// hides what else it says, and whoever makes it happen must not be able to fill a disk.
//
//   told: 0     not   not        │ told: 2     not  │ nothing happens │ told: 1
//   ├──────── everyMs ───────────┼──────── everyMs ─┼─ ── ── ── ── ── ┼────
//
// Things are kept apart by names. Beyond `namesMax` of them in one period all others share a name: memory is bounded, and so is
// what is told.

const OTHERS = ''

interface Told {
  readonly sinceMs: number
  untold: number
}

export class Seldom {
  private readonly everyMs: number
  private readonly namesMax: number
  /** The longest told first. */
  private readonly told = new Map<string, Told>()

  constructor(everyMs: number, namesMax: number) {
    this.everyMs = everyMs
    this.namesMax = namesMax
  }

  /** It has happened. How often it was not told since it was told last; undefined: now it is not to be told either. */
  next(name: string, nowMs: number): number | undefined {
    const known = this.told.has(name) || this.hasRoom(nowMs) ? name : OTHERS
    const last = this.told.get(known)
    if (last !== undefined && nowMs - last.sinceMs < this.everyMs) {
      last.untold++
      return undefined
    }
    this.told.delete(known)
    this.told.set(known, { sinceMs: nowMs, untold: 0 })
    return last?.untold ?? 0
  }

  private hasRoom(nowMs: number): boolean {
    if (this.told.size < this.namesMax) return true
    for (const [name, { sinceMs }] of this.told) {
      if (nowMs - sinceMs < this.everyMs) break
      this.told.delete(name)
    }
    return this.told.size < this.namesMax
  }
}
