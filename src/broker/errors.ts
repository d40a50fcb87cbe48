import { EastGuardError, messageOf } from '../base/errors.ts'
import { DiskError } from '../ports/disk.ts'

/** What a client is told of an error that something below the broker threw. */
export function toEastGuardError(error: unknown): EastGuardError {
  if (error instanceof EastGuardError) return error
  if (error instanceof DiskError) {
    const code = error.fault === 'full' ? 'STORAGE_FULL' : 'DISK_FAILED'
    return new EastGuardError(code, error.message, { cause: error })
  }
  const what = messageOf(error)
  return new EastGuardError('INTERNAL', what, { cause: error })
}
