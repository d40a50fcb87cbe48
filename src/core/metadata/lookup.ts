// Finding things in a topic: the active range of a partition, and which segment holds an offset. A partition's history
// is a walk back along the lineage: while an offset lies before a range's first segment, it is the parent holding the
// partition that has it [I11]. Readers do not notice.

import type { Range, Segment, Topic } from './types.ts'

/** A segment from one partition's point of view. */
export interface SegmentOfPartition {
  readonly range: Range
  readonly segment: Segment
  /** The partition's first offset in it. */
  readonly firstOffset: number
  /** The partition's first offset in the next segment; undefined while this one is open. */
  readonly endOffset: number | undefined
}

export function rangeByNumber(topic: Topic, number: number): Range | undefined {
  const { ranges } = topic
  const at = countWhere(ranges.length, (i) => (ranges[i] as Range).range < number)
  const found = ranges[at]
  return found?.range === number ? found : undefined
}

/** Undefined when the topic has no such partition. */
export function activeRange(topic: Topic, partition: number): Range | undefined {
  const { active } = topic
  const after = countWhere(active.length, (i) => (active[i] as Range).firstPartition <= partition)
  const found = active[after - 1]
  return found !== undefined && partition < found.endPartition ? found : undefined
}

export function segmentByNumber(range: Range, number: number): Segment | undefined {
  // Numbers are dense within a range.
  const first = range.segments[0]?.segment ?? 0
  return range.segments[number - first]
}

/** The open segment of an active range. */
export function openOf(range: Range): Segment | undefined {
  const last = range.segments[range.segments.length - 1]
  return last?.state === 'open' ? last : undefined
}

/**
 * The segment that holds the offset, or would: at or past the partition's end that is the open one. Undefined when the
 * partition does not exist or retention has dropped the segment.
 */
export function segmentAt(
  topic: Topic,
  partition: number,
  offset: number,
): SegmentOfPartition | undefined {
  let range = activeRange(topic, partition)
  let after: number | undefined
  while (range !== undefined) {
    const { segments } = range
    const at = partition - range.firstPartition
    const first = (i: number): number => (segments[i] as Segment).firstOffsets[at] as number
    const index = countWhere(segments.length, (i) => first(i) <= offset) - 1
    if (index >= 0) {
      const last = index === segments.length - 1
      return {
        range,
        segment: segments[index] as Segment,
        firstOffset: first(index),
        endOffset: last ? after : first(index + 1),
      }
    }
    after = first(0)
    range = parentOf(topic, range, partition)
  }
  return undefined
}

/** All segments of a partition that are kept, oldest first; empty when there is no such partition. */
export function segmentsOf(topic: Topic, partition: number): readonly SegmentOfPartition[] {
  const found: SegmentOfPartition[] = []
  let endOffset: number | undefined
  let range = activeRange(topic, partition)
  while (range !== undefined) {
    const at = partition - range.firstPartition
    for (let i = range.segments.length - 1; i >= 0; i--) {
      const segment = range.segments[i] as Segment
      const firstOffset = segment.firstOffsets[at] as number
      found.push({ range, segment, firstOffset, endOffset })
      endOffset = firstOffset
    }
    range = parentOf(topic, range, partition)
  }
  return found.reverse()
}

function parentOf(topic: Topic, range: Range, partition: number): Range | undefined {
  for (const number of range.parents) {
    const parent = rangeByNumber(topic, number)
    if (parent === undefined) continue
    if (partition >= parent.firstPartition && partition < parent.endPartition) return parent
  }
  return undefined
}

/** How many of 0 .. length-1 come before the first for which `before` is false: binary search. */
function countWhere(length: number, before: (index: number) => boolean): number {
  let low = 0
  let high = length
  while (low < high) {
    const middle = (low + high) >>> 1
    if (before(middle)) low = middle + 1
    else high = middle
  }
  return low
}
