import assert from 'node:assert/strict'
import { test } from 'node:test'
import { promMetrics } from '../../src/io/metrics/prom-metrics.ts'
import type { Metrics } from '../../src/ports/metrics.ts'
import { simMetrics } from '../../src/sim/ports/metrics.ts'

function metricsSuite(name: string, make: () => Metrics): void {
  test(`${name} metrics: what was counted is rendered in the Prometheus text format`, async () => {
    const metrics = make()
    const counter = metrics.counter('eastguard_requests_total', 'Requests.')
    let depth = 3
    metrics.gauge('eastguard_queue_depth', 'Depth.', () => depth)
    const seconds = metrics.histogram('eastguard_sync_seconds', 'Syncs.', [0.01, 0.1])
    counter.add(2)
    counter.add(3)
    depth = 4
    for (const value of [0.005, 0.05, 5]) seconds.observe(value)
    const lines = (await metrics.render()).split('\n')
    for (const line of [
      '# TYPE eastguard_requests_total counter',
      'eastguard_requests_total 5',
      'eastguard_queue_depth 4',
      'eastguard_sync_seconds_bucket{le="0.01"} 1',
      'eastguard_sync_seconds_bucket{le="0.1"} 2',
      'eastguard_sync_seconds_bucket{le="+Inf"} 3',
      'eastguard_sync_seconds_count 3',
    ]) {
      assert.ok(lines.includes(line), `"${line}" is missing`)
    }
  })

  test(`${name} metrics: two instances are apart, and a name is made once in each`, async () => {
    const [a, b] = [make(), make()]
    a.counter('c', 'C.').add(1)
    b.counter('c', 'C.').add(7)
    assert.match(await a.render(), /^c 1$/m)
    assert.match(await b.render(), /^c 7$/m)
    assert.throws(() => a.counter('c', 'C.'))
  })
}

metricsSuite('prometheus', () => promMetrics(false))
metricsSuite('simulated', simMetrics)
