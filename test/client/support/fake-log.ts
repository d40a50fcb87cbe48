// What the fake broker keeps: topics, the batches of their partitions, and the memory of producers, PROTOCOLS §8 at its
// plainest.

import type { ErrorCode } from '../../../src/base/errors.ts'
import type { TopicId } from '../../../src/model/ids.ts'
import type { TopicPolicy } from '../../../src/model/policy.ts'
import type { ProduceResult } from '../../../src/wire/native/produce.ts'

/** The broker's own time of a batch, which no record has: a place tells the time of the record. */
const LOG_APPEND_TIME_MS = 777

interface StoredBatch {
  readonly baseOffset: number
  readonly count: number
  readonly batch: Uint8Array
  readonly least: number
  readonly greatest: number
}

interface Memory {
  epoch: number
  next: number
  /** sequence -> base offset, the last five. */
  seen: { sequence: number; count: number; baseOffset: number }[]
}

export class FakePartition {
  readonly batches: StoredBatch[] = []
  end = 0
  start = 0
  readonly producers: Map<number, Memory> = new Map()
  /** Batches received and not answered. */
  unanswered = 0
  unansweredMost = 0
}

export interface FakeTopic {
  readonly name: string
  readonly id: TopicId
  policy: TopicPolicy
  readonly partitions: FakePartition[]
}

export function judge(
  partition: FakePartition,
  id: number,
  epoch: number,
  sequence: number,
  count: number,
): ProduceResult | undefined {
  let memory = partition.producers.get(id)
  if (memory !== undefined && epoch < memory.epoch) return refusal('PRODUCER_FENCED')
  if (memory === undefined || epoch > memory.epoch) {
    if (sequence !== 0) return refusal('OUT_OF_ORDER_SEQUENCE')
    memory = { epoch, next: 0, seen: [] }
    partition.producers.set(id, memory)
    return undefined
  }
  const seen = memory.seen.find((s) => s.sequence === sequence && s.count === count)
  if (seen !== undefined) {
    return placed(seen.baseOffset)
  }
  if (sequence < memory.next) return refusal('DUPLICATE_SEQUENCE')
  return sequence === memory.next ? undefined : refusal('OUT_OF_ORDER_SEQUENCE')
}

export function placed(baseOffset: number): ProduceResult {
  return { error: undefined, message: '', baseOffset, logAppendTimeMs: LOG_APPEND_TIME_MS }
}

export function refusal(error: ErrorCode): ProduceResult {
  return { error, message: `refused: ${error}`, baseOffset: -1, logAppendTimeMs: -1 }
}

export function topicById(
  topics: ReadonlyMap<string, FakeTopic>,
  id: string,
): FakeTopic | undefined {
  for (const topic of topics.values()) if (topic.id === id) return topic
  return undefined
}
