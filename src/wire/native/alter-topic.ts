// ALTER_TOPIC changes the policy keys that are given and leaves the others. `partitions`, `range_mode` and `ranges` are
// fixed at creation.
//
//   request   text name │ policy (changes)
//   response  policy (the whole, as it is now)

import type { TopicPolicy } from '../../model/policy.ts'
import type { Message } from './message.ts'
import { OPERATION } from './operations.ts'
import { readPolicy, readWholePolicy, writePolicy } from './policy.ts'

export interface AlterTopicRequest {
  readonly name: string
  readonly changes: Partial<TopicPolicy>
}

export interface AlterTopicResponse {
  readonly policy: TopicPolicy
}

export const alterTopic: Message<AlterTopicRequest, AlterTopicResponse> = {
  operation: OPERATION.ALTER_TOPIC,
  writeRequest: (w, q) => {
    w.text(q.name)
    writePolicy(w, q.changes)
  },
  readRequest: (r) => ({ name: r.text(), changes: readPolicy(r) }),
  writeResponse: (w, s) => {
    writePolicy(w, s.policy)
  },
  readResponse: (r) => ({ policy: readWholePolicy(r) }),
}
