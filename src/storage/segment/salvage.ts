// What the WAL still had of a damaged segment and its file could not take, since what comes before is missing. The segment
// is not served, but the WAL is about to be reused, and nothing that is whole may go with it:
//
//   <segment>.salvage    entries as everywhere (envelope, batch), in entry order; a checked file
//
// An entry that is lost, but for its number and offsets, is there as a hole.
//
// An operator's `repair` puts them back into the segment.

import { assert } from '../../base/assert.ts'
import { concatBytes } from '../../base/bytes.ts'
import { isHole } from '../../model/batch/hole.ts'
import { ENVELOPE_BYTES, type Entry, putEnvelope, type SegmentPlace } from '../../model/entry.ts'
import type { Disk } from '../../ports/disk.ts'
import { directoryOf, readChecked, writeChecked } from '../checked-file.ts'
import { entriesIn } from './check.ts'

function salvagePath(base: string): string {
  return `${base}.salvage`
}

/** Durable when it resolves. What an earlier start put there stays. */
export async function addSalvage(
  disk: Disk,
  base: string,
  place: SegmentPlace,
  entries: readonly Entry[],
): Promise<void> {
  const path = salvagePath(base)
  const all = new Map<number, Entry>()
  for (const entry of entries) all.set(entry.entryNumber, entry)
  for (const entry of await readSalvage(disk, base, place).catch(() => [])) {
    if (all.has(entry.entryNumber) && isHole(entry.batch)) continue
    all.set(entry.entryNumber, entry)
  }
  const parts: Uint8Array[] = []
  for (const entry of [...all.values()].sort((a, b) => a.entryNumber - b.entryNumber)) {
    const envelope = new Uint8Array(ENVELOPE_BYTES)
    putEnvelope(envelope, 0, place, entry)
    parts.push(envelope, entry.batch)
  }
  assert(parts.length > 0, 'something was salvaged')
  let dir = directoryOf(path)
  await disk.makeDir(dir)
  while (dir !== '.') {
    dir = directoryOf(dir)
    await disk.syncDir(dir)
  }
  await writeChecked(disk, path, concatBytes(parts))
}

/** Nothing when there is no such file. Throws DAMAGED. */
export async function readSalvage(
  disk: Disk,
  base: string,
  place: SegmentPlace,
): Promise<readonly Entry[]> {
  const content = await readChecked(disk, salvagePath(base))
  return content === undefined ? [] : entriesIn(place, content).map(({ entry }) => entry)
}
