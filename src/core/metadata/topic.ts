// Making and changing topics: immutable values that share what stayed the same. The leaf functions of the machine build
// on these few.

import type { ErrorCode } from '../../base/errors.ts'
import type { NodeId } from '../../model/ids.ts'
import type { TopicPolicy } from '../../model/policy.ts'
import type { Refusal } from './commands.ts'
import type { Placement, Range, Segment, Tail, Topic } from './types.ts'

export function refuse(
  code: ErrorCode,
  message: string,
  detail: Readonly<Record<string, unknown>> = {},
): Refusal {
  return { ok: false, code, message, detail }
}

export function openSegment(
  segment: number,
  firstOffsets: readonly number[],
  placement: Placement,
  timeMs: number,
): Segment {
  return {
    segment,
    state: 'open',
    replicas: placement.replicas,
    firstOffsets,
    openedAtMs: timeMs,
    attempt: 0,
    token: placement.token,
    stateDigest: placement.stateDigest,
    digest: '',
    tail: undefined,
  }
}

/** A range that has just become active, with its first segment. */
export function openRange(
  range: number,
  firstPartition: number,
  parents: readonly number[],
  first: Segment,
): Range {
  return {
    range,
    state: 'active',
    firstPartition,
    endPartition: firstPartition + first.firstOffsets.length,
    segments: [first],
    parents,
    children: [],
  }
}

/** The range with its open segment sealed; still without a successor, which the caller adds. */
export function sealLast(range: Range, endEntry: number, tail?: Tail): readonly Segment[] {
  const last = lastSegment(range)
  return [...range.segments.slice(0, -1), { ...last, state: 'sealed', endEntry, tail }]
}

/** There is always one: a range without segments leaves the list. */
export function lastSegment(range: Range): Segment {
  return range.segments[range.segments.length - 1] as Segment
}

/** Replaces one range whose partitions and state are the same. */
export function withRange(topic: Topic, changed: Range): Topic {
  const put = (range: Range): Range => (range.range === changed.range ? changed : range)
  return {
    ...topic,
    version: topic.version + 1,
    ranges: topic.ranges.map(put),
    active: topic.active.map(put),
  }
}

/** Gives the topic another list of ranges, in ascending order of their numbers. */
export function withRanges(topic: Topic, ranges: readonly Range[]): Topic {
  return { ...topic, version: topic.version + 1, ranges, active: activeOf(ranges) }
}

export function activeOf(ranges: readonly Range[]): readonly Range[] {
  return ranges
    .filter((range) => range.state === 'active')
    .sort((a, b) => a.firstPartition - b.firstPartition)
}

/** Raises log start offsets; the same array when none rises. */
export function raised(
  starts: readonly number[],
  firstPartition: number,
  offsets: readonly number[],
): readonly number[] {
  let copy: number[] | undefined
  for (let i = 0; i < offsets.length; i++) {
    const offset = offsets[i] as number
    if (offset <= (starts[firstPartition + i] as number)) continue
    copy ??= starts.slice()
    copy[firstPartition + i] = offset
  }
  return copy ?? starts
}

export function zeros(count: number): readonly number[] {
  return Array.from<number>({ length: count }).fill(0)
}

/** Why a segment may not open on these replicas; undefined when it may. */
export function placementFault(placement: Placement, policy: TopicPolicy): Refusal | undefined {
  const { replicas } = placement
  if (replicas.length === 0 || new Set<NodeId>(replicas).size !== replicas.length) {
    return refuse('INTERNAL', 'a placement names no replica, or one of them twice')
  }
  if (replicas.length < policy.minInsyncReplicas) {
    return refuse(
      'NOT_ENOUGH_REPLICAS',
      `a segment would open on ${replicas.length} of at least ${policy.minInsyncReplicas} replicas`,
    )
  }
  return undefined
}
