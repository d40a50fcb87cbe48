// A segment file's bytes as they will be when a cut that a crash interrupted is finished (segment/cut.ts), without
// finishing it: the file up to the cut, then what the cut puts there. Nothing is written.

import { getI64, getU32 } from '../../base/bytes.ts'
import { EastGuardError } from '../../base/errors.ts'
import { type Disk, DiskError, type DiskFile } from '../../ports/disk.ts'
import { readChecked } from '../checked-file.ts'
import {
  BLOCK_FIXED_BYTES,
  type BlockHeader,
  blockHeaderBytes,
  getBlockHeader,
} from '../segment/format.ts'

const POSITION_BYTES = 8
/** What a disk that cannot read all of something is asked for. */
const READ_BYTES = 4096
const NOTHING: Uint8Array = new Uint8Array(0)

export class SegmentBytes {
  readonly path: string
  readonly size: number
  /** Why what a cut would put there is not known. */
  readonly cutFault: string | undefined
  private readonly file: DiskFile | undefined
  private readonly fileBytes: number
  private readonly added: Uint8Array

  private constructor(
    path: string,
    file: DiskFile | undefined,
    fileBytes: number,
    added: Uint8Array,
    cutFault: string | undefined,
  ) {
    this.path = path
    this.file = file
    this.fileBytes = fileBytes
    this.added = added
    this.size = fileBytes + added.length
    this.cutFault = cutFault
  }

  static async open(disk: Disk, base: string): Promise<SegmentBytes> {
    const path = `${base}.log`
    let cut: Uint8Array | undefined
    let cutFault: string | undefined
    try {
      cut = await readChecked(disk, `${base}.cut`)
    } catch (error) {
      if (!(error instanceof EastGuardError) || error.code !== 'DAMAGED') throw error
      cutFault = error.message
    }
    const file = await openOrNothing(disk, path)
    const size = file === undefined ? 0 : await file.size()
    if (cut === undefined) return new SegmentBytes(path, file, size, NOTHING, cutFault)
    const position = Math.min(size, getI64(cut, 0))
    return new SegmentBytes(path, file, position, cut.subarray(POSITION_BYTES), cutFault)
  }

  /** Bytes [position, position + length), fewer at the end. */
  async read(position: number, length: number): Promise<Uint8Array> {
    const end = Math.min(this.size, position + length)
    const bytes = new Uint8Array(Math.max(0, end - position))
    let at = 0
    const inFile = Math.min(bytes.length, this.fileBytes - position)
    while (at < inFile) {
      const got = await this.readFile(bytes.subarray(at, inFile), position + at)
      if (got === 0) return bytes.subarray(0, at)
      at += got
    }
    const from = position + at - this.fileBytes
    bytes.set(this.added.subarray(from, from + bytes.length - at), at)
    return bytes
  }

  /** Where the disk itself cannot read, zeros: they check as nothing. */
  private async readFile(into: Uint8Array, position: number): Promise<number> {
    const file = this.file as DiskFile
    try {
      return await file.read(into, position)
    } catch (error) {
      if (!(error instanceof DiskError)) throw error
    }
    const piece = into.subarray(0, Math.min(into.length, READ_BYTES - (position % READ_BYTES)))
    return await file.read(piece, position).catch(() => {
      piece.fill(0)
      return piece.length
    })
  }

  /** The block header at `position`; undefined when there is no valid one of this segment. */
  async blockAt(position: number, seed: number): Promise<BlockHeader | undefined> {
    const fixed = await this.read(position, BLOCK_FIXED_BYTES)
    if (fixed.length < BLOCK_FIXED_BYTES || blockHeaderBytes(fixed, 0) === undefined) {
      return undefined
    }
    const header = getBlockHeader(await this.read(position, getU32(fixed, 8)), 0, seed)
    return header?.position === position ? header : undefined
  }

  async close(): Promise<void> {
    await this.file?.close()
  }
}

async function openOrNothing(disk: Disk, path: string): Promise<DiskFile | undefined> {
  try {
    return await disk.open(path, { mode: 'read' })
  } catch (error) {
    if (error instanceof DiskError && error.fault === 'not-found') return undefined
    throw error
  }
}
