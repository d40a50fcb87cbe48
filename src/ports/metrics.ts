// Metric names are snake_case with the unit last (`eastguard_wal_sync_seconds`). Make them once, at start; the
// hot path then only adds numbers.

export interface Counter {
  add(amount: number): void
}
export interface Histogram {
  observe(value: number): void
}

export interface Metrics {
  counter(name: string, help: string): Counter
  /** `read` is called when the metrics are collected. */
  gauge(name: string, help: string, read: () => number): void
  histogram(name: string, help: string, buckets: readonly number[]): Histogram
  /** All metrics in the Prometheus text format. */
  render(): Promise<string>
}
