// ADD_PARTITIONS raises a topic's number of partitions. Keys are spread anew from then on, so records of one key may lie
// in two partitions: the caller has to want that.
//
//   request   text name │ u32 partitions (the new total)
//   response  u32 partitions

import type { Message } from './message.ts'
import { OPERATION } from './operations.ts'

export interface AddPartitionsRequest {
  readonly name: string
  readonly partitions: number
}

export interface AddPartitionsResponse {
  readonly partitions: number
}

export const addPartitions: Message<AddPartitionsRequest, AddPartitionsResponse> = {
  operation: OPERATION.ADD_PARTITIONS,
  writeRequest: (w, q) => {
    w.text(q.name).u32(q.partitions)
  },
  readRequest: (r) => ({ name: r.text(), partitions: r.u32() }),
  writeResponse: (w, s) => {
    w.u32(s.partitions)
  },
  readResponse: (r) => ({ partitions: r.u32() }),
}
