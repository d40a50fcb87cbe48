// What a process has taken, as the kernel counts it.

import { readFileSync } from 'node:fs'

/** Ticks of the kernel's accounts: the same on every Linux that Node runs on. */
const TICKS_PER_SECOND = 100
const USER_TICKS = 11
const SYSTEM_TICKS = 12

export interface ProcessorUse {
  readonly pid: number | undefined
  readonly seconds: number
  readonly atMs: number
}

export function processorUse(pid: number | undefined): ProcessorUse {
  const stat = readFileSync(`/proc/${pid}/stat`, 'utf8')
  // The name of the program stands in parentheses and may hold blanks; fields are counted from behind it.
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
  const ticks = Number(fields[USER_TICKS]) + Number(fields[SYSTEM_TICKS])
  return { pid, seconds: ticks / TICKS_PER_SECOND, atMs: performance.now() }
}

/** How long its main thread has been ready to run and had no processor: on a busy machine rates say little without it. */
export function starvedSeconds(pid: number | undefined): number {
  return Number(readFileSync(`/proc/${pid}/schedstat`, 'utf8').split(' ')[1]) / 1e9
}

/** Since then, in percent of one core. */
export function corePercentSince(before: ProcessorUse): number {
  const now = processorUse(before.pid)
  return ((now.seconds - before.seconds) / (now.atMs - before.atMs)) * 100_000
}

export function residentBytes(pid: number | undefined): number {
  const match = /VmRSS:\s+(\d+) kB/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))
  return Number(match?.[1] ?? 0) * 1024
}
