// What a client of a run was told. Anything but an error of ours is a mistake in the client itself, and ends the run.

import { EastGuardError } from '../base/errors.ts'

export function asEastGuardError(error: unknown): EastGuardError {
  if (error instanceof EastGuardError) return error
  throw error
}

export function codeOf(error: unknown): string {
  return asEastGuardError(error).code
}

/** Of a record that the producer gave up. */
export function rejectionOf(error: unknown): { code: string; maybeStored: boolean } {
  const { code, detail } = asEastGuardError(error)
  const { maybeStored = true } = detail as { maybeStored?: boolean }
  return { code, maybeStored }
}
