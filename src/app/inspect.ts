// Looks into one file of a data directory without touching it: no lock is taken and nothing is written, so it may be
// used beside a running broker.

import { basename, dirname } from 'node:path'
import { EastGuardError } from '../base/errors.ts'
import { fileDisk } from '../io/disk/file-disk.ts'
import { DiskError } from '../ports/disk.ts'
import { type InspectedSegment, inspectSegment } from '../storage/segment/inspect.ts'

export type Inspected =
  | { readonly kind: 'segment'; readonly segment: InspectedSegment }
  | { readonly kind: 'unreadable'; readonly fault: string }

/** Rejects with INVALID_ARGUMENT when there is no such file, or none that can be read. */
export async function inspectFile(path: string, digest: boolean): Promise<Inspected> {
  const disk = fileDisk(dirname(path))
  try {
    const found = await inspectSegment(disk, basename(path), { digest })
    if ('segment' in found) return { kind: 'segment', segment: found }
    return { kind: 'unreadable', fault: found.fault }
  } catch (error) {
    if (!(error instanceof DiskError)) throw error
    throw new EastGuardError('INVALID_ARGUMENT', `${path}: ${error.message}`, {
      cause: error,
      hint: 'give a segment file (topics/.../*.log) or a WAL file (wal/...)',
    })
  }
}
