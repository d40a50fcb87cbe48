// How long creations may be held up at brokers that live, and how long they were. Bounds are widened by what the machine took
// from the brokers meanwhile (waits.ts); both are told.
//
//   kill, pause   between two creations that succeed: GAP_MS
//   stop          whoever stops hands over first: no creation fails, none takes longer than CREATE_MS

import type { Kind } from './faults.ts'
import type { Keeper } from './keeper.ts'
import type { Waits } from './waits.ts'

const GAP_MS = 3000
const CREATE_MS = 1000

interface Found {
  readonly ms: number
  /** Of it, for a processor. */
  readonly starvedMs: number
}

export class Bounds {
  readonly violations: string[] = []
  private readonly waits: Pick<Waits, 'between'>
  private readonly found = new Map<string, Found[]>()

  constructor(waits: Pick<Waits, 'between'>) {
    this.waits = waits
  }

  /** Those at brokers that lived through it; what was found, as the end of a line. */
  judge(kind: Kind, keepers: readonly Keeper[], sinceMs: number): string {
    if (keepers.length === 0) return ''
    const gaps = keepers.map((keeper) => {
      const { fromMs, toMs } = keeper.longestGap(sinceMs)
      return this.of(fromMs, toMs)
    })
    const gap = longest(gaps)
    this.note(`${kind}, gap`, gap)
    const told = `, longest gap ${tell(gap)}`
    if (kind !== 'stop') {
      if (gap.ms > GAP_MS + gap.starvedMs) {
        this.violations.push(`after a ${kind} no creation succeeded for ${tell(gap)}`)
      }
      return told
    }
    const slowest = this.judgeStop(keepers, sinceMs)
    this.note('stop, creation', slowest)
    return `${told}, slowest creation ${tell(slowest)}`
  }

  private judgeStop(keepers: readonly Keeper[], sinceMs: number): Found {
    const creations = keepers.flatMap((keeper) => keeper.creations)
    const all = creations.filter(({ endedMs }) => endedMs >= sinceMs)
    for (const { name, beganMs, endedMs, code } of all) {
      const took = this.of(beganMs, endedMs)
      if (code !== undefined) {
        this.violations.push(`${name} came to ${code} after ${tell(took)} while another stopped`)
      } else if (took.ms > CREATE_MS + took.starvedMs) {
        this.violations.push(`${name} took ${tell(took)} while another stopped`)
      }
    }
    return longest(all.map(({ beganMs, endedMs }) => this.of(beganMs, endedMs)))
  }

  /** A line for each kind of bound: the median, and the longest. */
  summary(): readonly string[] {
    return [...this.found].map(([what, all]) => {
      const sorted = all.toSorted((a, b) => a.ms - b.ms)
      const middle = sorted[Math.floor((sorted.length - 1) / 2)]
      const last = sorted.at(-1)
      return `  ${what}: of ${all.length} the median ${tell(middle)}, the longest ${tell(last)}`
    })
  }

  private of(fromMs: number, toMs: number): Found {
    return { ms: toMs - fromMs, starvedMs: this.waits.between(fromMs, toMs) }
  }

  private note(what: string, one: Found): void {
    this.found.set(what, [...(this.found.get(what) ?? []), one])
  }
}

function longest(all: readonly Found[]): Found {
  return all.reduce((a, b) => (b.ms > a.ms ? b : a), { ms: 0, starvedMs: 0 })
}

function tell(found: Found | undefined): string {
  if (found === undefined) return 'nothing'
  return `${Math.round(found.ms)} ms (${Math.round(found.starvedMs)} for a processor)`
}
