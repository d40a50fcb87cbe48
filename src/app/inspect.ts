// Looks into one file of a data directory without touching it: no lock is taken and nothing is written, so it may be
// used beside a running broker.

import { basename, dirname } from 'node:path'
import { toHex } from '../base/bytes.ts'
import { EastGuardError } from '../base/errors.ts'
import { fileDisk } from '../io/disk/file-disk.ts'
import { type Disk, DiskError } from '../ports/disk.ts'
import { type InspectedSegment, inspectSegment } from '../storage/segment/inspect.ts'
import { decodeHeader, sequenceOf } from '../storage/wal/header.ts'
import { scanFile } from '../storage/wal/scan.ts'

interface InspectedLog {
  readonly nodeId: string
  readonly bootCount: number
  readonly generation: number
  readonly sequence: number
  readonly fileBytes: number
  readonly groups: number
  /** Pieces without a fault, by log sequence number. More than one: something between them cannot be read. */
  readonly runs: readonly {
    readonly position: number
    readonly firstLsn: number
    readonly endLsn: number
  }[]
}

export type Inspected =
  | { readonly kind: 'segment'; readonly segment: InspectedSegment }
  | { readonly kind: 'log'; readonly log: InspectedLog }
  | { readonly kind: 'unreadable'; readonly fault: string }

/** Rejects with INVALID_ARGUMENT when there is no such file, or none that can be read. */
export async function inspectFile(path: string, digest: boolean): Promise<Inspected> {
  const disk = fileDisk(dirname(path))
  try {
    if (sequenceOf(basename(path)) !== undefined) return await inspectLog(disk, basename(path))
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

/** A file of the write-ahead log or of the metadata journal. Behind its last record lie bytes of earlier use. */
async function inspectLog(disk: Disk, name: string): Promise<Inspected> {
  const file = await disk.open(name, { mode: 'read' })
  try {
    const bytes = new Uint8Array(await file.size())
    await file.read(bytes, 0)
    const header = decodeHeader(bytes)
    if (header === undefined)
      return { kind: 'unreadable', fault: 'neither of its headers is valid' }
    const { runs, groups } = scanFile(bytes, header)
    return {
      kind: 'log',
      log: {
        nodeId: toHex(header.identity.nodeIdBytes),
        bootCount: header.identity.bootCount,
        generation: header.generation,
        sequence: header.sequence,
        fileBytes: bytes.length,
        groups,
        runs: runs.map(({ position, firstLsn, endLsn }) => ({ position, firstLsn, endLsn })),
      },
    }
  } finally {
    await file.close()
  }
}
