// DESCRIBE_TOPICS: everything about the topics named, each with its own status, in the order asked for.
//
//   request   list text names (at most 1,000)
//   response  list { u16 status │ topic (if 0), else text message │ text name }

import { Truncated } from '../../base/cursor.ts'
import { ERRORS, type ErrorCode, errorCodeOf } from '../../base/errors.ts'
import type { TopicView } from '../../model/metadata.ts'
import { type Message, readList, writeList } from './message.ts'
import { OPERATION } from './operations.ts'
import { readTopicView, writeTopicView } from './topic-view.ts'

export const DESCRIBE_TOPICS_MAX = 1000

export interface DescribeTopicsRequest {
  readonly names: readonly string[]
}

export type TopicDescription =
  | { readonly topic: TopicView }
  | { readonly error: ErrorCode; readonly message: string; readonly name: string }

export interface DescribeTopicsResponse {
  readonly topics: readonly TopicDescription[]
}

export const describeTopics: Message<DescribeTopicsRequest, DescribeTopicsResponse> = {
  operation: OPERATION.DESCRIBE_TOPICS,
  writeRequest: (w, q) => {
    writeList(w, q.names, (_, name) => {
      w.text(name)
    })
  },
  readRequest: (r) => {
    const names = readList(r, 2, () => r.text())
    if (names.length > DESCRIBE_TOPICS_MAX)
      throw new Truncated(`${names.length} names, at most ${DESCRIBE_TOPICS_MAX}`)
    return { names }
  },
  writeResponse: (w, s) => {
    writeList(w, s.topics, (_, item) => {
      if ('topic' in item) writeTopicView(w.u16(0), item.topic)
      else w.u16(ERRORS[item.error].number).text(item.message).text(item.name)
    })
  },
  readResponse: (r) => ({
    topics: readList(r, 6, () => {
      const status = r.u16()
      if (status === 0) return { topic: readTopicView(r) }
      return { error: errorCodeOf(status), message: r.text(), name: r.text() }
    }),
  }),
}
