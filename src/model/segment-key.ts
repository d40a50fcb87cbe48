// Which segment: the same segment number may occur in two ranges of a topic. Its key as text names it in maps, files and logs;
// its place is what is stored beside each of its entries.

import { fromHex } from '../base/bytes.ts'
import type { SegmentPlace } from './entry.ts'
import { type TopicId, topicId } from './ids.ts'

export interface SegmentKey {
  readonly topicId: TopicId
  readonly range: number
  readonly segment: number
}

/** The opposite of `keyText`. */
export function parseKeyText(text: string): SegmentKey {
  const [id = '', range, segment] = text.split('/')
  return { topicId: topicId(id), range: Number(range), segment: Number(segment) }
}

export function keyText(key: SegmentKey): string {
  return `${key.topicId}/${key.range}/${key.segment}`
}

export function placeOfKey({ topicId, range, segment }: SegmentKey): SegmentPlace {
  return { topicIdBytes: fromHex(topicId), range, segment }
}
