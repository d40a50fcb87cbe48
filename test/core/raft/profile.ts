// What world a seed makes: how fast its network and its disks are beside an election, how its clocks run, how the members are
// set up, and which kinds of trouble it has. A seed draws each by itself, and only some kinds of trouble: what needs three
// things to come together is found by the seeds that have little else.

import type { Prng } from '../../../src/base/prng.ts'

type TroubleKind =
  | 'kill'
  | 'kill-leader'
  | 'isolate-leader'
  | 'halve'
  | 'cut-link'
  | 'one-way'
  | 'pause'
  | 'power-loss'
  | 'wipe'
  | 'members'
  | 'hand-over'
  | 'hand-over-unheard'
  | 'stick-disk'
  | 'lose-promises'
  | 'ambush'
  | 'rivals'
  | 'heal'

const KINDS: readonly TroubleKind[] = [
  'kill',
  'kill-leader',
  'isolate-leader',
  'halve',
  'cut-link',
  'one-way',
  'pause',
  'power-loss',
  'wipe',
  'members',
  'hand-over',
  'hand-over-unheard',
  'stick-disk',
  'lose-promises',
  'ambush',
  'rivals',
]

/** What the world looks like once the trouble has ended: the group must work in each. */
type Peace =
  | 'whole'
  /** Some machines never come back, but a quorum has. */
  | 'dead-minority'
  /** Two machines never hear one another, or one does not hear the other. */
  | 'cut-pair'
  /** One machine hears nobody; it is heard. */
  | 'deaf-one'

export interface Profile {
  readonly voters: number
  readonly learners: number
  readonly electionTimeoutMs: number
  readonly heartbeatMs: number
  readonly tickMs: number
  readonly netMs: number
  readonly lossShare: number
  readonly doubleShare: number
  /** Of messages that come much later, when all has changed. */
  readonly lateShare: number
  readonly lateMs: number
  readonly syncMs: number
  /** Of syncs that take longer than an election. */
  readonly slowSyncShare: number
  /** How far from 1 the fastest and the slowest clock run. */
  readonly clockSpread: number
  readonly clocksAtEnds: boolean
  readonly appendBytesMax: number
  readonly appendsInFlightMax: number
  readonly entriesKept: number
  readonly snapshotPartBytes: number
  readonly uncommittedBytesMax: number
  /** Of the times that something is applied. */
  readonly compactShare: number
  readonly clientMs: number
  readonly troubleMs: number
  readonly troubles: readonly TroubleKind[]
  /** Of elections that somebody uses at once: to change members, to cut the leader off, to kill it. */
  readonly seizeShare: number
  /** Of votes and acknowledgements after which the machine dies at once. */
  readonly promiseCrashShare: number
  readonly peace: Peace
  /** Nobody proposes in the first half of the peace: who is not up to date is no danger, and there it may be. */
  readonly idlePeace: boolean
}

export const MACHINES = 5
/** In election time-outs. */
export const TROUBLE_LASTS = 40
export const PEACE_SETTLES = 16
export const PEACE_LASTS = 16

export function profileOf(chance: Prng): Profile {
  const pick = <T>(...of: readonly T[]): T => of[chance.below(of.length)] as T
  const electionTimeoutMs = pick(100, 200, 300)
  const voters = pick(1, 2, 3, 3, 3, 4, 5)
  const appendBytesMax = pick(1, 1, 200, 2000)
  return {
    voters,
    learners: chance.below(MACHINES - voters + 1),
    electionTimeoutMs,
    heartbeatMs: electionTimeoutMs / pick(4, 8),
    tickMs: electionTimeoutMs / pick(10, 40),
    netMs: electionTimeoutMs / pick(300, 100, 30, 5),
    lossShare: pick(0, 0, 0.05, 0.2),
    doubleShare: pick(0, 0.05),
    lateShare: pick(0, 0, 0.02, 0.1),
    lateMs: electionTimeoutMs * pick(0.5, 4),
    syncMs: electionTimeoutMs * pick(0, 0.02, 0.1, 0.4),
    slowSyncShare: pick(0, 0, 0.02),
    clockSpread: 0.025,
    clocksAtEnds: chance.below(2) === 0,
    appendBytesMax,
    // One entry at a time, and that only after an answer, would never be done.
    appendsInFlightMax: appendBytesMax === 1 ? 16 : pick(1, 4, 16),
    entriesKept: pick(0, 2, 20),
    snapshotPartBytes: pick(24, 60, 1000),
    uncommittedBytesMax: pick(300, 10_000),
    compactShare: pick(0, 0.05, 0.3),
    clientMs: electionTimeoutMs / pick(4, 8, 16),
    troubleMs: electionTimeoutMs * pick(0.4, 1, 2),
    troubles: someOf(chance),
    seizeShare: pick(0, 0.3, 0.8),
    promiseCrashShare: pick(0, 0.005, 0.03),
    peace: pick('whole', 'dead-minority', 'cut-pair', 'deaf-one'),
    idlePeace: chance.below(2) === 0,
  }
}

/** Few kinds, some more often than others, and now and then all links are made whole. */
function someOf(chance: Prng): TroubleKind[] {
  const chosen: TroubleKind[] = ['heal']
  const count = 2 + chance.below(6)
  while (chosen.length <= count) chosen.push(KINDS[chance.below(KINDS.length)] as TroubleKind)
  return chosen
}
