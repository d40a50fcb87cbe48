// Segment keys as text, and as what is stored beside entries.

import { fromHex } from '../base/bytes.ts'
import type { SegmentPlace } from '../model/entry.ts'
import { topicId } from '../model/ids.ts'
import type { SegmentKey } from './types.ts'

/** The opposite of `keyText`. */
export function parseKeyText(text: string): SegmentKey {
  const [id = '', range, segment] = text.split('/')
  return { topicId: topicId(id), range: Number(range), segment: Number(segment) }
}

export function placeOfKey({ topicId, range, segment }: SegmentKey): SegmentPlace {
  return { topicIdBytes: fromHex(topicId), range, segment }
}

export function keyText(key: SegmentKey): string {
  return `${key.topicId}/${key.range}/${key.segment}`
}
