// How the server process ends, for service managers and scripts. docs/reference/config.md lists them.

import { EastGuardError } from '../base/errors.ts'
import { diskErrorIn, diskHint } from '../server/disk-failure.ts'

export const EXIT_OK = 0
/** The broker made a mistake: an assertion failed or an exception went uncaught. */
export const EXIT_INTERNAL = 1
/** Bad arguments or configuration: a restart will not help. */
export const EXIT_CONFIG = 2
/** The data directory is in use, damaged, newer, an older copy, or belongs to another: a restart will not help. */
export const EXIT_DATA_DIR = 3
/** An address could not be listened on. */
const EXIT_LISTEN = 4
/** The disk failed. Nothing more was acknowledged. */
export const EXIT_DISK = 5
/** Somebody has removed the broker from its cluster for good: a restart will not help. */
export const EXIT_REMOVED = 6

/** How a broker ends that its hook onFatal was called with `error` for. */
export function fatalCode(error: Error): number {
  const mismatch =
    error instanceof EastGuardError &&
    (error.code === 'DATA_DIR_MISMATCH' || error.code === 'CLUSTER_MISMATCH')
  return mismatch ? EXIT_DATA_DIR : EXIT_DISK
}

/** What went wrong, in one word: our own code, or the system's for a port that cannot be had. */
export function failureCode(error: unknown): string | undefined {
  if (error instanceof EastGuardError) return error.code
  if (!isListenError(error)) return undefined
  const cause = error.cause as NodeJS.ErrnoException | undefined
  return cause?.code
}

function isListenError(error: unknown): error is Error {
  return error instanceof Error && error.message.startsWith('cannot listen on')
}

/** How a start that was rejected with `error` ends, and what to do about it; '' when nobody knows. */
export function startFailure(error: unknown): { readonly code: number; readonly hint: string } {
  const disk = diskErrorIn(error)
  if (disk?.fault === 'io') return { code: EXIT_DISK, hint: diskHint(error) }
  if (error instanceof EastGuardError) {
    if (error.code === 'DISK_FAILED') return { code: EXIT_DISK, hint: diskHint(error) }
    const code = error.code === 'INVALID_CONFIG' ? EXIT_CONFIG : EXIT_DATA_DIR
    const unusable = error.code === 'DATA_DIR_UNUSABLE' && disk !== undefined
    return { code, hint: unusable ? diskHint(error, error.hint) : error.hint }
  }
  if (disk !== undefined) return { code: EXIT_DATA_DIR, hint: diskHint(error) }
  if (isListenError(error)) {
    const used = error.message.includes('EADDRINUSE')
    const hint = used
      ? 'another program uses the port: stop it, or choose another'
      : 'check host and port: the address must be one of this machine, and allowed'
    return { code: EXIT_LISTEN, hint }
  }
  return { code: EXIT_INTERNAL, hint: '' }
}
