// What the care of a segment has to tell people: log lines, and the trouble that there is now, which is logged once.

import type { LogEffect } from './care-types.ts'
import type { OpenSegment } from './open-segment.ts'
import type { EndReason } from './types.ts'

type Detail = Readonly<Record<string, unknown>>

export class Report {
  /** What is wrong now. */
  trouble: string | undefined
  private readonly lines: LogEffect[] = []
  private readonly about: () => Detail

  /** `about`: which segment, as it is when something is said. */
  constructor(about: () => Detail) {
    this.about = about
  }

  say(level: LogEffect['level'], text: string, detail: Detail = {}): void {
    this.lines.push({ kind: 'log', level, text, detail: { ...this.about(), ...detail } })
  }

  /** Says it once, as long as it is so. */
  wrong(text: string, detail: Detail = {}): void {
    if (this.trouble === text) return
    this.trouble = text
    this.say('error', text, detail)
  }

  /** Once, too, what may be wrong with many segments for one reason. */
  shortage(level: LogEffect['level'], text: string): void {
    if (this.trouble === text) return
    this.trouble = text
    this.lines.push({ kind: 'log', level, text, detail: this.about(), shared: true })
  }

  take(): readonly LogEffect[] {
    return this.lines.splice(0)
  }
}

export function tellUnavailable(report: Report, { fencing }: OpenSegment): void {
  const text = 'unavailable: no replica of the open segment is there that surely has all of it'
  report.wrong(text, { answers: fencing?.told() })
}

/** Something was readable that is not below the end: then there is none, but by an operator's word. */
export function isDamaged(
  report: Report,
  { highWatermark, fencing }: OpenSegment,
  { end, why }: { readonly end: number; readonly why: EndReason },
): boolean {
  if (end >= highWatermark || why === 'forced') return false
  const text = 'damaged: entries of the open segment were readable that no replica has now'
  report.wrong(text, { end, highWatermark, answers: fencing?.told() })
  return true
}

export function tellForced(report: Report, open: OpenSegment, end: number): void {
  const { highWatermark, fencing } = open
  const lost = Math.max(0, highWatermark - end)
  const text = `an operator ends a segment at ${end}: at least ${lost} entries that were readable are lost`
  report.say('error', text, { highWatermark, answers: fencing?.told() })
}
