// How a range gets its fold after a restart, and how it passes from one segment to the next.
//
//   load   staged state of the open segment  +  every recovered entry of it  =  the fold
//   roll   in flight has committed ─> stage the fold for the successor under a token ─> RollSegment(end, next offsets,
//          digest, token) ─> seal the old segment ─> open. Producers wait and see no error. Until the roll is
//          proposed a failure costs nothing; its result is the proposal's own, so a refusal is final.

import { toHex } from '../../base/bytes.ts'
import { Truncated } from '../../base/cursor.ts'
import { EastGuardError } from '../../base/errors.ts'
import type { ResultOf, RollSegment } from '../../core/metadata/commands.ts'
import { RangeState, stateDigest } from '../../core/producers/range-state.ts'
import type { SegmentKey } from '../../model/segment-key.ts'
import { DiskError } from '../../ports/disk.ts'
import type { SegmentLog } from '../../storage/types.ts'
import type { RangeLeader } from './leader.ts'

const ROLL_RETRY_MS = 250
/** What the disk could not read it may read yet; what it cannot read so often is as good as damaged. */
const LOAD_TRIES = 5

function keyOf(leader: RangeLeader, segment: number): SegmentKey {
  return { topicId: leader.topic.topicId, range: leader.range.range, segment }
}

function nameOf(leader: RangeLeader): string {
  const { topic, range } = leader
  return `topic ${topic.name}, range ${range.range}, segment ${leader.openSegment.segment}`
}

/** Rejects with DAMAGED, after which the range is broken, or with what the disk said, after which it may be tried again. */
export async function load(leader: RangeLeader): Promise<void> {
  try {
    await loadFold(leader)
  } catch (error) {
    const damaged = error instanceof EastGuardError && error.code === 'DAMAGED'
    if (!damaged || leader.fault !== undefined) throw error
    const unreadable = error.cause instanceof DiskError
    if (unreadable && ++leader.loadFailures < LOAD_TRIES) throw error
    // Whoever waits for the range is told now, not when its patience is over.
    throw breakRange(leader, error.message)
  }
}

async function loadFold(leader: RangeLeader): Promise<void> {
  const { store } = leader.context
  const open = leader.openSegment
  const key = keyOf(leader, open.segment)
  const log = store.find(key)
  if (log?.damage !== undefined) throw breakRange(leader, log.damage)
  const state = await stagedState(leader, key)
  if (log !== undefined) {
    for await (const entries of log.scan(0)) for (const entry of entries) state.fold(entry)
  }
  if (leader.mode === 'gone') throw topicGone(leader)
  leader.log = log
  leader.begin(state)
}

async function stagedState(leader: RangeLeader, key: SegmentKey): Promise<RangeState> {
  const { range, context } = leader
  const { token, firstOffsets } = leader.openSegment
  if (token === '') {
    return new RangeState(range.firstPartition, firstOffsets, context.producerIdExpiryMs)
  }
  const bytes = await context.store.loadState(key, token)
  if (bytes === undefined) {
    throw breakRange(leader, 'the range state at its start is not on this disk')
  }
  try {
    return RangeState.decode(bytes, context.producerIdExpiryMs)
  } catch (error) {
    if (!(error instanceof Truncated)) throw error
    throw breakRange(leader, `the range state at its start is damaged: ${error.message}`)
  }
}

function breakRange(leader: RangeLeader, what: string): EastGuardError {
  const message = `${nameOf(leader)}: ${what}`
  leader.context.log.error('a range cannot be served: it is damaged', {
    topic: leader.topic.name,
    range: leader.range.range,
    segment: leader.openSegment.segment,
    damage: what,
  })
  leader.end('broken', 'DAMAGED', message)
  return new EastGuardError('DAMAGED', message)
}

function topicGone(leader: RangeLeader): EastGuardError {
  return new EastGuardError('UNKNOWN_TOPIC', `the topic ${leader.topic.name} was deleted`)
}

/** Called in mode rolling with nothing in flight. */
export async function roll(leader: RangeLeader): Promise<void> {
  const { context } = leader
  const old = leader.openSegment.segment
  let rolled: Rolled | undefined
  try {
    rolled = await rollSegment(leader)
  } catch (error) {
    if (leader.mode !== 'rolling') return
    context.counters.rollFailures.add(1)
    context.log.warn('a roll failed and will be tried again', {
      topic: leader.topic.name,
      range: leader.range.range,
      segment: old,
      err: error,
    })
    leader.rollAgainAt = context.clock.monotonic() + ROLL_RETRY_MS
    leader.afterFailedRoll()
    return
  }
  if (rolled !== undefined) await forgetOlderStates(leader, rolled)
}

/** What is opened and may be in its own next roll already, which nothing of this one's aftermath may be taken for. */
interface Rolled {
  readonly next: SegmentKey
  readonly token: string
}

async function forgetOlderStates({ context }: RangeLeader, { next, token }: Rolled): Promise<void> {
  try {
    await context.store.keepState(next, token)
  } catch (error) {
    // A deleted topic has none. What stays otherwise goes with the next roll's.
    context.log.info('range states that a roll needs no more could not be removed', {
      ...next,
      err: error,
    })
  }
}

async function rollSegment(leader: RangeLeader): Promise<Rolled | undefined> {
  const { context, topic, range, state, log } = leader
  const open = leader.openSegment
  if (state === undefined) throw new EastGuardError('INTERNAL', 'a roll before the range is loaded')
  const next = keyOf(leader, open.segment + 1)
  const token = toHex(context.random.bytes(16))
  const bytes = state.encode()
  await context.store.stageState(next, token, bytes)
  if (leader.mode !== 'rolling') return undefined
  const endEntry = log?.end ?? 0
  const result = await proposed(leader, {
    kind: 'RollSegment',
    topicId: topic.topicId,
    range: range.range,
    segment: open.segment,
    attempt: open.attempt,
    endEntry,
    nextOffsets: state.nextOffsets(),
    tailFrom: endEntry,
    placement: { replicas: [context.nodeId], token, stateDigest: stateDigest(bytes) },
    timeMs: context.clock.wall(),
  })
  if (leader.mode !== 'rolling') return undefined
  if (!result.ok) throw new EastGuardError(result.code, result.message, { detail: result.detail })
  // The answer is that of the roll which committed first, and only its end and its token count.
  const { answer } = result
  await sealed(leader, log, answer.endEntry)
  context.counters.rolls.add(1)
  if (leader.mode !== 'rolling') return undefined
  leader.opened()
  return { next, token: answer.token }
}

/** After a failed disk nobody knows whether the roll is in the journal: what the old segment took now could be cut off. */
async function proposed(leader: RangeLeader, roll: RollSegment): Promise<ResultOf<'RollSegment'>> {
  try {
    return await leader.context.metadata.propose(roll)
  } catch (error) {
    if (error instanceof EastGuardError && error.code === 'DISK_FAILED') {
      const message = `${nameOf(leader)}: nobody knows whether it was rolled, the broker stops`
      leader.end('broken', 'BROKER_STOPPED', message)
    }
    throw error
  }
}

/** The successor is open for everyone: there is no going back to a segment whose seal could not be written. */
async function sealed(
  leader: RangeLeader,
  log: SegmentLog | undefined,
  end: number,
): Promise<void> {
  try {
    await log?.seal(end)
  } catch (error) {
    const message = `${nameOf(leader)}: its segment could not be sealed, the broker stops`
    leader.end('broken', 'BROKER_STOPPED', message)
    throw error
  }
}
