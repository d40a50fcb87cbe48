// What happens in one run of a cluster, decided beforehand: brokers, their clocks and settings, clients, and faults in the
// order of their times. A plan is data, so that a run which failed can be told, kept in a file, and shortened by leaving
// steps out. What clients do is not in it: they do one thing after another for as long as the run lasts, as their own seed
// says (metadata-client.ts, record-client.ts).
//
// Each seed takes only some kinds of trouble, and its own proportions of them: with everything at once nothing would ever
// get far enough to go wrong in an interesting way.
//
//   safety     trouble until the end; what was promised must hold, and what is seen must make sense
//   liveness   trouble ends after two thirds, or becomes one cut between two brokers that lasts for ever; then all must work

import { type Prng, prng } from '../../base/prng.ts'
import { CLOCK_RATES, type ClockPlan } from '../ports/own-clock.ts'
import { type StoragePlan, storagePlan } from '../storage/plan.ts'
import type { Hosts, TimedStep } from './step.ts'
import { type Trouble, trouble } from './trouble.ts'

export interface ClusterPlan {
  readonly seed: number
  readonly mode: 'safety' | 'liveness'
  readonly brokers: readonly ClockPlan[]
  readonly settings: StoragePlan['settings']
  /** Hosts of the clients that change and look at metadata, and of those that write and read records. */
  readonly metadataClients: readonly string[]
  readonly recordClients: readonly string[]
  readonly steps: readonly TimedStep[]
  /** Of each shard, behind a snapshot: with few, whoever lags is sent snapshots. */
  readonly entriesKept?: number
  /** Of a run in the mode of liveness: the two brokers that never reach each other again. */
  readonly lastingCut?: readonly [number, number]
}

/** Clients are at work for so long. */
export const RUN_MS = 60_000
export const CALM_AT_MS = 40_000
const BROKERS_MAX = 5
const ENTRIES_KEPT_FEW = 5
const METADATA_CLIENTS = 6
const RECORD_CLIENTS = 2

const TROUBLES: readonly Trouble[] = [
  'partition',
  'partition',
  'cut',
  'cut',
  'slow-link',
  'lossy-link',
  'reset',
  'reset-after',
  'half-open',
  'pause',
  'pause',
  'kill',
  'power-cut',
  'power-cut',
  'crash-at-operation',
  'stop',
  'wall',
  'slow-disk',
  'fail-disk',
  'wipe',
  'restore',
  'move',
  'hand-over',
]

export function clusterPlan(seed: number): ClusterPlan {
  const chance = prng(seed)
  const count = 1 + chance.below(BROKERS_MAX)
  const mode = chance.below(2) === 0 ? 'safety' : 'liveness'
  const clients = (kind: string, many: number): readonly string[] =>
    Array.from({ length: many }, (_, i) => `${kind}${i + 1}`)
  const metadataClients = clients('m', METADATA_CLIENTS)
  const recordClients = clients('r', RECORD_CLIENTS)
  const hosts = { brokers: count, clients: [...metadataClients, ...recordClients] }
  return {
    seed,
    mode,
    brokers: Array.from({ length: count }, () => clockPlan(chance)),
    settings: storagePlan(chance.u32()).settings,
    metadataClients,
    recordClients,
    steps: steps(chance, hosts, mode === 'safety' ? RUN_MS : CALM_AT_MS),
    ...(mode === 'liveness' && count >= 3 && chance.below(2) === 0 && { lastingCut: [0, 1] }),
    ...(chance.below(2) === 0 && { entriesKept: ENTRIES_KEPT_FEW }),
  }
}

function clockPlan(chance: Prng): ClockPlan {
  const [slow, fast] = CLOCK_RATES
  const rates = [1, slow, fast, slow + chance.float() * (fast - slow)]
  return {
    clockRate: rates[chance.below(rates.length)] ?? 1,
    clockStartMs: chance.below(1_000_000_000),
  }
}

function steps(chance: Prng, hosts: Hosts, untilMs: number): readonly TimedStep[] {
  const alone = hosts.brokers === 1
  const kinds = TROUBLES.filter((kind) => chance.below(3) === 0 && (kind !== 'restore' || alone))
  if (kinds.length === 0) return []
  // A shard has three members: one disk may be lost, and its place be taken, without anything that was promised.
  const loser = hosts.brokers === 2 ? undefined : chance.below(hosts.brokers)
  const made: TimedStep[] = []
  for (let left = 3 + chance.below(25); left > 0; left--) {
    const kind = kinds[chance.below(kinds.length)] as Trouble
    const atMs = chance.below(untilMs)
    for (const step of trouble(chance, kind, hosts, loser)) {
      made.push({ ...step, atMs: Math.min(untilMs, atMs + (step.afterMs ?? 0)) })
    }
  }
  return made.sort((a, b) => a.atMs - b.atMs)
}
