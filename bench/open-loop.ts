// Sends at a fixed rate whatever comes back. Latency counts from when a record should have been sent, so that a stall is not
// hidden: what could not be sent meanwhile has waited too.

import { build, type Histogram } from 'hdr-histogram-js'
import { pause } from '../test/support/time.ts'

export interface OpenLoopResult {
  readonly latency: Histogram
  readonly sent: number
  readonly errors: number
  /** Between two acknowledgements, or an end and the nearest of them. */
  readonly longestGapMs: number
}

/** In microseconds, up to a minute. */
export function latencyHistogram(): Histogram {
  return build({
    lowestDiscernibleValue: 1,
    highestTrackableValue: 60_000_000,
    numberOfSignificantValueDigits: 3,
  })
}

export function recordSince(histogram: Histogram, sinceMs: number): void {
  histogram.recordValue(Math.max(1, Math.round((performance.now() - sinceMs) * 1000)))
}

/** Until `until` has settled; resolves when each `send` has. `n` counts from 0. */
export async function openLoop(
  perSecond: number,
  until: Promise<unknown>,
  send: (n: number, intendedMs: number) => Promise<unknown>,
): Promise<OpenLoopResult> {
  const latency = latencyHistogram()
  const waiting = new Set<Promise<void>>()
  const began = performance.now()
  let errors = 0
  let lastMs = began
  let longestGapMs = 0
  let over = false
  const end = (): void => {
    over = true
  }
  until.then(end, end)
  const answered = (): void => {
    const now = performance.now()
    longestGapMs = Math.max(longestGapMs, now - lastMs)
    lastMs = now
  }
  const one = async (n: number): Promise<void> => {
    const intendedMs = began + (n * 1000) / perSecond
    try {
      await send(n, intendedMs)
      recordSince(latency, intendedMs)
      answered()
    } catch {
      errors++
    }
  }
  let sent = 0
  while (!over) {
    const due = Math.floor(((performance.now() - began) * perSecond) / 1000)
    for (; sent < due; sent++) {
      const settled: Promise<void> = one(sent).finally(() => waiting.delete(settled))
      waiting.add(settled)
    }
    await pause(1)
  }
  await Promise.all(waiting)
  answered()
  return { latency, sent, errors, longestGapMs }
}
