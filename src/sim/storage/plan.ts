// What happens in one run, decided beforehand: settings, and steps in the order of their times. A plan is data, so that a
// run which failed can be told, kept in a file, and shortened by leaving steps out.
//
// Each seed takes only some kinds of trouble and its own proportions of them (a run with everything at once would never get
// far enough to go wrong in an interesting way).

import { type Prng, prng } from '../../base/prng.ts'
import type { OperationKind } from '../ports/disk-faults.ts'

type Trouble =
  | 'kill'
  | 'power-cut'
  | 'crash-at-operation'
  | 'fail-sync'
  | 'fail-write'
  | 'fail'
  | 'full'
  | 'slow'
  | 'reset'
  | 'wall'
  | 'stop'
  | 'rot'

export type Step =
  /**
   * `records` records one after another, without waiting, by one producer to one partition; counted round where the topic
   * has fewer.
   */
  | {
      readonly kind: 'send'
      readonly producer: number
      readonly topic: number
      readonly partition: number
      readonly records: number
      readonly bytes: number
      /** The records imitate the log's own. */
      readonly forged?: boolean
    }
  /** A new consumer reads the topic from its beginning to the end as it is, whatever happens meanwhile. */
  | { readonly kind: 'read'; readonly topic: number }
  | { readonly kind: 'create'; readonly topic: number }
  | { readonly kind: 'delete'; readonly topic: number }
  /** The topic gets `by` partitions more. */
  | { readonly kind: 'widen'; readonly topic: number; readonly by: number }
  /** The topic's segments end after so many entries from then on. */
  | { readonly kind: 'alter'; readonly topic: number; readonly segmentEntries: number }
  /** The broker's process is killed; unsynced bytes stay readable. */
  | { readonly kind: 'kill'; readonly downMs: number }
  /** The machine loses its power; `keep` some unsynced pages and names, or none. */
  | { readonly kind: 'power-cut'; readonly keep: 'some' | 'none'; readonly downMs: number }
  /** As kill or power-cut, at the `operations`-th disk operation from then on, also in recovery. */
  | {
      readonly kind: 'crash-at-operation'
      readonly operations: number
      readonly keep: 'all' | 'some' | 'none'
      readonly downMs: number
      /** The starts that follow crash too, each at so many operations, before one is let through. */
      readonly startsToo?: readonly number[]
    }
  /** The next sync, or write, below `prefix` fails. */
  | { readonly kind: 'fail-sync'; readonly prefix: string }
  | { readonly kind: 'fail-write'; readonly prefix: string }
  /** So many operations of a kind fail, after some that do not: what a broker may survive, or not. */
  | {
      readonly kind: 'fail'
      readonly operation: OperationKind
      readonly prefix: string
      readonly spared: number
      readonly times: number
    }
  /** Nothing more fits on the disk, for a while. */
  | { readonly kind: 'full'; readonly forMs: number }
  | { readonly kind: 'slow'; readonly latencyMs: number; readonly forMs: number }
  | { readonly kind: 'reset' }
  /** The wall clock is set forward or back. */
  | { readonly kind: 'wall'; readonly byMs: number }
  /** A graceful stop, and a start after a while. */
  | { readonly kind: 'stop'; readonly downMs: number }
  /**
   * A bit of a file below `prefix` flips: which file and which byte of it are shares, 0 to 1. After a graceful stop; after
   * a kill with nothing under way, so that all is in the log and the log says so; or in a file of a topic while the broker
   * runs.
   */
  | {
      readonly kind: 'rot'
      readonly when: 'stopped' | 'killed' | 'running'
      readonly prefix: string
      readonly file: number
      readonly byte: number
      readonly bit: number
      readonly downMs: number
    }

/** `atMs` counts from when the first topics are there; what is below 0 comes before the first start. */
export type TimedStep = Step & { readonly atMs: number }

interface ProducerPlan {
  readonly codec: 'none' | 'gzip' | 'snappy' | 'lz4' | 'zstd'
  readonly lingerMs: number
  readonly deliveryTimeoutMs: number
}

export interface StoragePlan {
  readonly seed: number
  readonly settings: {
    readonly walFileBytes: number
    readonly walFilesMax: number
    readonly blockBytes: number
    readonly flushAgeMs: number
    readonly cacheBytes: number
    readonly unflushedBytesMax: number
    readonly journalFileBytes: number
  }
  readonly topics: readonly {
    readonly partitions: number
    readonly segmentEntries: number
    /** Made before the first step. */
    readonly atOnce: boolean
  }[]
  readonly producers: readonly ProducerPlan[]
  readonly steps: readonly TimedStep[]
}

const KIB = 1024
const RUN_MS = 3000
const SEGMENT_ENTRIES = [5, 20, 100, 1_000_000] as const
const DAY_MS = 24 * 3600 * 1000
const CODECS = ['none', 'none', 'none', 'lz4', 'snappy', 'gzip', 'zstd'] as const
const PREFIXES = ['wal', 'wal', 'journal', 'topics', ''] as const
const FAILING: readonly OperationKind[] = [
  'open',
  'read',
  'read',
  'size',
  'truncate',
  'allocate',
  'makeDir',
  'list',
  'rename',
  'remove',
  'syncDir',
]
const TROUBLES: readonly Trouble[] = [
  'kill',
  'power-cut',
  'power-cut',
  'crash-at-operation',
  'crash-at-operation',
  'fail-sync',
  'fail-write',
  'fail',
  'fail',
  'full',
  'slow',
  'reset',
  'wall',
  'stop',
  'rot',
  'rot',
]

