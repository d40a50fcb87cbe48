// How long processes were ready to run and had no processor, over time. A bound that holds on a quiet machine is widened by
// what a busy one took: otherwise the bound would judge the machine.
//
//   starved   brokers 1..n and this process, summed: a request visits several of them, one after another
//   time    ──┼───────┼───────┼───────┼──>  looked at every SAMPLE_MS
//
// The kernel of Linux counts it; elsewhere nothing is known and nothing is widened.

import { readFileSync } from 'node:fs'

const SAMPLE_MS = 100
/** A round with its pauses; older samples are of no use to anybody. */
const SAMPLES_MAX = 3000

interface Sample {
  readonly atMs: number
  readonly starvedMs: number
}

export class Waits {
  private readonly samples: Sample[] = []
  private readonly last = new Map<number, number>()
  private readonly pids: () => readonly (number | undefined)[]
  private readonly timer: NodeJS.Timeout
  private sumMs = 0

  /** Looks until it is stopped. */
  constructor(pids: () => readonly (number | undefined)[]) {
    this.pids = pids
    this.look()
    this.timer = setInterval(() => this.look(), SAMPLE_MS)
  }

  stop(): void {
    clearInterval(this.timer)
  }

  /** By performance.now(); what began or ended between two looks counts whole. */
  between(fromMs: number, toMs: number): number {
    this.look()
    const before = this.samples.findLast(({ atMs }) => atMs <= fromMs) ?? this.samples[0]
    const after = this.samples.find(({ atMs }) => atMs >= toMs) ?? this.samples.at(-1)
    return (after?.starvedMs ?? 0) - (before?.starvedMs ?? 0)
  }

  private look(): void {
    for (const pid of [...this.pids(), process.pid]) {
      if (pid === undefined) continue
      const now = starvedMs(pid)
      // Of a process that is new, what it has waited for already is no part of this.
      if (now !== undefined) this.sumMs += now - (this.last.get(pid) ?? now)
      if (now !== undefined) this.last.set(pid, now)
    }
    this.samples.push({ atMs: performance.now(), starvedMs: this.sumMs })
    if (this.samples.length > SAMPLES_MAX) this.samples.splice(0, SAMPLES_MAX / 2)
  }
}

function starvedMs(pid: number): number | undefined {
  try {
    return Number(readFileSync(`/proc/${pid}/schedstat`, 'utf8').split(' ')[1]) / 1e6
  } catch {
    return undefined
  }
}
