// The disk, as narrow as the engine needs it. What each call promises after a power cut:
//
//   write        nothing, until `sync` on the same file returned (or the file was opened `durable`)
//   sync         the file's bytes and length (fdatasync)
//   create, rename, remove   nothing, until `syncDir` on the directory returned
//
// A failed `sync` leaves the file in an unknown state: it must never be retried as if nothing had happened. It is never `full`, nor
// is a failed `syncDir`: that stands for what may be tried again when there is room.
// Every call may reject with a DiskError.

export type DiskFault = 'not-found' | 'exists' | 'full' | 'read-only' | 'denied' | 'locked' | 'io'

export class DiskError extends Error {
  override readonly name: string = 'DiskError'
  readonly fault: DiskFault
  readonly path: string

  constructor(fault: DiskFault, path: string, message: string, cause?: unknown) {
    super(message, cause === undefined ? undefined : { cause })
    this.fault = fault
    this.path = path
  }
}

/** It may be tried again when there is room; all else that fails is final. */
export function foundNoRoom(error: unknown): error is DiskError {
  return error instanceof DiskError && error.fault === 'full'
}

export interface DiskFile {
  readonly path: string
  /** Reads up to `into.length` bytes at `position`; fewer only at the end of the file. */
  read(into: Uint8Array, position: number): Promise<number>
  /** Writes all the buffers, one after another, at `position`. They must not change until this resolves. */
  write(buffers: readonly Uint8Array[], position: number): Promise<void>
  sync(): Promise<void>
  size(): Promise<number>
  truncate(length: number): Promise<void>
  /** Takes disk blocks up to `length` by writing zeros from the present end on; `full` when there are none. */
  allocate(length: number): Promise<void>
  close(): Promise<void>
}

export interface OpenOptions {
  /** read: must exist. write: must exist. create: made when missing. create-new: must not exist. */
  readonly mode: 'read' | 'write' | 'create' | 'create-new'
  /** Every `write` is durable when it resolves (O_DSYNC): one call where `write` and `sync` would be two. */
  readonly durable?: boolean
}

export interface DirEntry {
  readonly name: string
  readonly kind: 'file' | 'directory' | 'other'
}

export interface DiskSpace {
  readonly totalBytes: number
  /** What this process may still take. */
  readonly freeBytes: number
}

export interface DiskLock {
  release(): Promise<void>
}

/** Paths are relative to the disk's root (the data directory) and use `/`. */
export interface Disk {
  open(path: string, options: OpenOptions): Promise<DiskFile>
  /** With all missing parents; no error when it exists. */
  makeDir(path: string): Promise<void>
  list(path: string): Promise<readonly DirEntry[]>
  rename(from: string, to: string): Promise<void>
  /** A file, or a directory with all that is in it; no error when it is not there. */
  remove(path: string): Promise<void>
  syncDir(path: string): Promise<void>
  space(): Promise<DiskSpace>
  /** Takes the exclusive right to this disk against other processes; `locked` when another has it. */
  lock(path: string): Promise<DiskLock>
}
