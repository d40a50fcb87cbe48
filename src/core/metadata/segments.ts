// The life of a segment (PROTOCOLS §5): its leader gives an end under an attempt number, and then either the roll
// commits, which seals it and opens the successor, or CancelEnd commits, which raises the attempt so that the end that
// was given can never commit any more.
//
//   open, attempt a ──RollSegment(a)──> sealed at the end; successor open, attempt 0
//        └──CancelEnd(a)──> open, attempt a + 1          RollSegment(a) is refused from then on
//
// Retries compare and set on (range, segment, attempt), so the second of two rolls gets the first's result.
//
// A sealed segment may still lack entries on some of its replicas: the commit of its end acknowledged what lay in the tail,
// and the tail is on the successor's replicas. It stays there until the segment is settled:
//
//   sealed, tail held by others ──SettleSegment(digest)──> sealed, no tail, every replica provable by the digest

import type {
  CancelEnd,
  GivenEnd,
  ReassignSegment,
  Refusal,
  ResultOf,
  RollSegment,
  SettleSegment,
} from './commands.ts'
import { openOf, rangeByNumber, segmentByNumber } from './lookup.ts'
import type { Step } from './machine.ts'
import { lastSegment, openSegment, placementFault, refuse, sealLast, withRange } from './topic.ts'
import type { Range, Segment, Tail, Topic } from './types.ts'

export function rollSegment(topic: Topic, command: RollSegment): Step<ResultOf<'RollSegment'>> {
  const earlier = earlierRoll(topic, command)
  if (earlier !== undefined) return { result: earlier }
  const range = rangeToSeal(topic, command)
  if ('ok' in range) return { result: range }
  const fault = placementFault(command.placement, topic.policy) ?? tailFault(command)
  if (fault !== undefined) return { result: fault }
  const { nextOffsets, placement, timeMs, endEntry } = command
  const successor = openSegment(command.segment + 1, nextOffsets, placement, timeMs)
  const segments = [...sealLast(range, endEntry, tailOf(command)), successor]
  const changed = withRange(topic, { ...range, segments })
  return { result: rolled(changed, successor, endEntry), topic: changed }
}

function tailFault({ tailFrom, endEntry, placement }: RollSegment): Refusal | undefined {
  if (!Number.isSafeInteger(tailFrom) || tailFrom < 0 || tailFrom > endEntry) {
    return refuse('INTERNAL', `a tail from ${tailFrom} of ${endEntry} entries`)
  }
  const unnamed = tailFrom < endEntry && placement.token === ''
  return unnamed ? refuse('INTERNAL', 'a tail goes with the token it was stored under') : undefined
}

function tailOf({ tailFrom, endEntry, placement }: RollSegment): Tail | undefined {
  if (tailFrom === endEntry) return undefined
  return { from: tailFrom, holders: placement.replicas, token: placement.token }
}

/** The result of the roll that has sealed this segment under this attempt, if one has. */
function earlierRoll(topic: Topic, command: RollSegment): ResultOf<'RollSegment'> | undefined {
  const range = rangeByNumber(topic, command.range)
  if (range === undefined) return undefined
  const segment = segmentByNumber(range, command.segment)
  const successor = segmentByNumber(range, command.segment + 1)
  if (segment?.endEntry === undefined || successor === undefined) return undefined
  return segment.attempt === command.attempt
    ? rolled(topic, successor, segment.endEntry)
    : undefined
}

function rolled(topic: Topic, successor: Segment, endEntry: number): ResultOf<'RollSegment'> {
  const { segment, token } = successor
  return { ok: true, answer: { topic, segment, token, endEntry } }
}

/** The active range whose open segment the end was given for, or why that end may not commit. */
export function rangeToSeal(topic: Topic, given: GivenEnd): Range | Refusal {
  const range = rangeByNumber(topic, given.range)
  const open = range === undefined ? undefined : openOf(range)
  if (range === undefined || open === undefined) return conflict(topic, given, 'is not active')
  if (open.segment !== given.segment) return conflict(topic, given, `has moved to ${open.segment}`)
  if (open.attempt !== given.attempt) {
    return conflict(topic, given, `is at attempt ${open.attempt}, not ${given.attempt}`)
  }
  const first = open.firstOffsets
  const next = given.nextOffsets
  if (next.length !== first.length) {
    return refuse('INTERNAL', `${next.length} next offsets for ${first.length} partitions`)
  }
  const moved = next.some((offset, i) => offset !== first[i])
  const back = next.some((offset, i) => offset < (first[i] as number))
  if (back || moved !== given.endEntry > 0) {
    return refuse('INTERNAL', `next offsets do not follow from ${given.endEntry} entries`)
  }
  return range
}

