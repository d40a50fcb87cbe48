// What world a seed makes. A seed draws each by itself, and only some kinds of trouble: what needs three things to come
// together is found by the seeds that have little else.

import type { Prng } from '../../../../src/base/prng.ts'

export type TroubleKind =
  | 'kill'
  | 'kill-leader'
  | 'kill-all'
  | 'pause-leader'
  | 'stick-disk'
  | 'cut-link'
  | 'one-way'
  | 'isolate'
  | 'isolate-leader'
  | 'cut-leader-off'
  | 'roll-and-cancel'
  | 'depose'
  | 'depose-softly'
  | 'roll'
  | 'suspect'
  | 'damage'
  | 'lose-disk'
  | 'drain'
  | 'heal'

const KINDS: readonly TroubleKind[] = [
  'kill',
  'kill',
  'kill-leader',
  'kill-leader',
  'kill-all',
  'pause-leader',
  'stick-disk',
  'cut-link',
  'one-way',
  'isolate',
  'isolate-leader',
  'cut-leader-off',
  'cut-leader-off',
  'roll-and-cancel',
  'depose',
  'depose-softly',
  'roll',
  'suspect',
  'damage',
  'lose-disk',
  'drain',
]

export interface Profile {
  readonly brokers: number
  readonly replicationFactor: number
  readonly minInsyncReplicas: number
  readonly partitions: number
  /** Of one way over a link, about. */
  readonly netMs: number
  readonly lossShare: number
  /** Of messages that come much later, when all has changed. */
  readonly lateShare: number
  readonly lateMs: number
  readonly syncMs: number
  readonly slowSyncShare: number
  /** How far from 1 clocks run. */
  readonly clockSpread: number
  readonly commitMs: number
  /** Until a broker has applied what has committed, about. */
  readonly feedMs: number
  readonly produceMs: number
  /** Of the times that something could be produced, after which nothing is for a while. */
  readonly idleShare: number
  /** Entries that a leader sends at once. */
  readonly sendAtOnce: number
  readonly troubleMs: number
  readonly troubles: readonly TroubleKind[]
  readonly startsAfterMs: number
  /** Of fences, ends and stagings after which somebody dies at once. */
  readonly seizeShare: number
  /** Until a proposer that is not answered gives up. */
  readonly patienceMs: number
}

export function profileOf(chance: Prng): Profile {
  const pick = <T>(...of: readonly T[]): T => of[chance.below(of.length)] as T
  const replicationFactor = pick(1, 2, 2, 3, 3, 3, 3)
  const least = replicationFactor === 3 ? pick(1, 2, 2, 2, 3) : pick(1, replicationFactor)
  return {
    brokers: replicationFactor + pick(0, 1, 1, 2),
    replicationFactor,
    minInsyncReplicas: least,
    partitions: pick(1, 2),
    netMs: pick(1, 3, 10, 40),
    lossShare: pick(0, 0, 0.05, 0.2),
    lateShare: pick(0, 0.02, 0.1, 0.25),
    lateMs: pick(200, 3000),
    syncMs: pick(1, 5, 20, 60),
    slowSyncShare: pick(0, 0, 0.02),
    clockSpread: pick(0, 0.025, 0.025),
    commitMs: pick(2, 20, 100),
    feedMs: pick(2, 50, 500),
    produceMs: pick(15, 40, 120),
    idleShare: pick(0, 0.01, 0.1),
    sendAtOnce: pick(1, 3, 10),
    troubleMs: pick(200, 600, 1500),
    troubles: someOf(chance),
    startsAfterMs: pick(100, 1000, 4000),
    seizeShare: pick(0, 0.1, 0.4),
    patienceMs: pick(300, 2000),
  }
}

/** Few kinds, some more often than others, and now and then all links are made whole. */
function someOf(chance: Prng): TroubleKind[] {
  const chosen: TroubleKind[] = ['heal']
  const count = 2 + chance.below(6)
  while (chosen.length <= count) chosen.push(KINDS[chance.below(KINDS.length)] as TroubleKind)
  return chosen
}
