// Splits and merges: one command seals the parents at ends that their leaders gave and opens the children, so that the
// active ranges tile the topic at every index [I9]. Offsets run on; segment numbers continue from the greatest of the
// parents' (they are the epochs of the partitions, and must grow).
//
//   [0, 64) segment 7  ──SplitRange at 32──>  [0, 32) segment 8     [0, 32) segment 8  ┐ MergeRange
//                                             [32, 64) segment 8    [32, 64) segment 11 ┴──> [0, 64) segment 12

import type {
  ChildPlacement,
  GivenEnd,
  MergeRange,
  Refusal,
  ResultOf,
  SplitRange,
} from './commands.ts'
import { requireTiles } from './invariants.ts'
import { rangeByNumber } from './lookup.ts'
import type { Step } from './machine.ts'
import { rangeToSeal, withNextAttempt } from './segments.ts'
import {
  lastSegment,
  openRange,
  openSegment,
  placementFault,
  refuse,
  sealLast,
  withRange,
  withRanges,
} from './topic.ts'
import type { Range, Topic } from './types.ts'

export function splitRange(topic: Topic, command: SplitRange): Step<ResultOf<'SplitRange'>> {
  const earlier = childrenSealedBy(topic, command)
  if (earlier !== undefined && earlier.length === 2) {
    const [left = 0, right = 0] = earlier
    return { result: { ok: true, answer: { topic, left, right } } }
  }
  const range = rangeToSeal(topic, command)
  if ('ok' in range) return { result: range }
  const { left, right, atPartition } = command
  const fault = splitFault(topic, range, atPartition) ?? childFault(topic, [left, right])
  if (fault !== undefined) return { result: fault }
  const cut = atPartition - range.firstPartition
  const { nextOffsets, timeMs } = command
  const segment = command.segment + 1
  const child = (place: ChildPlacement, from: number, offsets: readonly number[]): Range =>
    openRange(place.range, from, [range.range], openSegment(segment, offsets, place, timeMs))
  const changed = withChildren(
    topic,
    [seal(range, command.endEntry, [left.range, right.range])],
    [
      child(left, range.firstPartition, nextOffsets.slice(0, cut)),
      child(right, atPartition, nextOffsets.slice(cut)),
    ],
  )
  const answer = { topic: changed, left: left.range, right: right.range }
  return { result: { ok: true, answer }, topic: changed }
}

export function mergeRange(topic: Topic, command: MergeRange): Step<ResultOf<'MergeRange'>> {
  const earlier = childrenSealedBy(topic, command.left)
  if (earlier?.length === 1 && earlier[0] === childrenSealedBy(topic, command.right)?.[0]) {
    return { result: { ok: true, answer: { topic, child: earlier[0] as number } } }
  }
  if (command.left.range === command.right.range) {
    return {
      result: refuse('INTERNAL', `range ${command.left.range} cannot be merged with itself`),
    }
  }
  const left = rangeToSeal(topic, command.left)
  const right = rangeToSeal(topic, command.right)
  const fault =
    refusalIn(left) ??
    refusalIn(right) ??
    mergeFault(topic, left as Range, right as Range) ??
    childFault(topic, [command.child])
  if (fault !== undefined) return cancelBoth(topic, fault, [left, right])
  const parents = [left as Range, right as Range] as const
  const { child, timeMs } = command
  const offsets = [...command.left.nextOffsets, ...command.right.nextOffsets]
  const segment = 1 + Math.max(command.left.segment, command.right.segment)
  const numbers = parents.map((parent) => parent.range)
  const first = openSegment(segment, offsets, child, timeMs)
  const changed = withChildren(
    topic,
    [
      seal(parents[0], command.left.endEntry, [child.range]),
      seal(parents[1], command.right.endEntry, [child.range]),
    ],
    [openRange(child.range, parents[0].firstPartition, numbers, first)],
  )
  return { result: { ok: true, answer: { topic: changed, child: child.range } }, topic: changed }
}

/**
 * A merge that fails for one parent must set the other free too: its leader is frozen under an attempt that nobody would
 * cancel. Raising the attempt is always safe, since then nothing commits under the old one.
 */
function cancelBoth(
  topic: Topic,
  fault: Refusal,
  parents: readonly (Range | Refusal)[],
): Step<ResultOf<'MergeRange'>> {
  let changed = topic
  for (const parent of parents) {
    if (!('ok' in parent)) changed = withRange(changed, withNextAttempt(parent))
  }
  return changed === topic ? { result: fault } : { result: fault, topic: changed }
}

function refusalIn(found: Range | Refusal): Refusal | undefined {
  return 'ok' in found ? found : undefined
}

/** The children of a range whose last segment was sealed under this very end. */
function childrenSealedBy(topic: Topic, given: GivenEnd): readonly number[] | undefined {
  const range = rangeByNumber(topic, given.range)
  if (range === undefined || range.state === 'active') return undefined
  const last = lastSegment(range)
  const same = last.segment === given.segment && last.attempt === given.attempt
  return same ? range.children : undefined
}

function splitFault(topic: Topic, range: Range, at: number): Refusal | undefined {
  const { firstPartition, endPartition } = range
  if (topic.policy.rangeMode === 'fixed') return fixed(topic)
  if (Number.isSafeInteger(at) && at > firstPartition && at < endPartition) return undefined
  const message = `range ${range.range} of '${topic.name}' holds partitions ${firstPartition} to ${endPartition - 1} and cannot be split at ${at}`
  return refuse('RANGE_FIXED', message)
}

function mergeFault(topic: Topic, left: Range, right: Range): Refusal | undefined {
  if (topic.policy.rangeMode === 'fixed') return fixed(topic)
  if (left.endPartition === right.firstPartition) return undefined
  const message = `ranges ${left.range} and ${right.range} of '${topic.name}' are not neighbours`
  return refuse('RANGE_FIXED', message)
}

function fixed(topic: Topic): Refusal {
  return refuse('RANGE_FIXED', `the ranges of '${topic.name}' are fixed by its policy`)
}

/** The states were staged under range numbers, so these must be the ones that come next. */
function childFault(topic: Topic, children: readonly ChildPlacement[]): Refusal | undefined {
  for (const [i, child] of children.entries()) {
    if (child.range !== topic.nextRange + i) {
      const message = `the next range of '${topic.name}' is ${topic.nextRange + i}, not ${child.range}`
      return refuse('METADATA_CONFLICT', message, { nextRange: topic.nextRange })
    }
    const fault = placementFault(child, topic.policy)
    if (fault !== undefined) return fault
  }
  return undefined
}

function seal(range: Range, endEntry: number, children: readonly number[]): Range {
  return { ...range, state: 'sealed', segments: sealLast(range, endEntry), children }
}

function withChildren(topic: Topic, parents: readonly Range[], children: readonly Range[]): Topic {
  const kept = topic.ranges.map((one) => parents.find((p) => p.range === one.range) ?? one)
  const changed: Topic = {
    ...withRanges(topic, [...kept, ...children]),
    nextRange: topic.nextRange + children.length,
  }
  requireTiles(changed)
  return changed
}
