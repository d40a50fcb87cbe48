// What coordinators ask of this broker's replicas (types.ts), answered from the ranges that it runs.

import { EastGuardError, type ErrorCode } from '../../base/errors.ts'
import { rangeByNumber, segmentByNumber } from '../../core/metadata/lookup.ts'
import type { EndReason, FenceAnswer, InspectAnswer } from '../../model/segment-ends.ts'
import { placeOfKey, type SegmentKey } from '../../model/segment-key.ts'
import { EntryDigest } from '../../storage/segment/digest.ts'
import type { ShardAt, StageOrder, UnfitSegment } from '../../wire/peer/segments.ts'
import type { RangeContext } from '../range/context.ts'
import type { RangeCopy } from '../range/copy.ts'
import { RangeFollower } from '../range/follower.ts'
import { RangeLeader } from '../range/leader.ts'
import type { TopicRuntimes } from '../topics/runtimes.ts'
import type { Repairs } from './repairs.ts'
import type { Stager } from './stager.ts'
import type { Replicas } from './types.ts'

export interface LocalReplicasOptions {
  readonly context: RangeContext
  readonly runtimes: TopicRuntimes
  readonly stager: Stager
  readonly repairs: Repairs
  /** Of this broker. */
  readonly boot: number
  /** With what this broker has applied of it. */
  shardAt(shard: number): ShardAt
}

export class LocalReplicas implements Replicas {
  private readonly options: LocalReplicasOptions

  constructor(options: LocalReplicasOptions) {
    this.options = options
  }

  /** Of the open segment `key`; undefined when this broker has none, or is in another segment. */
  private copyOf({ topicId, range, segment }: SegmentKey): RangeCopy | undefined {
    const copy = this.options.runtimes.get(topicId)?.copyOfRange(range)
    return copy?.key.segment === segment ? copy : undefined
  }

  async fence(key: SegmentKey): Promise<FenceAnswer> {
    const copy = this.copyOf(key)
    if (copy === undefined || copy.status === 'gone') throw notHeld(key)
    // Without its fold a replica can be no holder, and what it cannot fold it is not sure of.
    await copy.ensureLoaded()?.catch(() => {})
    if (this.copyOf(key) !== copy) throw notHeld(key)
    if (copy.status === 'live' && copy.state === undefined) {
      throw new EastGuardError('NOT_READY', `${copy.name} cannot be read at the moment`)
    }
    if (!copy.fenced && copy.status === 'live') {
      this.noteFenced(copy)
      await fenceLive(copy)
    }
    if (this.copyOf(key) !== copy) throw notHeld(key)
    const log = copy.log ?? this.options.context.store.find(key)
    const { boot } = this.options
    const heard = copy.role instanceof RangeFollower ? copy.role.segment.answer?.highWatermark : 0
    return {
      boot,
      end: log?.durableEnd ?? 0,
      highWatermark: Math.max(log?.knownHighWatermark ?? 0, heard ?? 0),
      unsure: log?.damage ?? copy.fault?.message,
    }
  }

  /** Who asks may be coordinator no more when it is answered: whoever is by then finds nothing wrong, unless it is told. */
  private noteFenced(copy: RangeCopy): void {
    if (copy.fencedHere) return
    copy.fencedHere = true
    this.options.context.census.note(copy, copy.role instanceof RangeLeader)
  }

  giveEndAsked(key: SegmentKey, attempt: number, why: EndReason): void {
    const copy = this.copyOf(key)
    if (copy === undefined || copy.open.attempt !== attempt) return
    if (copy.role instanceof RangeLeader) copy.role.roll(why)
  }

  endRefused(key: SegmentKey, code: ErrorCode, text: string): void {
    const role = this.copyOf(key)?.role
    if (role instanceof RangeLeader) role.endRefused({ code, message: text })
  }

  stage(order: Omit<StageOrder, 'kind'>): void {
    const copy = this.copyOf(order.key)
    if (copy !== undefined) this.options.stager.stage(copy, order)
  }

  async inspect(key: SegmentKey): Promise<InspectAnswer> {
    const { context, runtimes, repairs } = this.options
    const topic = runtimes.get(key.topicId)?.topic
    const range = topic === undefined ? undefined : rangeByNumber(topic, key.range)
    const segment = range === undefined ? undefined : segmentByNumber(range, key.segment)
    const end = segment?.endEntry
    // What it is about to give up is not relied on: that it holds it again it has to have learned itself.
    const holds = segment?.replicas.includes(context.nodeId) === true
    if (end === undefined || !holds) throw notHeld(key)
    const log = context.store.find(key)
    repairs.lookAt(key)
    if (log === undefined) {
      return end === 0
        ? { kind: 'whole', digest: new EntryDigest(placeOfKey(key)).hex() }
        : { kind: 'part', end: 0 }
    }
    if (log.damage !== undefined) return { kind: 'damaged', why: log.damage }
    // What is not durable is no proof: on the strength of it another copy may go.
    if (log.durableEnd < end || !log.sealed)
      return { kind: 'part', end: Math.min(log.durableEnd, end) }
    try {
      return { kind: 'whole', digest: await log.digest() }
    } catch (error) {
      if (!(error instanceof EastGuardError) || error.code !== 'DAMAGED') throw error
      repairs.lookAt(key)
      return { kind: 'damaged', why: error.message }
    }
  }

  /** Those that somebody waits for come first. */
  *unfit(): Generator<UnfitSegment> {
    const { holding, census } = this.options.context
    const waited = new Set<RangeCopy>()
    for (const { copy } of holding.all()) {
      if (!census.unfit.has(copy)) continue
      waited.add(copy)
      yield unfitSegment(copy, true)
    }
    for (const copy of census.unfit) if (!waited.has(copy)) yield unfitSegment(copy, false)
  }

  ledShards(): readonly ShardAt[] {
    const { census } = this.options.context
    return Array.from(census.shards, (shard) => this.options.shardAt(shard))
  }
}

function unfitSegment(copy: RangeCopy, waited: boolean): UnfitSegment {
  const { key, status, fenced } = copy
  const why = status === 'broken' ? 'damaged' : fenced ? 'restarted' : 'fenced'
  return { key, why, waited }
}

async function fenceLive(copy: RangeCopy): Promise<void> {
  const { role } = copy
  // Meanwhile another segment may open, of which the broker has the same part.
  const follower = role instanceof RangeFollower ? role.segment : undefined
  if (role instanceof RangeLeader) role.fence()
  follower?.fence()
  await copy.openLog().fence()
  follower?.fenceDurable()
}

function notHeld({ topicId, range, segment }: SegmentKey): EastGuardError {
  const what = `segment ${segment} of range ${range} of the topic with the id ${topicId}`
  return new EastGuardError(
    'METADATA_CONFLICT',
    `this broker knows of no part of its own in ${what}`,
  )
}
