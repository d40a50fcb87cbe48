// What leaves a log at its old end. Retention drops whole sealed segments, oldest first along the lineage, and raises the
// log start offsets to what is left; DeleteRecords raises log starts alone. Log start offsets live here only: they are no
// part of what folds out of entries (PROTOCOLS §2).

import type { DropSegments, Refusal, ResultOf, SetLogStart } from './commands.ts'
import { rangeByNumber } from './lookup.ts'
import type { Step } from './machine.ts'
import { raised, refuse, withRange, withRanges } from './topic.ts'
import { protectedFault } from './topics.ts'
import type { Range, Segment, Topic } from './types.ts'

export function dropSegments(topic: Topic, command: DropSegments): Step<ResultOf<'DropSegments'>> {
  const range = rangeByNumber(topic, command.range)
  // A range that is gone has nothing left to drop: a retry.
  if (range === undefined) return { result: { ok: true, answer: { topic, dropped: [] } } }
  const keep = range.segments.findIndex(
    (one) => one.state === 'open' || one.segment >= command.belowSegment,
  )
  const count = keep < 0 ? range.segments.length : keep
  if (count === 0) return { result: { ok: true, answer: { topic, dropped: [] } } }
  const older = range.parents.find((parent) => rangeByNumber(topic, parent) !== undefined)
  if (older !== undefined) return { result: olderFirst(topic, range, older) }
  const dropped = range.segments.slice(0, count).map((one) => one.segment)
  const changed = without(topic, range, count)
  return { result: { ok: true, answer: { topic: changed, dropped } }, topic: changed }
}

function olderFirst(topic: Topic, range: Range, older: number): Refusal {
  const message = `range ${range.range} of '${topic.name}' continues range ${older}, which has segments still`
  return refuse('METADATA_CONFLICT', message, { range: older })
}

function without(topic: Topic, range: Range, count: number): Topic {
  const rest = range.segments.slice(count)
  const next = rest[0]
  if (next !== undefined) {
    const starts = raised(topic.logStartOffsets, range.firstPartition, next.firstOffsets)
    return { ...withRange(topic, { ...range, segments: rest }), logStartOffsets: starts }
  }
  let starts = topic.logStartOffsets
  for (const number of range.children) {
    const child = rangeByNumber(topic, number)
    if (child === undefined) continue
    const from = Math.max(range.firstPartition, child.firstPartition)
    const to = Math.min(range.endPartition, child.endPartition)
    const first = child.segments[0] as Segment
    const offsets = first.firstOffsets.slice(from - child.firstPartition, to - child.firstPartition)
    starts = raised(starts, from, offsets)
  }
  const ranges = topic.ranges.filter((one) => one !== range)
  return { ...withRanges(topic, ranges), logStartOffsets: starts }
}

export function setLogStart(topic: Topic, command: SetLogStart): Step<ResultOf<'SetLogStart'>> {
  const fault = protectedFault(topic, 'trimmed by offset') ?? startsFault(topic, command)
  if (fault !== undefined) return { result: fault }
  let starts = topic.logStartOffsets
  for (const { partition, offset } of command.starts) starts = raised(starts, partition, [offset])
  if (starts === topic.logStartOffsets) return { result: { ok: true, answer: { topic } } }
  const changed: Topic = { ...topic, version: topic.version + 1, logStartOffsets: starts }
  return { result: { ok: true, answer: { topic: changed } }, topic: changed }
}

function startsFault(topic: Topic, command: SetLogStart): Refusal | undefined {
  for (const { partition, offset } of command.starts) {
    if (!(partition >= 0 && partition < topic.policy.partitions)) {
      const message = `'${topic.name}' has no partition ${partition}`
      return refuse('UNKNOWN_PARTITION', message, { partition })
    }
    if (!Number.isSafeInteger(offset) || offset < 0) {
      return refuse('INTERNAL', `${offset} is no offset`)
    }
  }
  return undefined
}
