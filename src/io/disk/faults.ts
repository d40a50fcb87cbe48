// What the operating system says, in the words of ports/disk.ts.

import { DiskError, type DiskFault } from '../../ports/disk.ts'

const FAULTS: Readonly<Record<string, DiskFault>> = {
  ENOENT: 'not-found',
  ENOTDIR: 'not-found',
  EEXIST: 'exists',
  ENOSPC: 'full',
  EDQUOT: 'full',
  EROFS: 'read-only',
  EACCES: 'denied',
  EPERM: 'denied',
}

const MEANINGS: Readonly<Record<DiskFault, string>> = {
  'not-found': 'it does not exist',
  exists: 'it exists already',
  full: 'the disk is full',
  'read-only': 'the file system is read-only',
  denied: 'permission is denied',
  locked: 'another process holds it',
  io: 'the disk failed',
}

export function meaningOf(fault: DiskFault): string {
  return MEANINGS[fault]
}

/** `doing` completes "cannot ...": "write", "open". */
export function diskError(doing: string, path: string, cause: unknown): DiskError {
  const code = errorCode(cause) ?? 'unknown error'
  const fault = FAULTS[code] ?? 'io'
  return new DiskError(fault, path, `cannot ${doing} ${path}: ${MEANINGS[fault]} (${code})`, cause)
}

/**
 * Of a sync, which may find only now that there is no space for what was written before. That is as gone as after any other failure,
 * and must not be taken for what is tried again when there is room.
 */
export function syncError(doing: string, path: string, cause: unknown): DiskError {
  const error = diskError(doing, path, cause)
  return error.fault === 'full' ? new DiskError('io', path, error.message, cause) : error
}

/** The system's code for an error (`ENOENT`), when it has one. */
export function errorCode(error: unknown): string | undefined {
  return error instanceof Error ? (error as NodeJS.ErrnoException).code : undefined
}
