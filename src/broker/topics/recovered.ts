// What a starting broker makes of the data it finds, by what the metadata says: the rest of deletions that a crash cut
// short is removed, and recovered segments take their ends.

import { EastGuardError } from '../../base/errors.ts'
import { rangeByNumber, segmentByNumber } from '../../core/metadata/lookup.ts'
import type { Segment, Topic } from '../../core/metadata/types.ts'
import type { SegmentKey } from '../../model/segment-key.ts'
import type { LogStore } from '../../storage/types.ts'
import type { BrokerParts } from '../options.ts'

/** Segments that the metadata has dropped, and all that is left of topics it has deleted: a crash came in between. */
export async function sweepStrays(parts: BrokerParts): Promise<void> {
  const { store, metadata, ports } = parts
  const dropped: SegmentKey[] = []
  for (const key of store.keys()) {
    const topic = metadata.state.topics.get(key.topicId)
    if (topic !== undefined && isDropped(topic, key)) dropped.push(key)
  }
  for (const topicId of await store.topics()) {
    if (metadata.state.topics.has(topicId)) continue
    ports.log.info('finishing the deletion of a topic', { topicId })
    await store.dropTopic(topicId)
  }
  if (dropped.length > 0) await store.dropSegments(dropped)
}

/** Positive evidence only: a segment number that the range has not reached yet is left alone. */
function isDropped(topic: Topic, key: SegmentKey): boolean {
  if (key.range >= topic.nextRange) return false
  const range = rangeByNumber(topic, key.range)
  if (range === undefined) return true
  const first = range.segments[0]
  return first !== undefined && key.segment < first.segment
}

/**
 * Recovered segments take the ends that the metadata knows. Sealed ones theirs. Of an open one with no other replica all that
 * was found is committed; with others only what an envelope tells was: the rest waits for what becomes of the segment.
 */
export async function settleRecovered(
  parts: BrokerParts,
  told: (done: number, of: number) => void = () => {},
): Promise<void> {
  const keys = parts.store.keys()
  for (const [done, key] of keys.entries()) {
    told(done, keys.length)
    const topic = parts.metadata.state.topics.get(key.topicId)
    const range = topic === undefined ? undefined : rangeByNumber(topic, key.range)
    const segment = range === undefined ? undefined : segmentByNumber(range, key.segment)
    if (segment !== undefined) await settle(parts.store, key, segment)
  }
}

async function settle(store: LogStore, key: SegmentKey, segment: Segment): Promise<void> {
  const log = store.find(key)
  if (log === undefined || log.damage !== undefined) return
  const { endEntry, replicas } = segment
  const committed = replicas.length === 1 ? log.durableEnd : log.knownHighWatermark
  const end = Math.min(endEntry ?? committed, log.durableEnd)
  if (end > log.highWatermark) log.advance(end)
  if (endEntry === undefined || log.sealed) return
  try {
    await log.seal(endEntry)
  } catch (error) {
    // Its own damage, which is marked and told to whoever reads it, keeps nothing else from being served.
    if (!(error instanceof EastGuardError) || error.code !== 'DAMAGED') throw error
  }
}
