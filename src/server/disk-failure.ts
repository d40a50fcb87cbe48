// What whoever runs the broker should do about a disk that failed. The message of a DiskError says what happened, and to
// which file; what to do follows from the kind of fault.

import { ERRORS } from '../base/errors.ts'
import { DiskError, type DiskFault, foundNoRoom } from '../ports/disk.ts'

const HINTS: Partial<Record<DiskFault, string>> = {
  io: "check the disk and the system's log, then start the broker again: what was acknowledged is on the disk",
  'read-only':
    "make the file system writable again (the system's log says why it is not), then start the broker",
  full: 'free space on the disk, then start the broker again',
  denied: 'give the user that runs the broker the right to read and write the data directory',
}

/** The disk's own error, when that is what `error` is or came from. */
export function diskErrorIn(error: unknown): DiskError | undefined {
  let each: unknown = error
  while (each instanceof Error && !(each instanceof DiskError)) each = each.cause
  return each instanceof DiskError ? each : undefined
}

/** It has room again one day, so what found none may be tried again. All else that fails is final: a sync that failed is never retried. */
export function isFull(error: unknown): boolean {
  return foundNoRoom(diskErrorIn(error))
}

export function diskHint(error: unknown, otherwise: string = ERRORS.DISK_FAILED.hint): string {
  const fault = diskErrorIn(error)?.fault
  return (fault === undefined ? undefined : HINTS[fault]) ?? otherwise
}
