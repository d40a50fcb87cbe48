// Which segments are damaged, kept across restarts: a recovery that found part of the WAL lost begins a new WAL, and the
// next one would find nothing wrong. One checked file `damaged` with a JSON object: segment key text -> what is wrong.
// Segments that the metadata no longer has are dropped from it by the way; nothing else takes a line out.

import { fromUtf8, utf8 } from '../../base/bytes.ts'
import { topicId } from '../../model/ids.ts'
import { readChecked, writeChecked } from '../checked-file.ts'
import type { StoredSegment } from '../segment/types.ts'
import { keyText } from '../segment-keys.ts'
import type { SegmentKey } from '../types.ts'
import { markDamaged, type RecoveryEnv } from './recover-segments.ts'

const DAMAGE_FILE = 'damaged'

/** Marks what earlier starts found damaged, and keeps what this one found. */
export async function rememberDamage(
  { disk, catalog, engine }: RecoveryEnv,
  segments: Map<string, StoredSegment>,
): Promise<void> {
  const before = await readChecked(disk, DAMAGE_FILE)
  const known = before === undefined ? {} : (JSON.parse(fromUtf8(before)) as Record<string, string>)
  const live = new Set<string>()
  for (const { key } of catalog.segments()) live.add(keyText(key))
  for (const [text, what] of Object.entries(known)) {
    if (live.has(text)) markDamaged(engine, segments, parseKeyText(text), what)
  }
  const damaged: Record<string, string> = {}
  for (const [text, segment] of segments) {
    if (segment.damage !== undefined) damaged[text] = segment.damage
  }
  const text = JSON.stringify(damaged)
  if (text !== JSON.stringify(known)) await writeChecked(disk, DAMAGE_FILE, utf8(text))
}

function parseKeyText(text: string): SegmentKey {
  const [id = '', range, segment] = text.split('/')
  return { topicId: topicId(id), range: Number(range), segment: Number(segment) }
}
