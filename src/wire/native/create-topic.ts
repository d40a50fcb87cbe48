// CREATE_TOPIC. Keys that the policy leaves out take the broker's defaults; without a replication factor the topic gets
// as many replicas as brokers are alive, at most 3. The token is random and made once per creation: a retry with the same
// token is answered as the first was.
//
//   request   text name │ 16B token │ bool if not exists │ policy
//   response  16B topic id │ bool created │ policy

import { fromHex, toHex } from '../../base/bytes.ts'
import { type TopicId, topicId } from '../../model/ids.ts'
import type { TopicPolicy } from '../../model/policy.ts'
import type { Message } from './message.ts'
import { OPERATION } from './operations.ts'
import { readPolicy, readWholePolicy, writePolicy } from './policy.ts'

export interface CreateTopicRequest {
  readonly name: string
  /** 32 hexadecimal digits. */
  readonly token: string
  readonly ifNotExists: boolean
  readonly policy: Partial<TopicPolicy>
}

export interface CreateTopicResponse {
  readonly topicId: TopicId
  /** False when the topic existed, with an equal policy, and `ifNotExists` was set. */
  readonly created: boolean
  readonly policy: TopicPolicy
}

export const createTopic: Message<CreateTopicRequest, CreateTopicResponse> = {
  operation: OPERATION.CREATE_TOPIC,
  writeRequest: (w, q) => {
    w.text(q.name).raw(fromHex(q.token)).bool(q.ifNotExists)
    writePolicy(w, q.policy)
  },
  readRequest: (r) => ({
    name: r.text(),
    token: toHex(r.raw(16)),
    ifNotExists: r.bool(),
    policy: readPolicy(r),
  }),
  writeResponse: (w, s) => {
    w.raw(fromHex(s.topicId)).bool(s.created)
    writePolicy(w, s.policy)
  },
  readResponse: (r) => ({
    topicId: topicId(toHex(r.raw(16))),
    created: r.bool(),
    policy: readWholePolicy(r),
  }),
}
