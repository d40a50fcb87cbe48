// The one range there is, and how fast those who keep it go.

import { SEGMENT_TIMING, type SegmentTiming } from '../../../../src/core/segment/types.ts'
import type { TopicId } from '../../../../src/model/ids.ts'
import type { SegmentKey } from '../../../../src/model/segment-key.ts'

export const TOPIC: TopicId = '00000000000000000000000000000abc' as TopicId
export const RANGE = 0
export const SHARD = 0
export const TIMING: SegmentTiming = {
  ...SEGMENT_TIMING,
  frozenTimeoutMs: 2500,
  repairDelayMs: 3000,
}

export function keyOf(segment: number): SegmentKey {
  return { topicId: TOPIC, range: RANGE, segment }
}
