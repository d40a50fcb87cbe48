// Segment keys as keys of a Map.

import type { SegmentKey } from './types.ts'

export function keyText(key: SegmentKey): string {
  return `${key.topicId}/${key.range}/${key.segment}`
}
