// CONSUME_CREDIT grants a stream more bytes; CONSUME_CLOSE ends it. Neither has a response: their request id is that of
// the CONSUME request, and a stream that is not (any more) there is ignored.
//
//   CONSUME_CREDIT request   u32 bytes
//   CONSUME_CLOSE request    empty

import type { Message } from './message.ts'
import { OPERATION } from './operations.ts'

export interface ConsumeCredit {
  readonly bytes: number
}

export const consumeCredit: Message<ConsumeCredit, never> = {
  operation: OPERATION.CONSUME_CREDIT,
  writeRequest: (w, q) => {
    w.u32(q.bytes)
  },
  readRequest: (r) => ({ bytes: r.u32() }),
  writeResponse: none,
  readResponse: none,
}

export const consumeClose: Message<object, never> = {
  operation: OPERATION.CONSUME_CLOSE,
  writeRequest: () => {},
  readRequest: () => ({}),
  writeResponse: none,
  readResponse: none,
}

function none(): never {
  throw new TypeError('this operation has no response')
}
