// Cutting a segment file at an entry number. The file can only lose whole blocks, so the block that the cut runs
// through is written anew with what stays of it. In between its entries would be nowhere, hence a redo file:
//
//   <segment>.cut   u64 position, then the new block's bytes (perhaps none); a checked file: whole or not there
//
//   write .cut, synced ──> write the block into .log at the position, cut off what is behind it, sync ──> remove .cut
//                     \__ a crash from here on: opening the segment does the rest again
//
// A crash before .cut is whole leaves the .log as it was. The block is written over a longer one, before anything is cut off: on a
// full disk others would take the space. If there is none for it nevertheless, the same is done again later; until then nobody
// reads the file.

import { concatBytes, getI64, putI64 } from '../../base/bytes.ts'
import type { Disk } from '../../ports/disk.ts'
import { directoryOf, readChecked, writeChecked } from '../checked-file.ts'
import type { LogFile } from './file.ts'

const POSITION_BYTES = 8

/** What stays of the block that a cut runs through is at `position`; perhaps nothing. */
export interface Cut {
  readonly position: number
  readonly block: Uint8Array
}

/** When it resolves the cut is sure to be done, now or by the next start. */
export async function writeCut(disk: Disk, base: string, { position, block }: Cut): Promise<void> {
  const head = new Uint8Array(POSITION_BYTES)
  putI64(head, 0, position)
  await writeChecked(disk, `${base}.cut`, concatBytes([head, block]))
}

/** Does what a .cut file says, if there is one. */
export async function finishCut(disk: Disk, base: string, file: LogFile): Promise<void> {
  const content = await readChecked(disk, `${base}.cut`)
  if (content === undefined) return
  const cut = { position: getI64(content, 0), block: content.subarray(POSITION_BYTES) }
  await doCut(disk, base, file, cut)
}

/** What the .cut file says. */
export async function doCut(
  disk: Disk,
  base: string,
  file: LogFile,
  { position, block }: Cut,
): Promise<void> {
  if (block.length > 0) await file.write([block], position)
  await file.truncate(position + block.length)
  await file.sync()
  await disk.remove(`${base}.cut`)
  await disk.syncDir(directoryOf(base))
}
