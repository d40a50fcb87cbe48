// ALLOCATE_PRODUCER_ID: an id that no producer ever had, with epoch 0 (PROTOCOLS §8).
//
//   request   empty
//   response  i64 producer id │ u16 epoch

import type { Message } from './message.ts'
import { OPERATION } from './operations.ts'

export interface AllocateProducerIdResponse {
  readonly producerId: number
  readonly epoch: number
}

export const allocateProducerId: Message<object, AllocateProducerIdResponse> = {
  operation: OPERATION.ALLOCATE_PRODUCER_ID,
  writeRequest: () => {},
  readRequest: () => ({}),
  writeResponse: (w, s) => {
    w.i64(s.producerId).u16(s.epoch)
  },
  readResponse: (r) => ({ producerId: r.i64(), epoch: r.u16() }),
}
