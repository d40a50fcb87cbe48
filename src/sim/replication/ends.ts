// What must be true of segments in the brokers' copies of the metadata, looked at from outside while they work.
//
//   [I6]   a sealed segment stays sealed, at the same end, with the same entries: its digest, once known, stays
//   [I3]   what is sent after a segment has ended is not acknowledged as a part of it
//   [I4]   a segment begins in each partition no lower than the one before it
//   [I14]  in the end every range can be written, every segment has its replicas, is settled, and has no tail left

import { segmentAt } from '../../core/metadata/lookup.ts'
import type { Range, Segment, Topic } from '../../core/metadata/types.ts'
import type { NodeId, TopicId } from '../../model/ids.ts'
import { shardOfTopic } from '../../model/shards.ts'
import type { Machine, Watcher } from '../machine.ts'
import type { TopicPlan } from './plan.ts'

interface Known {
  readonly endEntry: number
  digest: string
  replicas: readonly NodeId[]
}

export interface EndsOptions {
  readonly machines: readonly Machine[]
  readonly watcher: Watcher
  /** A replica of a sealed segment is one no longer. */
  readonly onDropped: (key: string, topic: Topic, segment: Segment) => void
}

export class Ends {
  private readonly machines: readonly Machine[]
  private readonly watcher: Watcher
  private readonly onDropped: EndsOptions['onDropped']
  /** By shard: the greatest index that anybody was seen to have applied. */
  private readonly newest = new Map<number, number>()
  private readonly known = new Map<string, Known>()
  private readonly seen = new WeakMap<Range, true>()
  /** By topic and partition: where the newest segment begins. */
  private readonly begins = new Map<string, number>()

  constructor({ machines, watcher, onDropped }: EndsOptions) {
    this.machines = machines
    this.watcher = watcher
    this.onDropped = onDropped
  }

  look(): void {
    for (const { host, shards } of this.machines) {
      for (let shard = 0; shard < (shards?.count ?? 0); shard++) {
        const copy = shards?.copyOf(shard)
        if (copy === undefined) continue
        const isNewest = copy.appliedIndex >= (this.newest.get(shard) ?? 0)
        if (isNewest) this.newest.set(shard, copy.appliedIndex)
        for (const topic of copy.state.topics.values()) {
          for (const range of topic.ranges) this.lookAt(topic, range, host, isNewest)
        }
      }
    }
  }

  private lookAt(topic: Topic, range: Range, host: string, isNewest: boolean): void {
    // Values of the metadata never change: what was looked at once need not be again.
    if (this.seen.has(range)) return
    this.seen.set(range, true)
    let before: Segment | undefined
    for (const segment of range.segments) {
      const where = `${host}: ${topic.name} range ${range.range} segment ${segment.segment}`
      const key = `${topic.topicId}/${range.range}/${segment.segment}`
      const back = before?.firstOffsets.some((first, i) => (segment.firstOffsets[i] ?? 0) < first)
      if (back === true) this.watcher.violation(`${where} begins below the one before it`)
      before = segment
      this.noteBegin(topic.topicId, range.firstPartition, segment)
      if (segment.state !== 'sealed') continue
      this.sealed(key, segment, where)
      if (isNewest) this.held(key, topic, segment)
    }
  }

  private noteBegin(topicId: string, firstPartition: number, { firstOffsets }: Segment): void {
    for (const [i, offset] of firstOffsets.entries()) {
      const key = `${topicId}/${firstPartition + i}`
      this.begins.set(key, Math.max(offset, this.begins.get(key) ?? 0))
    }
  }

  /** All below has been sealed, as far as anybody knows: nothing that is sent from now on is acknowledged there. */
  beginOf(topicId: string, partition: number): number {
    return this.begins.get(`${topicId}/${partition}`) ?? 0
  }

