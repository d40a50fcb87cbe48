// What must be true of segments in the brokers' copies of the metadata, looked at from outside while they work.
//
//   [I6]   a sealed segment stays sealed, at the same end, with the same entries: its digest, once known, stays
//   [I3]   what is sent after a segment has ended is not acknowledged as a part of it
//   [I4]   a segment begins in each partition no lower than the one before it
//   [I14]  in the end every range can be written, every segment has its replicas, is settled, and has no tail left

import type { Range, Segment, Topic } from '../../core/metadata/types.ts'
import type { NodeId, TopicId } from '../../model/ids.ts'
import { shardOfTopic } from '../../model/shards.ts'
import type { Machine, Watcher } from '../machine.ts'
import type { TopicPlan } from './plan.ts'

interface Known {
  readonly endEntry: number
  digest: string
}

export class Ends {
  private readonly machines: readonly Machine[]
  private readonly watcher: Watcher
  private readonly known = new Map<string, Known>()
  private readonly seen = new WeakMap<Range, true>()
  /** By topic and partition: where the newest segment begins. */
  private readonly begins = new Map<string, number>()

  constructor(machines: readonly Machine[], watcher: Watcher) {
    this.machines = machines
    this.watcher = watcher
  }

  look(): void {
    for (const { host, shards } of this.machines) {
      for (let shard = 0; shard < (shards?.count ?? 0); shard++) {
        for (const topic of shards?.copyOf(shard).state.topics.values() ?? []) {
          for (const range of topic.ranges) this.lookAt(topic, range, host)
        }
      }
    }
  }

  private lookAt(topic: Topic, range: Range, host: string): void {
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
      if (segment.state === 'sealed') this.sealed(key, segment, where)
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

  /**
   * Who holds what is acknowledged at an offset in the open segment; undefined: the segment has ended by now, or may have, for all
   * that those know who can be asked.
   */
  holdersOf(topicId: TopicId, partition: number, offset: number): readonly NodeId[] | undefined {
    let newest: { readonly segment: Segment; readonly begin: number } | undefined
    for (const { shards } of this.machines) {
      if (shards === undefined) return undefined
      const shard = shardOfTopic(topicId, shards.count)
      const topic = shards.copyOf(shard).state.topics.get(topicId)
      const range = topic?.active.find(
        (one) => one.firstPartition <= partition && partition < one.endPartition,
      )
      const segment = range?.segments.at(-1)
      if (range === undefined || segment === undefined) continue
      const begin = segment.firstOffsets[partition - range.firstPartition] ?? 0
      if (newest === undefined || segment.segment > newest.segment.segment) {
        newest = { segment, begin }
      }
    }
    return newest === undefined || offset < newest.begin ? undefined : newest.segment.replicas
  }

  private sealed(key: string, { endEntry = -1, digest }: Segment, where: string): void {
    const known = this.known.get(key)
    if (known === undefined) {
      this.known.set(key, { endEntry, digest })
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

  /** Of sealed segments that somebody has known. */
  get count(): number {
    return this.known.size
  }
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