function conflict(
  topic: Topic,
  at: { readonly range: number; readonly segment: number },
  what: string,
): Refusal {
  const range = rangeByNumber(topic, at.range)
  const open = range === undefined ? undefined : openOf(range)
  const message = `range ${at.range} of '${topic.name}' ${what} (segment ${at.segment} was meant)`
  const detail = { range: at.range, segment: open?.segment, attempt: open?.attempt }
  return refuse('METADATA_CONFLICT', message, detail)
}

export function cancelEnd(topic: Topic, command: CancelEnd): Step<ResultOf<'CancelEnd'>> {
  const range = rangeByNumber(topic, command.range)
  const open = range === undefined ? undefined : openOf(range)
  if (range === undefined || open === undefined || open.segment !== command.segment) {
    return { result: conflict(topic, command, 'has sealed it') }
  }
  // The attempt to cancel is past already: this is a retry.
  if (open.attempt > command.attempt) {
    return { result: { ok: true, answer: { attempt: open.attempt } } }
  }
  if (open.attempt < command.attempt) {
    return { result: conflict(topic, command, `is only at attempt ${open.attempt}`) }
  }
  const changed = withRange(topic, withNextAttempt(range))
  return { result: { ok: true, answer: { attempt: open.attempt + 1 } }, topic: changed }
}

export function withNextAttempt(range: Range): Range {
  const open = lastSegment(range)
  const segments = [...range.segments.slice(0, -1), { ...open, attempt: open.attempt + 1 }]
  return { ...range, segments }
}

export function settleSegment(
  topic: Topic,
  command: SettleSegment,
): Step<ResultOf<'SettleSegment'>> {
  const { digest } = command
  const range = rangeByNumber(topic, command.range)
  const segment = range === undefined ? undefined : segmentByNumber(range, command.segment)
  if (range === undefined || segment === undefined) {
    return { result: conflict(topic, command, 'has dropped it') }
  }
  if (segment.state === 'open') return { result: conflict(topic, command, 'has it open') }
  if (digest === '') return { result: refuse('INTERNAL', 'a segment is settled by its digest') }
  if (segment.digest === digest) return { result: { ok: true, answer: { topic } } }
  if (segment.digest !== '') {
    return {
      result: conflict(topic, command, `has settled it as ${segment.digest}, not ${digest}`),
    }
  }
  const settled: Segment = { ...segment, digest, tail: undefined }
  const changed = withRange(topic, withSegment(range, settled))
  return { result: { ok: true, answer: { topic: changed } }, topic: changed }
}

function withSegment(range: Range, changed: Segment): Range {
  const put = (one: Segment): Segment => (one.segment === changed.segment ? changed : one)
  return { ...range, segments: range.segments.map(put) }
}

export function reassignSegment(
  topic: Topic,
  command: ReassignSegment,
): Step<ResultOf<'ReassignSegment'>> {
  const { replica, change, seen } = command
  const range = rangeByNumber(topic, command.range)
  const segment = range === undefined ? undefined : segmentByNumber(range, command.segment)
  if (range === undefined || segment === undefined) {
    return { result: conflict(topic, command, 'has dropped it') }
  }
  // The set of an open segment is fixed; it changes with the next roll.
  if (segment.state === 'open') return { result: conflict(topic, command, 'has it open') }
  if (segment.replicas.includes(replica) === (change === 'add')) {
    return { result: { ok: true, answer: { topic, replicas: segment.replicas } } }
  }
  // One of two drops that were each right for these replicas may not follow the other.
  if (seen.length > 0 && seen.join() !== segment.replicas.join()) {
    return { result: conflict(topic, command, 'has given it to others meanwhile') }
  }
  // Until all of it is known to be on those who stay, the one that goes may have what they lack.
  if (change === 'drop' && segment.digest === '') {
    return { result: conflict(topic, command, 'has not settled it') }
  }
  const replicas =
    change === 'add'
      ? [...segment.replicas, replica]
      : segment.replicas.filter((one) => one !== replica)
  if (replicas.length === 0) {
    return { result: conflict(topic, command, 'would lose its last replica') }
  }
  const changed = withRange(topic, withSegment(range, { ...segment, replicas }))
  return { result: { ok: true, answer: { topic: changed, replicas } }, topic: changed }
}
