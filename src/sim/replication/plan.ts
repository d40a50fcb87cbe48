// What happens in one run, decided beforehand: topics, clients, clocks, and faults in the order of their times. A plan is data,
// as in ../cluster/plan.ts, and each seed takes only some kinds of trouble, for the same reason.
//
// What hits brokers for what they are to some range is in aimed.ts.
//
// What may be lost is what PROTOCOLS §11 allows [I1]: of all disks those of one broker, and only while every topic has three
// replicas. A disk that comes back as an older copy of itself may answer for what it has forgotten, so then nobody else fails.
//
//   safety     trouble until the end; what was promised must hold, and what is seen must make sense
//   liveness   trouble ends after two thirds; within a bound all must be as it should be [I14]

import { type Prng, prng } from '../../base/prng.ts'
import { SEGMENT_TIMING } from '../../core/segment/types.ts'
import { brokerHost, type Hosts } from '../cluster/step.ts'
import { type Trouble, trouble } from '../cluster/trouble.ts'
import { type ClockPlan, drawnClock } from '../ports/own-clock.ts'
import { type StoragePlan, storagePlan } from '../storage/plan.ts'
import { AIMS, type Aim, aimedSteps } from './aimed.ts'
import type { ReplicationStep, TimedStep } from './step.ts'

export interface TopicPlan {
  readonly name: string
  readonly partitions: number
  /** Undefined: one, for all partitions. */
  readonly ranges: number | undefined
  readonly replicas: number
  readonly minInsync: number
  readonly segmentEntries: number
}

export interface WriterPlan {
  readonly host: string
  readonly topic: number
  readonly acks: 'all' | '1' | '0'
  readonly thinkMsMax: number
}

export interface ReaderPlan {
  readonly host: string
  readonly topic: number
  /** It reads from the replica on this broker rather than from others. */
  readonly near: number
  /** It stays at the end, or reads from the beginning again and again. */
  readonly tail: boolean
}

export interface ReplicationPlan {
  readonly seed: number
  readonly mode: 'safety' | 'liveness'
  readonly shards: number
  readonly brokers: readonly ClockPlan[]
  readonly settings: StoragePlan['settings']
  readonly drainTimeoutMs: number
  /** Less than it takes at times until an end is sealed: it is cancelled then. */
  readonly frozenTimeoutMs: number
  readonly topics: readonly TopicPlan[]
  readonly writers: readonly WriterPlan[]
  readonly readers: readonly ReaderPlan[]
  readonly steps: readonly TimedStep[]
}

export const BROKERS = 5
/** Clients are at work for so long. */
export const RUN_MS = 60_000
export const CALM_AT_MS = 40_000

const READERS = [
  { topic: 0, tail: true },
  { topic: 0, tail: true },
  { topic: 0, tail: false },
  { topic: 1, tail: true },
] as const

/** alone: a broker that reaches no other, and clients that reach all of them: who leads there must notice. */
type Kind = Exclude<Trouble, 'move' | 'hand-over'> | 'full' | 'drain' | 'alone'

const KINDS: readonly Kind[] = [
  'partition',
  'partition',
  'cut',
  'slow-link',
  'lossy-link',
  'reset',
  'reset-after',
  'half-open',
  'pause',
  'pause',
  'kill',
  'kill',
  'power-cut',
  'crash-at-operation',
  'stop',
  'wall',
  'slow-disk',
  'fail-disk',
  'full',
  'drain',
  'alone',
  'alone',
]

/** What a disk may lose. */
type Loss = 'wipe' | 'restore' | 'flip' | 'log'
const LOSSES: readonly Loss[] = ['wipe', 'restore', 'flip', 'log']
/** Beside a disk that may have forgotten what it promised. */
const HARMLESS: readonly Kind[] = ['wall', 'reset', 'slow-link']

export function replicationPlan(seed: number): ReplicationPlan {
  const chance = prng(seed)
  const mode = chance.below(2) === 0 ? 'safety' : 'liveness'
  const loss = chance.below(2) === 0 ? LOSSES[chance.below(LOSSES.length)] : undefined
  const topics = topicPlans(chance, loss !== undefined)
  const writers = writerPlans(chance, topics)
  const readers = READERS.map((reader, i) => ({
    ...reader,
    host: `r${i + 1}`,
    near: chance.below(BROKERS),
  }))
  const clients = [...writers, ...readers].map(({ host }) => host)
  const hosts = { brokers: BROKERS, clients }
  return {
    seed,
    mode,
    shards: 1 + chance.below(2),
    brokers: Array.from({ length: BROKERS }, () => drawnClock(chance)),
    settings: storagePlan(chance.u32()).settings,
    drainTimeoutMs: chance.below(2) === 0 ? 200 : 3000,
    frozenTimeoutMs: chance.below(2) === 0 ? SEGMENT_TIMING.frozenTimeoutMs : 1000,
    topics,
    writers,
    readers,
    steps: steps(chance, hosts, mode === 'safety' ? RUN_MS : CALM_AT_MS, loss),
  }
}

