// What happens in one run, decided beforehand: how many brokers there will be, how many of them from the beginning, whom
// each asks for its cluster, and what goes wrong when. A plan is data, as in ../cluster/plan.ts, and each seed takes only some
// kinds of trouble, for the same reason.
//
//   brokers start, in any order ─> clients at work, steps at their times ─> 35 s: trouble ends ─> all is as it should be
//     ─> the ending: one broker cannot be reached, and nobody else notices; or all start anew, and nothing is moved

import { type Prng, prng } from '../../base/prng.ts'
import { brokerHost, type Hosts, type Step } from '../cluster/step.ts'
import { type Trouble, trouble } from '../cluster/trouble.ts'
import { type ClockPlan, drawnClock } from '../ports/own-clock.ts'
import { type StoragePlan, storagePlan } from '../storage/plan.ts'
import type { ComingStep, MembershipStep, TimedStep } from './step.ts'

export interface MembershipPlan {
  readonly seed: number
  readonly shards: number
  /** The first founds the cluster. */
  readonly brokers: readonly MemberPlan[]
  readonly settings: StoragePlan['settings']
  /** A broker that has been gone for longer loses its place. */
  readonly replaceMs: number
  /** Whoever runs the cluster says of each node that is gone for ever that it is removed. */
  readonly tidy: boolean
  readonly packetLoss: number
  readonly packetDoubling: number
  readonly clients: readonly string[]
  readonly thinkMsMax: number
  readonly steps: readonly TimedStep[]
  readonly ending: 'black hole' | 'restart'
}

interface MemberPlan extends ClockPlan {
  /** By number; itself may be among them. */
  readonly seeds: readonly number[]
  /** Of those that are there from the beginning: so long after the run has begun. Undefined: it joins by a step. */
  readonly startsAtMs: number | undefined
}

/** Clients are at work for so long. */
export const RUN_MS = 40_000
export const CALM_AT_MS = 32_000
const MANY = 20
const FEW_MAX = 7
/** Of so many seeds one has many brokers. */
const MANY_EVERY = 50

const TROUBLES: readonly Trouble[] = [
  'partition',
  'partition',
  'cut',
  'slow-link',
  'lossy-link',
  'lossy-link',
  'reset',
  'half-open',
  'pause',
  'pause',
  'kill',
  'kill',
  'power-cut',
  'crash-at-operation',
  'stop',
  'slow-disk',
  'fail-disk',
  'wall',
]

type Coming = Exclude<ComingStep['kind'], 'join' | 'undrain'> | 'long partition'

const COMINGS: readonly Coming[] = [
  'retire',
  'replace',
  'replace',
  'mistake',
  'drain',
  'remove',
  'mass-restart',
  'long partition',
]

export function membershipPlan(seed: number): MembershipPlan {
  const chance = prng(seed)
  const many = chance.below(MANY_EVERY) === 0
  const count = many ? 8 + chance.below(MANY - 7) : 1 + chance.below(FEW_MAX)
  const first = chance.below(2) === 0 ? count : 1 + chance.below(count)
  const packetLoss = (chance.below(3) === 0 ? 0.1 : 0) * chance.float()
  const clients = Array.from({ length: many ? 1 : 3 }, (_, i) => `m${i + 1}`)
  return {
    seed,
    shards: many || chance.below(3) > 0 ? 4 : 8,
    brokers: Array.from({ length: count }, (_, i) => memberPlan(chance, i, first)),
    settings: storagePlan(chance.u32()).settings,
    replaceMs: 4000 + chance.below(8000),
    tidy: chance.below(2) === 0,
    packetLoss,
    packetDoubling: (chance.below(3) === 0 ? 0.2 : 0) * chance.float(),
    clients,
    thinkMsMax: many ? 2000 : 1200,
    steps: steps(chance, { brokers: count, clients }, first),
    // Where much gets lost anyway nobody can say whom an answer waited for.
    ending: packetLoss === 0 && chance.below(2) === 0 ? 'black hole' : 'restart',
  }
}

function memberPlan(chance: Prng, broker: number, first: number): MemberPlan {
  return {
    ...drawnClock(chance),
    seeds: seedsOf(chance, broker, first),
    startsAtMs: broker < first ? chance.below(3000) : undefined,
  }
}

/** By each other's seeds all come to the founder, whose only seed is itself. Seeds may be down at first. */
function seedsOf(chance: Prng, broker: number, first: number): readonly number[] {
  const itself = chance.below(2) === 0 ? [broker] : []
  if (broker === 0) return itself
  const older = Math.min(broker, first)
  const seeds = Array.from({ length: 1 + chance.below(3) }, () => chance.below(older))
  return [...itself, ...new Set(seeds)]
}

function steps(chance: Prng, hosts: Hosts, first: number): readonly TimedStep[] {
  const made: TimedStep[] = []
  const at = (step: MembershipStep): void => {
    made.push({ ...step, atMs: chance.below(CALM_AT_MS) })
  }
  for (let broker = first; broker < hosts.brokers; broker++) at({ kind: 'join', broker })
  const kinds = TROUBLES.filter(() => chance.below(4) === 0)
  for (let left = kinds.length === 0 ? 0 : chance.below(12); left > 0; left--) {
    const kind = kinds[chance.below(kinds.length)] as Trouble
    for (const step of trouble(chance, kind, hosts, undefined)) {
      if (isPlain(step)) at(step)
    }
  }
  const comings = COMINGS.filter(() => chance.below(3) === 0)
  for (let left = comings.length === 0 ? 0 : 1 + chance.below(6); left > 0; left--) {
    const step = coming(chance, comings[chance.below(comings.length)] as Coming, hosts)
    at(step)
    if (step.kind === 'drain' && chance.below(3) > 0) at({ kind: 'undrain', broker: step.broker })
  }
  return made.sort((a, b) => a.atMs - b.atMs)
}

function isPlain(step: Step): step is Exclude<MembershipStep, ComingStep> {
  return !['move', 'hand-over', 'wipe', 'copy', 'restore'].includes(step.kind)
}

function coming(chance: Prng, kind: Coming, hosts: Hosts): MembershipStep {
  const broker = chance.below(hosts.brokers)
  const downMs = 1 + chance.below(chance.below(2) === 0 ? 500 : 8000)
  switch (kind) {
    case 'retire':
    case 'drain':
      return { kind, broker }
    case 'replace':
    case 'mistake':
    case 'remove':
      return { kind, broker, downMs }
    case 'mass-restart': {
      const each = Array.from({ length: hosts.brokers }, () => 1 + chance.below(downMs))
      return { kind, gently: chance.below(2) === 0, downMs: each }
    }
    case 'long partition': {
      // Longer than others need to find the cut off dead, and to have told everybody.
      const inside = Array.from({ length: hosts.brokers }, (_, i) => brokerHost(i)).filter(
        (_, i) => i === broker || chance.below(3) === 0,
      )
      return { kind: 'partition', side: inside, way: 'both', forMs: 12_000 + chance.below(15_000) }
    }
  }
}
