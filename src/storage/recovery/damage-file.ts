// Which segments are damaged, kept across restarts: a recovery that found part of the WAL lost begins a new WAL, and the
// next one would find nothing wrong. One checked file `damaged` with a JSON object: segment key text -> what is wrong.
// Segments that the metadata no longer has are dropped from it by the way; a line is taken out by `repair`, or when what is
// damaged is removed and copied anew.
//
// Without the list nobody knows which segments miss entries that only a lost WAL had. So when it cannot be read itself,
// nothing is served until an operator decides.

import { fromUtf8, utf8 } from '../../base/bytes.ts'
import { EastGuardError } from '../../base/errors.ts'
import { keyText, parseKeyText, type SegmentKey } from '../../model/segment-key.ts'
import type { Disk } from '../../ports/disk.ts'
import { directoryOf, readChecked, writeChecked } from '../checked-file.ts'
import type { StoredSegment } from '../segment/types.ts'
import type { Catalog } from '../types.ts'
import { markDamaged, type RecoveryEnv } from './recover-segments.ts'

const DAMAGE_FILE = 'damaged'

/** Segment key text -> what is wrong. Throws DAMAGED when the list itself cannot be read. */
export async function readDamage(disk: Disk): Promise<ReadonlyMap<string, string>> {
  try {
    const content = await readChecked(disk, DAMAGE_FILE)
    if (content === undefined) return new Map()
    return new Map(Object.entries(JSON.parse(fromUtf8(content)) as Record<string, string>))
  } catch (cause) {
    if (!(cause instanceof EastGuardError) || cause.code !== 'DAMAGED') throw cause
    const message = `the list of damaged segments cannot be read: ${cause.message}; a segment that is known to be damaged could be served`
    const hint = "'eastguard repair' looks at all segments and says what may be lost"
    throw new EastGuardError('DAMAGED', message, { cause, hint })
  }
}

/** True when there is a list and nobody can tell what is on it. */
export async function unreadableDamage(disk: Disk): Promise<boolean> {
  try {
    await readDamage(disk)
    return false
  } catch (error) {
    if (!(error instanceof EastGuardError) || error.code !== 'DAMAGED') throw error
    return true
  }
}

/** Of segments that are nowhere else nothing is known to be damaged any more. Durable when it resolves. */
export async function forgetDamage(disk: Disk, catalog: Catalog): Promise<void> {
  const known = await readDamage(disk)
  const kept: Record<string, string> = {}
  for (const { key, elsewhere } of catalog.segments()) {
    const what = known.get(keyText(key))
    if (elsewhere === true && what !== undefined) kept[keyText(key)] = what
  }
  await writeDamage(disk, kept)
}

/** A list in the place of one that nobody can read: every open segment that others have too is on it, for it may have been. */
export async function renewDamage(disk: Disk, catalog: Catalog): Promise<void> {
  const marked: Record<string, string> = {}
  for (const { key, endEntry, elsewhere } of catalog.segments()) {
    if (elsewhere !== true || endEntry !== undefined) continue
    marked[keyText(key)] =
      'the list of damaged segments could not be read, and it may have been on it'
  }
  await writeDamage(disk, marked)
}

async function writeDamage(disk: Disk, marks: Readonly<Record<string, string>>): Promise<void> {
  if (Object.keys(marks).length > 0) {
    await writeChecked(disk, DAMAGE_FILE, utf8(JSON.stringify(marks)))
    return
  }
  await disk.remove(DAMAGE_FILE)
  await disk.syncDir(directoryOf(DAMAGE_FILE))
}

/** Nothing of this segment is known to be damaged any more. Durable when it resolves; one call at a time. */
export async function forgetSegmentDamage(disk: Disk, key: SegmentKey): Promise<void> {
  const known = new Map(await readDamage(disk))
  if (!known.delete(keyText(key))) return
  await writeDamage(disk, Object.fromEntries(known))
}

/** Marks what earlier starts found damaged, and keeps what this one found. */
export async function rememberDamage(
  { disk, catalog, engine }: RecoveryEnv,
  segments: Map<string, StoredSegment>,
): Promise<void> {
  const known = await readDamage(disk)
  const live = new Set<string>()
  for (const { key } of catalog.segments()) live.add(keyText(key))
  for (const [text, what] of known) {
    if (live.has(text)) markDamaged(engine, segments, parseKeyText(text), what)
  }
  const damaged: Record<string, string> = {}
  for (const [text, segment] of segments) {
    if (segment.damage !== undefined) damaged[text] = segment.damage
  }
  const text = JSON.stringify(damaged)
  if (text !== JSON.stringify(Object.fromEntries(known))) {
    await writeChecked(disk, DAMAGE_FILE, utf8(text))
  }
}
