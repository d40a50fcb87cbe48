// One result is one line: what was measured, against which limit of this machine, with the whole latency
// distribution. People get a table, programs one JSON object per line with the fields that apply.

import Table from 'cli-table3'
import type { Histogram } from 'hdr-histogram-js'

export interface Result {
  readonly name: string
  readonly case: string
  readonly unit: string
  readonly value: number
  /** What this machine can do at most, probed in the same run, in the same unit. */
  readonly limit?: number
  readonly ratio?: number
  readonly p50_ms?: number
  readonly p99_ms?: number
  readonly p999_ms?: number
  readonly max_ms?: number
  readonly errors?: number
  /** Acknowledged, and not there for consumers. */
  readonly lost?: number
  /** The longest time without an acknowledgement. */
  readonly gap_ms?: number
}

/** Latencies are recorded in whole microseconds. */
export function latencies(histogram: Histogram): Partial<Result> {
  const ms = (percentile: number): number => histogram.getValueAtPercentile(percentile) / 1000
  return { p50_ms: ms(50), p99_ms: ms(99), p999_ms: ms(99.9), max_ms: histogram.maxValue / 1000 }
}

function shown(value: number | undefined): string {
  if (value === undefined) return ''
  if (value >= 1000) return Math.round(value).toLocaleString('en')
  return value >= 100 ? value.toFixed(0) : value.toFixed(2)
}

export function print(results: readonly Result[], json: boolean): void {
  if (json) {
    for (const result of results) process.stdout.write(`${JSON.stringify(result)}\n`)
    return
  }
  const head = [
    'name',
    'case',
    'value',
    'limit',
    'ratio',
    'p50 ms',
    'p99 ms',
    'p99.9 ms',
    'max ms',
    'errors',
    'lost',
    'gap ms',
  ]
  const table = new Table({ head, style: { head: [], border: [] } })
  for (const r of results) {
    table.push([
      r.name,
      r.case,
      `${shown(r.value)} ${r.unit}`,
      shown(r.limit),
      shown(r.ratio),
      shown(r.p50_ms),
      shown(r.p99_ms),
      shown(r.p999_ms),
      shown(r.max_ms),
      shown(r.errors),
      shown(r.lost),
      shown(r.gap_ms),
    ])
  }
  process.stdout.write(`${table.toString()}\n`)
}
