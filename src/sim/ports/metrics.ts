// Metrics as plain sums, rendered in the same text format as the real ones.

import { assert } from '../../base/assert.ts'
import type { Metrics } from '../../ports/metrics.ts'

export function simMetrics(): Metrics {
  const readers = new Map<string, () => string>()
  const add = (name: string, help: string, kind: string, body: () => string): void => {
    assert(!readers.has(name), `the metric ${name} is made once`)
    readers.set(name, () => `# HELP ${name} ${help}\n# TYPE ${name} ${kind}\n${body()}`)
  }
  return {
    counter: (name, help) => {
      let sum = 0
      add(name, help, 'counter', () => `${name} ${sum}\n`)
      return {
        add: (amount) => {
          sum += amount
        },
      }
    },
    gauge: (name, help, read) => add(name, help, 'gauge', () => `${name} ${read()}\n`),
    histogram: (name, help, buckets) => {
      const counts = buckets.map(() => 0)
      let count = 0
      let sum = 0
      add(name, help, 'histogram', () => {
        const lines = buckets.map((le, i) => `${name}_bucket{le="${le}"} ${counts[i]}\n`)
        return `${lines.join('')}${name}_bucket{le="+Inf"} ${count}\n${name}_sum ${sum}\n${name}_count ${count}\n`
      })
      return {
        observe: (value) => {
          count++
          sum += value
          for (let i = 0; i < buckets.length; i++) {
            if (value <= (buckets[i] as number)) counts[i] = (counts[i] as number) + 1
          }
        },
      }
    },
    render: async () => [...readers.values()].map((read) => read()).join(''),
  }
}
