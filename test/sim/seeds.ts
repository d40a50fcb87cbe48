// Many seeds on all processors: each worker takes every n-th, and the first that finds something ends it for all.

import { availableParallelism } from 'node:os'
import { setFlagsFromString } from 'node:v8'
import { Worker } from 'node:worker_threads'
import type { SeedsReport, SeedsTask } from './worker.ts'

export interface SeedsResult {
  readonly seeds: number
  /** Of all seeds together. */
  readonly counts: Readonly<Record<string, number>>
  /** Of each seed's story. */
  readonly digests: ReadonlyMap<number, string>
  /** Some seed that violated something; of several the least that was met. */
  readonly failed: number | undefined
}

export interface SeedsOptions {
  /** Called now and then with the number of seeds done. */
  readonly progress?: (done: number) => void
  readonly runs?: SeedsTask['runs']
  /** Default: as many as processors. */
  readonly workers?: number
}

// Many whole brokers are much code that is all a little warm: inlined as deeply as usual, compiling it takes a fifth of a run.
setFlagsFromString('--max-inlined-bytecode-size-cumulative=200')

/**
 * Nothing is explained in a worker: a seed that fails is run again to be told. And a run throws much away at once, which costs
 * least when the young generation is large.
 */
const WORKER = {
  execArgv: process.execArgv.filter((flag) => flag !== '--enable-source-maps'),
  resourceLimits: { maxYoungGenerationSizeMb: 64 },
}

export async function runSeeds(
  scenario: string,
  first: number,
  count: number,
  options: SeedsOptions = {},
): Promise<SeedsResult> {
  const { progress = () => {}, runs = 'seeds' } = options
  const workers = Math.min(options.workers ?? availableParallelism(), count)
  const running: Worker[] = []
  const counts: Record<string, number> = {}
  const digests = new Map<number, string>()
  let failed: number | undefined
  const one = (index: number): Promise<void> =>
    new Promise((resolve, reject) => {
      const range = { first: first + index, step: workers, end: first + count }
      const task: SeedsTask = { scenario, runs, ...range }
      const worker = new Worker(new URL('worker.js', import.meta.url), {
        ...WORKER,
        workerData: task,
      })
      running.push(worker)
      worker.on('message', (report: SeedsReport) => {
        digests.set(report.seed, report.digest)
        for (const [name, number] of Object.entries(report.counts)) {
          counts[name] = (counts[name] ?? 0) + number
        }
        progress(digests.size)
        if (report.violations === 0) return
        failed = Math.min(failed ?? report.seed, report.seed)
        for (const other of running) void other.terminate()
      })
      worker.on('error', reject)
      worker.on('exit', () => resolve())
    })
  await Promise.all(Array.from({ length: workers }, (_, i) => one(i)))
  return { seeds: digests.size, counts, digests, failed }
}