  /** Of a sealed segment that is not settled: its replicas, and those who keep its tail; undefined: there is none at that offset. */
  sealedHoldersOf(
    topicId: TopicId,
    partition: number,
    offset: number,
  ): readonly (readonly NodeId[])[] | undefined {
    let newest: { readonly topic: Topic; readonly index: number } | undefined
    for (const { shards } of this.machines) {
      const copy = shards?.copyOf(shardOfTopic(topicId, shards.count))
      const topic = copy?.state.topics.get(topicId)
      if (copy === undefined || topic === undefined) continue
      if (newest === undefined || copy.appliedIndex > newest.index) {
        newest = { topic, index: copy.appliedIndex }
      }
    }
    const found = newest === undefined ? undefined : segmentAt(newest.topic, partition, offset)
    if (found === undefined || found.segment.tail === undefined) return undefined
    return [found.segment.replicas, found.segment.tail.holders]
  }

  /**
   * Who holds what is acknowledged at an offset in the open segment; undefined: the segment has ended by now, or may have, for all
   * that those know who can be asked.
   */
  holdersOf(topicId: TopicId, partition: number, offset: number): readonly NodeId[] | undefined {
    if (this.machines.some(({ shards }) => shards === undefined)) return undefined
    const newest = newestSegment(this.machines, topicId, partition)
    return newest === undefined || offset < newest.begin ? undefined : newest.segment.replicas
  }

  private sealed(key: string, segment: Segment, where: string): void {
    const { endEntry = -1, digest, replicas } = segment
    const known = this.known.get(key)
    if (known === undefined) {
      this.known.set(key, { endEntry, digest, replicas })
      return
    }
    if (known.endEntry !== endEntry) {
      this.watcher.violation(`${where} ends at ${endEntry}, and ended at ${known.endEntry} before`)
    }
    if (digest !== '' && known.digest !== '' && digest !== known.digest) {
      this.watcher.violation(`${where} has the digest ${digest}, and had ${known.digest}`)
    }
    if (digest !== '') known.digest = digest
  }

  private held(key: string, topic: Topic, segment: Segment): void {
    const known = this.known.get(key) as Known
    const dropped = known.replicas.some((node) => !segment.replicas.includes(node))
    known.replicas = segment.replicas
    if (dropped) this.onDropped(key, topic, segment)
  }

  /** Of sealed segments that somebody has known. */
  get count(): number {
    return this.known.size
  }
}

/** The open segment of a partition, as who knows most has it, and where it begins there. */
export function newestSegment(
  machines: readonly Machine[],
  topicId: TopicId,
  partition: number,
): { readonly segment: Segment; readonly begin: number } | undefined {
  let newest: { readonly segment: Segment; readonly begin: number } | undefined
  for (const { shards } of machines) {
    const topic = shards?.copyOf(shardOfTopic(topicId, shards.count)).state.topics.get(topicId)
    const range = topic?.active.find(
      (one) => one.firstPartition <= partition && partition < one.endPartition,
    )
    const segment = range?.segments.at(-1)
    if (range === undefined || segment === undefined) continue
    if (newest !== undefined && segment.segment <= newest.segment.segment) continue
    newest = { segment, begin: segment.firstOffsets[partition - range.firstPartition] ?? 0 }
  }
  return newest
}

/** What is not yet as it should be of a topic, by one broker's copy; `live` are the nodes that are there. */
export function missingOf(
  topic: Topic,
  plan: TopicPlan,
  live: ReadonlyMap<NodeId, Machine>,
): string | undefined {
  const replicas = Math.min(plan.replicas, live.size)
  for (const range of topic.ranges) {
    for (const segment of range.segments) {
      const where = `${topic.name} range ${range.range} segment ${segment.segment} (${segment.state})`
      const gone = segment.replicas.find((node) => !live.has(node))
      if (gone !== undefined) return `${where} is still kept by ${gone}, which is gone`
      if (segment.replicas.length !== replicas)
        return `${where} has ${segment.replicas.length} replicas`
      if (segment.state === 'open') continue
      if (segment.digest === '') return `${where} is not settled`
      if (segment.tail !== undefined) return `${where} still has a tail`
    }
  }
  return undefined
}
