// Cutting a segment file at an entry number. The file can only lose whole blocks, so the block that the cut runs
// through is written anew with what stays of it. In between its entries would be nowhere, hence a redo file:
//
//   <segment>.cut   u64 position, then the new block's bytes (perhaps none); a checked file: whole or not there
//
//   write .cut, synced ──> truncate .log to the position, write the block, sync ──> remove .cut
//                     \__ a crash from here on: opening the segment does the rest again
//
// A crash before .cut is whole leaves the .log as it was.

import { concatBytes, getI64, putI64 } from '../../base/bytes.ts'
import type { Disk } from '../../ports/disk.ts'
import { directoryOf, readChecked, writeChecked } from '../checked-file.ts'
import type { LogFile } from './file.ts'

const POSITION_BYTES = 8

export async function cutFile(
  disk: Disk,
  base: string,
  file: LogFile,
  position: number,
  block: readonly Uint8Array[],
): Promise<void> {
  const head = new Uint8Array(POSITION_BYTES)
  putI64(head, 0, position)
  // One copy of one block, once in the life of a segment: a checked file is written in one piece.
  await writeChecked(disk, `${base}.cut`, concatBytes([head, ...block]))
  await finishCut(disk, base, file)
}

/** Does what a .cut file says, if there is one. */
export async function finishCut(disk: Disk, base: string, file: LogFile): Promise<void> {
  const content = await readChecked(disk, `${base}.cut`)
  if (content === undefined) return
  const position = getI64(content, 0)
  await file.truncate(position)
  if (content.length > POSITION_BYTES) {
    await file.write([content.subarray(POSITION_BYTES)], position)
  }
  await file.sync()
  await disk.remove(`${base}.cut`)
  await disk.syncDir(directoryOf(base))
}
