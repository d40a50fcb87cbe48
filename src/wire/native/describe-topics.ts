// DESCRIBE_TOPICS: the topics named, each with its own status, in the order asked for.
//
//   request   bool brief │ list text names (at most 1,000)
//   response  list { u16 status │ bool brief │ topic (if 0), else text message │ text name }
//
// A brief topic has what routing needs: of each range only the last segment, no first offsets and no log starts. The
// views of long-lived topics are large, so a client asks for whole ones only to show them; once an answer has
// DESCRIBE_BYTES_MAX the broker gives a topic briefly, whatever was asked for, rather than outgrow a frame.

import { type ByteWriter, readList, Truncated } from '../../base/cursor.ts'
import { ERRORS, type ErrorCode, errorCodeOf } from '../../base/errors.ts'
import type { TopicView } from '../../model/metadata.ts'
import type { Message } from './message.ts'
import { OPERATION } from './operations.ts'
import { briefTopicView, readTopicView, topicViewBytesMost, writeTopicView } from './topic-view.ts'

export const DESCRIBE_TOPICS_MAX = 1000
export const DESCRIBE_BYTES_MAX: number = 16 * 1024 * 1024
/** Longer messages are cut: the answer must always fit. */
const MESSAGE_CHARACTERS_MAX = 1024

export interface DescribeTopicsRequest {
  readonly names: readonly string[]
  /** Only what routing needs. Absent: everything. */
  readonly brief?: boolean
}

export type TopicDescription =
  | {
      readonly topic: TopicView
      /** When set, the view lacks older segments, first offsets and log starts. */
      readonly brief?: boolean
    }
  | { readonly error: ErrorCode; readonly message: string; readonly name: string }

export interface DescribeTopicsResponse {
  readonly topics: readonly TopicDescription[]
}

export const describeTopics: Message<DescribeTopicsRequest, DescribeTopicsResponse> = {
  operation: OPERATION.DESCRIBE_TOPICS,
  writeRequest: (w, q) => {
    w.bool(q.brief === true).u32(q.names.length)
    for (const name of q.names) w.text(name)
  },
  readRequest: (r) => {
    const brief = r.bool()
    const names = readList(r, 2, () => r.text())
    if (names.length > DESCRIBE_TOPICS_MAX) {
      throw new Truncated(`${names.length} names, at most ${DESCRIBE_TOPICS_MAX}`)
    }
    return { names, brief }
  },
  writeResponse: (w, s) => {
    w.u32(s.topics.length)
    for (const item of s.topics) writeDescription(w, item)
  },
  readResponse: (r) => ({
    topics: readList(r, 6, (): TopicDescription => {
      const status = r.u16()
      if (status === 0) {
        const brief = r.bool()
        return { topic: readTopicView(r), brief }
      }
      return { error: errorCodeOf(status), message: r.text(), name: r.text() }
    }),
  }),
}

function writeDescription(w: ByteWriter, item: TopicDescription): void {
  if ('error' in item) {
    w.u16(ERRORS[item.error].number)
    w.text(item.message.slice(0, MESSAGE_CHARACTERS_MAX)).text(item.name)
    return
  }
  const brief = item.brief === true || w.size + topicViewBytesMost(item.topic) > DESCRIBE_BYTES_MAX
  w.u16(0).bool(brief)
  writeTopicView(w, brief ? briefTopicView(item.topic) : item.topic)
}
