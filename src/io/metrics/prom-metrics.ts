// The metrics port over prom-client, with a registry of its own per broker, so that several can live in one process.

import * as prom from 'prom-client'
import type { Counter, Histogram, Metrics } from '../../ports/metrics.ts'

/** `processMetrics` adds Node's own (memory, event loop lag, garbage collection): one broker per process should. */
export function promMetrics(processMetrics: boolean): Metrics {
  const own = new prom.Registry()
  if (processMetrics) prom.collectDefaultMetrics({ register: own })
  return {
    counter(name: string, help: string): Counter {
      const counter = new prom.Counter({ name, help, registers: [own] })
      return { add: (amount) => counter.inc(amount) }
    },
    gauge(name: string, help: string, read: () => number): void {
      const gauge: prom.Gauge = new prom.Gauge({
        name,
        help,
        registers: [own],
        collect: (): void => gauge.set(read()),
      })
    },
    histogram(name: string, help: string, buckets: readonly number[]): Histogram {
      const histogram = new prom.Histogram({
        name,
        help,
        buckets: [...buckets],
        registers: [own],
      })
      return { observe: (value) => histogram.observe(value) }
    },
    render: () => own.metrics(),
  }
}
