// LIST_TOPICS: a page of names in order, those behind `after`.
//
//   request   text after ('' = from the first) │ u32 limit (at most 10,000)
//   response  bool more │ list { text name │ 16B topic id │ u32 partitions │ u32 ranges │ u8 replication factor }

import { fromHex, toHex } from '../../base/bytes.ts'
import { readList, writeList } from '../../base/cursor.ts'
import { type TopicId, topicId } from '../../model/ids.ts'
import type { Message } from './message.ts'
import { OPERATION } from './operations.ts'

export const LIST_TOPICS_MAX = 10_000

export interface ListTopicsRequest {
  readonly after: string
  readonly limit: number
}

interface TopicSummary {
  readonly name: string
  readonly topicId: TopicId
  readonly partitions: number
  /** Active ones. */
  readonly ranges: number
  readonly replicationFactor: number
}

export interface ListTopicsResponse {
  readonly more: boolean
  readonly topics: readonly TopicSummary[]
}

export const listTopics: Message<ListTopicsRequest, ListTopicsResponse> = {
  operation: OPERATION.LIST_TOPICS,
  writeRequest: (w, q) => {
    w.text(q.after).u32(q.limit)
  },
  readRequest: (r) => ({ after: r.text(), limit: Math.min(r.u32(), LIST_TOPICS_MAX) }),
  writeResponse: (w, s) => {
    w.bool(s.more)
    writeList(w, s.topics, (_, topic) => {
      w.text(topic.name).raw(fromHex(topic.topicId))
      w.u32(topic.partitions).u32(topic.ranges).u8(topic.replicationFactor)
    })
  },
  readResponse: (r) => ({
    more: r.bool(),
    topics: readList(r, 27, () => ({
      name: r.text(),
      topicId: topicId(toHex(r.raw(16))),
      partitions: r.u32(),
      ranges: r.u32(),
      replicationFactor: r.u8(),
    })),
  }),
}