export function storagePlan(seed: number): StoragePlan {
  const chance = prng(seed)
  const pick = <T>(from: readonly T[]): T => from[chance.below(from.length)] as T
  const topics = Array.from({ length: 2 + chance.below(3) }, (_, i) => ({
    partitions: 1 + chance.below(4),
    segmentEntries: pick(SEGMENT_ENTRIES),
    atOnce: i < 2,
  }))
  const producers = Array.from({ length: 1 + chance.below(3) }, () => ({
    codec: pick(CODECS),
    lingerMs: pick([0, 2, 5]),
    deliveryTimeoutMs: pick([150, 60_000, 60_000, 60_000]),
  }))
  const walFileBytes = pick([64, 128]) * KIB
  const unflushedBytesMax = pick([32, 64, 256]) * KIB
  return {
    seed,
    settings: {
      walFileBytes,
      walFilesMax: pick([2, 3, 6]),
      blockBytes: pick([1, 4, 16]) * KIB,
      flushAgeMs: pick([20, 100, 1000]),
      cacheBytes: unflushedBytesMax * 2,
      unflushedBytesMax,
      journalFileBytes: pick([16, 128]) * KIB,
    },
    topics,
    producers,
    steps: steps(chance, topics, producers.length),
  }
}

function steps(
  chance: Prng,
  topics: StoragePlan['topics'],
  producers: number,
): readonly TimedStep[] {
  const kinds = TROUBLES.filter(() => chance.below(3) === 0)
  const made: Step[] = []
  for (let left = 10 + chance.below(30); left > 0; left--) {
    const topic = chance.below(topics.length)
    const { partitions } = topics[topic] as StoragePlan['topics'][number]
    made.push({
      kind: 'send',
      producer: chance.below(producers),
      topic,
      partition: chance.below(partitions + (chance.below(3) === 0 ? 3 : 0)),
      records: 1 + chance.below(chance.below(8) === 0 ? 60 : 6),
      bytes: bytesOfRecords(chance),
      ...(chance.below(8) === 0 && { forged: true }),
    })
  }
  for (let left = 1 + chance.below(3); left > 0; left--)
    made.push({ kind: 'read', topic: chance.below(topics.length) })
  for (let topic = 0; topic < topics.length; topic++) {
    // The first topic lives as long as the run.
    const changes = topic === 0 ? 0 : chance.below(4)
    for (let i = 0; i < changes; i++)
      made.push({ kind: chance.below(2) === 0 ? 'create' : 'delete', topic })
  }
  for (let left = chance.below(3); left > 0; left--) {
    const topic = chance.below(topics.length)
    const segmentEntries = SEGMENT_ENTRIES[chance.below(SEGMENT_ENTRIES.length)] ?? 5
    made.push(
      chance.below(2) === 0
        ? { kind: 'widen', topic, by: 1 + chance.below(2) }
        : { kind: 'alter', topic, segmentEntries },
    )
  }
  if (kinds.length > 0) {
    for (let left = 1 + chance.below(6); left > 0; left--) {
      made.push(trouble(chance, kinds[chance.below(kinds.length)] as Trouble))
    }
  }
  return made
    .map((step) => ({ ...step, atMs: chance.below(RUN_MS) }))
    .sort((a, b) => a.atMs - b.atMs)
}

/** Now and then more than a file of the log takes. */
function bytesOfRecords(chance: Prng): number {
  const kind = chance.below(60)
  if (kind === 0) return chance.below(120_000)
  return chance.below(kind < 10 ? 9000 : 300)
}

function trouble(chance: Prng, kind: Trouble): Step {
  const downMs = 1 + chance.below(200)
  const keep = chance.below(3) === 0 ? 'none' : 'some'
  const prefix = PREFIXES[chance.below(PREFIXES.length)] as string
  switch (kind) {
    case 'kill':
    case 'stop':
      return { kind, downMs }
    case 'power-cut':
      return { kind, keep, downMs }
    case 'crash-at-operation':
      return {
        kind,
        operations: 1 + chance.below(chance.below(2) === 0 ? 20 : 200),
        keep: chance.below(3) === 0 ? 'all' : keep,
        downMs,
        startsToo: Array.from({ length: chance.below(3) }, () => 1 + chance.below(60)),
      }
    case 'fail-sync':
    case 'fail-write':
      return { kind, prefix }
    case 'fail':
      return {
        kind,
        operation: FAILING[chance.below(FAILING.length)] as OperationKind,
        prefix: chance.below(2) === 0 ? 'topics' : prefix,
        spared: chance.below(chance.below(2) === 0 ? 3 : 30),
        times: 1 + chance.below(3),
      }
    case 'full':
      return { kind, forMs: 1 + chance.below(600) }
    case 'slow':
      return { kind, latencyMs: 5 + chance.below(100), forMs: 1 + chance.below(600) }
    case 'reset':
      return { kind }
    case 'wall':
      return { kind, byMs: (chance.below(60) - 20) * DAY_MS }
    case 'rot': {
      const when = (['stopped', 'killed', 'running'] as const)[chance.below(3)] ?? 'stopped'
      return {
        kind,
        when,
        prefix: when === 'running' ? 'topics' : prefix,
        file: chance.float(),
        byte: chance.float(),
        bit: chance.below(8),
        downMs,
      }
    }
  }
}
