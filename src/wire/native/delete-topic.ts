// DELETE_TOPIC. Answered when the topic is gone for everyone and its disk space is free.
//
//   request   text name
//   response  empty

import type { Message } from './message.ts'
import { OPERATION } from './operations.ts'

export interface DeleteTopicRequest {
  readonly name: string
}

export const deleteTopic: Message<DeleteTopicRequest, object> = {
  operation: OPERATION.DELETE_TOPIC,
  writeRequest: (w, q) => {
    w.text(q.name)
  },
  readRequest: (r) => ({ name: r.text() }),
  writeResponse: () => {},
  readResponse: () => ({}),
}
