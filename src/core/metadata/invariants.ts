// What holds of every topic at every log index. `topicFault` says what does not: a snapshot is checked by it before it
// is believed, tests check it after every command; the machine itself asserts the tiling [I9] whenever it changes it.

import { assert } from '../../base/assert.ts'
import { rangeByNumber } from './lookup.ts'
import type { MetadataView, Range, Segment, Topic } from './types.ts'

export function requireTiles(topic: Topic): void {
  const fault = tilingFault(topic)
  assert(fault === undefined, `active ranges tile the topic '${topic.name}': ${fault}`)
}

/** Active ranges tile [0, P) exactly [I9]. */
function tilingFault(topic: Topic): string | undefined {
  let at = 0
  for (const range of topic.active) {
    if (range.firstPartition !== at) return `range ${range.range} begins elsewhere than ${at}`
    if (range.endPartition <= at) return `range ${range.range} is empty`
    at = range.endPartition
  }
  return at === topic.policy.partitions
    ? undefined
    : `the active ranges end at ${at} of ${topic.policy.partitions}`
}

function topicFault(topic: Topic): string | undefined {
  if (topic.logStartOffsets.length !== topic.policy.partitions) {
    return `${topic.logStartOffsets.length} log starts for ${topic.policy.partitions} partitions`
  }
  let previous = -1
  for (const range of topic.ranges) {
    if (range.range <= previous) return `range ${range.range} comes after ${previous}`
    previous = range.range
    const fault = rangeFault(topic, range)
    if (fault !== undefined) return `range ${range.range}: ${fault}`
  }
  if (previous >= topic.nextRange) return `range ${previous} exists before its number is given`
  return tilingFault(topic)
}

function rangeFault(topic: Topic, range: Range): string | undefined {
  const width = range.endPartition - range.firstPartition
  const { segments } = range
  if (width < 1 || range.endPartition > topic.policy.partitions) return 'its partitions'
  if (segments.length === 0) return 'it has no segment'
  const sealed = range.children.length > 0
  if (sealed !== (range.state === 'sealed')) return 'it is sealed exactly when it has children'
  for (let i = 0; i < segments.length; i++) {
    const fault = segmentFault(segments, i, width, i < segments.length - 1 || sealed)
    if (fault !== undefined) return fault
  }
  return sealed ? childrenFault(topic, range) : undefined
}

function segmentFault(
  segments: readonly Segment[],
  index: number,
  width: number,
  sealed: boolean,
): string | undefined {
  const one = segments[index] as Segment
  const before = segments[index - 1]
  const name = `segment ${one.segment}`
  if (one.segment < 1) return `${name}: numbers begin at 1`
  if (before !== undefined && one.segment !== before.segment + 1) return `${name}: a hole before it`
  if (one.state !== (sealed ? 'sealed' : 'open')) return `${name}: it is ${one.state}`
  if (sealed !== (one.endEntry !== undefined)) return `${name}: an end goes with a seal`
  if (one.replicas.length === 0) return `${name}: nobody holds it`
  if (one.firstOffsets.length !== width) return `${name}: ${one.firstOffsets.length} first offsets`
  const fault = settlementFault(one)
  if (fault !== undefined) return `${name}: ${fault}`
  const back = one.firstOffsets.some((o, i) => o < (before?.firstOffsets[i] ?? 0))
  return back ? `${name}: an offset goes back` : undefined
}

function settlementFault({ endEntry, digest, tail }: Segment): string | undefined {
  if (digest !== '' && endEntry === undefined) return 'it is settled before it is sealed'
  if (tail === undefined) return undefined
  if (endEntry === undefined || tail.from >= endEntry) return 'its tail is beyond its end'
  if (digest !== '') return 'it has a tail though it is settled'
  return tail.holders.length === 0 || tail.token === '' ? 'nobody holds its tail' : undefined
}

/** Children that are still kept continue the numbers and the offsets of the range. */
function childrenFault(topic: Topic, range: Range): string | undefined {
  const last = range.segments[range.segments.length - 1] as Segment
  let covered = 0
  for (const number of range.children) {
    const child = rangeByNumber(topic, number)
    if (child === undefined) return `child ${number} is gone before it`
    const first = child.segments[0] as Segment
    if (first.segment <= last.segment) return `child ${number}: its segment numbers go back`
    const from = Math.max(range.firstPartition, child.firstPartition)
    const to = Math.min(range.endPartition, child.endPartition)
    for (let p = from; p < to; p++) {
      const before = last.firstOffsets[p - range.firstPartition] as number
      const after = first.firstOffsets[p - child.firstPartition] as number
      if (after < before) return `child ${number}: the offset of partition ${p} goes back`
    }
    covered += Math.max(0, to - from)
  }
  const width = range.endPartition - range.firstPartition
  return covered === width ? undefined : 'its children do not cover it'
}

export function stateFault(state: MetadataView): string | undefined {
  if (state.topics.size !== state.topicsByName.size) return 'names and ids do not match'
  for (const topic of state.topics.values()) {
    if (state.topicsByName.get(topic.name) !== topic) return `'${topic.name}' is another by name`
    const fault = topicFault(topic)
    if (fault !== undefined) return `topic '${topic.name}': ${fault}`
  }
  return undefined
}
