// Many seeds on all processors: each worker takes every n-th, and the first that finds something ends it for all.

import { availableParallelism } from 'node:os'
import { Worker } from 'node:worker_threads'
import type { SeedsReport, SeedsTask } from './worker.ts'

export interface SeedsResult {
  readonly seeds: number
  readonly records: number
  readonly acknowledged: number
  readonly read: number
  readonly operations: number
  /** Some seed that violated something; of several the least that was met. */
  readonly failed: number | undefined
}

/** `progress` is called now and then with the number of seeds done. */
export async function runSeeds(
  first: number,
  count: number,
  progress: (done: number) => void = () => {},
  runs: SeedsTask['runs'] = 'seeds',
): Promise<SeedsResult> {
  const workers = Math.min(availableParallelism(), count)
  const running: Worker[] = []
  const sums = { seeds: 0, records: 0, acknowledged: 0, read: 0, operations: 0 }
  let failed: number | undefined
  const one = (index: number): Promise<void> =>
    new Promise((resolve, reject) => {
      const task: SeedsTask = { runs, first: first + index, step: workers, end: first + count }
      const worker = new Worker(new URL('worker.js', import.meta.url), { workerData: task })
      running.push(worker)
      worker.on('message', (report: SeedsReport) => {
        sums.seeds++
        sums.records += report.sent
        sums.acknowledged += report.acknowledged
        sums.read += report.read
        sums.operations += report.operations
        progress(sums.seeds)
        if (report.violations === 0) return
        failed = Math.min(failed ?? report.seed, report.seed)
        for (const other of running) void other.terminate()
      })
      worker.on('error', reject)
      worker.on('exit', () => resolve())
    })
  await Promise.all(Array.from({ length: workers }, (_, i) => one(i)))
  return { ...sums, failed }
}