/** Many narrow ranges, or one wide hot one; and one topic beside them. */
function topicPlans(chance: Prng, lossy: boolean): readonly TopicPlan[] {
  const narrow = chance.below(2) === 0
  const ranges = 4 + chance.below(9)
  const main: TopicPlan = {
    name: 'main',
    partitions: narrow ? ranges : 16 + chance.below(17),
    ranges: narrow ? ranges : undefined,
    replicas: 3,
    minInsync: 2,
    segmentEntries: narrow ? 3 + chance.below(8) : 10 + chance.below(40),
  }
  const replicas = lossy ? 3 : 1 + chance.below(3)
  const beside: TopicPlan = {
    name: 'beside',
    partitions: 2,
    ranges: undefined,
    replicas,
    minInsync: replicas === 3 ? 2 : 1,
    segmentEntries: 4 + chance.below(12),
  }
  return [main, beside]
}

function writerPlans(chance: Prng, topics: readonly TopicPlan[]): readonly WriterPlan[] {
  const acks = ['all', 'all', '1', chance.below(2) === 0 ? 'all' : '0'] as const
  return acks.map((one, i) => ({
    host: `w${i + 1}`,
    topic: i === 1 ? topics.length - 1 : i === 3 ? chance.below(topics.length) : 0,
    acks: one,
    thinkMsMax: 1200 + chance.below(2000),
  }))
}

function steps(
  chance: Prng,
  hosts: Hosts,
  untilMs: number,
  loss: Loss | undefined,
): readonly TimedStep[] {
  const made: TimedStep[] = []
  const loser = chance.below(hosts.brokers)
  const add = (step: ReplicationStep, atMs: number): void => {
    made.push({ ...step, atMs: Math.min(untilMs, atMs) })
  }
  const few = loss === 'restore' ? HARMLESS : KINDS
  const kinds = few.filter(() => chance.below(4) === 0)
  for (let left = kinds.length === 0 ? 0 : 6 + chance.below(25); left > 0; left--) {
    const atMs = chance.below(untilMs)
    for (const step of drawn(chance, kinds[chance.below(kinds.length)] as Kind, hosts)) {
      add(step, atMs)
    }
  }
  if (loss === 'flip') {
    for (let left = 1 + chance.below(4); left > 0; left--) {
      const shares = { file: chance.float(), byte: chance.float(), bit: chance.below(8) }
      add({ kind: 'flip', broker: loser, ...shares }, chance.below(untilMs))
    }
  }
  const downMs = 1 + chance.below(chance.below(2) === 0 ? 300 : 10_000)
  if (loss === 'wipe') add({ kind: 'wipe', broker: loser, downMs }, chance.below(untilMs))
  if (loss === 'restore') {
    const atMs = chance.below(untilMs)
    add({ kind: 'copy', broker: loser }, atMs)
    if (chance.below(2) === 0) add({ kind: 'kill', broker: loser, downMs: 100 }, atMs + 500)
    add({ kind: 'restore', broker: loser, downMs }, atMs + 1000 + chance.below(15_000))
  }
  if (loss !== 'restore') made.push(...aimed(chance, untilMs, loss))
  return made.sort((a, b) => a.atMs - b.atMs)
}

/** `unsure` is the one that loses something. */
function aimed(chance: Prng, untilMs: number, loss: Loss | undefined): readonly TimedStep[] {
  const harmless = AIMS.filter((aim) => aim !== 'unsure')
  const some = chance.below(2) === 0 ? 1 + chance.below(3) : 0
  const aims = Array.from({ length: some }, () => harmless[chance.below(harmless.length)] as Aim)
  if (loss === 'log') aims.push('unsure')
  return aims.map((aim) => {
    const steps = aimedSteps(chance, aim)
    return { kind: 'aimed', range: chance.float(), steps, atMs: chance.below(untilMs) }
  })
}

function drawn(chance: Prng, kind: Kind, hosts: Hosts): readonly ReplicationStep[] {
  const broker = chance.below(hosts.brokers)
  // Just longer than a lease, and shorter than the patience of clients.
  const forMs = 2500 + chance.below(chance.below(2) === 0 ? 4000 : 10_000)
  if (kind === 'alone') {
    const others = Array.from({ length: hosts.brokers }, (_, i) => i).filter((i) => i !== broker)
    const from = brokerHost(broker)
    const way = chance.below(3) === 0 ? 'one' : 'both'
    return others.map((to) => ({ kind: 'cut', from, to: brokerHost(to), way, forMs }))
  }
  if (kind === 'pause' && chance.below(2) === 0) {
    return [{ kind, broker, forMs, timersFirst: chance.below(2) === 0 }]
  }
  if (kind === 'full') return [{ kind, broker, forMs: 500 + chance.below(8000) }]
  if (kind === 'drain') return [{ kind, broker, forMs: 3000 + chance.below(15_000) }]
  const steps = trouble(chance, kind, hosts, undefined) as readonly ReplicationStep[]
  return steps.map(ofRecords)
}

/**
 * What a broker syncs next is its log nearly always. When the sync of a segment's file fails instead, its next start finds there
 * what the platter does not have.
 */
function ofRecords(step: ReplicationStep): ReplicationStep {
  if (step.kind !== 'fail-disk' || step.prefix !== '') return step
  return { ...step, operation: 'sync', prefix: 'topics' }
}
