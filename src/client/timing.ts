// Waiting, deadlines and pauses between attempts, on the clock that was handed in. Every timer armed here belongs to
// a caller who waits, and goes away with the wait: an idle client keeps no timer.

import { EastGuardError } from '../base/errors.ts'
import type { Clock } from '../ports/clock.ts'
import { type Abortable, unwatchAbort, watchAbort } from './aborts.ts'

/** When a call must be over, on the monotonic clock, and who may end it sooner. */
export interface Deadline {
  readonly atMs: number
  readonly signal: AbortSignal | undefined
}

export function deadlineIn(clock: Clock, ms: number, signal?: AbortSignal): Deadline {
  return { atMs: clock.monotonic() + ms, signal }
}

export function aborted(signal: AbortSignal, what: string): EastGuardError {
  return new EastGuardError('ABORTED', `${what} was aborted by the caller`, {
    cause: signal.reason,
  })
}

/** Resolves after `ms`; rejects with ABORTED as soon as the signal fires. */
export function pause(clock: Clock, ms: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    if (signal?.aborted === true) {
      reject(aborted(signal, 'a pause'))
      return
    }
    const timer = clock.after(ms, () => {
      if (signal !== undefined) unwatchAbort(signal, waiting)
      resolve()
    })
    const waiting: Abortable = {
      aborted: (by) => {
        timer.cancel()
        reject(aborted(by, 'a pause'))
      },
    }
    if (signal !== undefined) watchAbort(signal, waiting)
  })
}

/**
 * `work`, given up at the deadline (TIMEOUT) or when the signal fires (ABORTED). What it later comes to is ignored, so
 * `work` must be something that several callers share or that harms nobody when it goes on.
 */
export function within<T>(
  clock: Clock,
  deadline: Deadline,
  what: string,
  work: Promise<T>,
): Promise<T> {
  const { signal } = deadline
  return new Promise((resolve, reject) => {
    const settle = (): void => {
      timer.cancel()
      if (signal !== undefined) unwatchAbort(signal, waiting)
    }
    const waiting: Abortable = {
      aborted: (by) => {
        settle()
        reject(aborted(by, what))
      },
    }
    const timer = clock.after(Math.max(0, deadline.atMs - clock.monotonic()), () => {
      settle()
      reject(new EastGuardError('TIMEOUT', `${what} took longer than allowed`))
    })
    work.then(
      (value) => {
        settle()
        resolve(value)
      },
      (error: unknown) => {
        settle()
        reject(error instanceof Error ? error : new Error(String(error)))
      },
    )
    if (signal?.aborted === true) waiting.aborted(signal)
    else if (signal !== undefined) watchAbort(signal, waiting)
  })
}
