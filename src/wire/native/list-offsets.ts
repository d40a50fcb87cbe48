// LIST_OFFSETS: where to begin. `at` is -1 for the end (the high watermark), -2 for the start, else a timestamp in ms:
// the first record at or after it, or offset -1 when there is none.
//
//   request   list { 16B topic id │ u32 partition │ i64 at }
//   response  list { u16 status │ i64 offset │ i64 timestamp (-1: none) │ redirect (redirect.ts) }

import { fromHex, toHex } from '../../base/bytes.ts'
import { readList, writeList } from '../../base/cursor.ts'
import { ERRORS, errorCodeOf } from '../../base/errors.ts'
import { type TopicId, topicId } from '../../model/ids.ts'
import type { Message } from './message.ts'
import { OPERATION } from './operations.ts'
import { type Redirecting, readRedirect, writeRedirect } from './redirect.ts'

export const AT_LATEST = -1
export const AT_EARLIEST = -2

export interface ListOffsetsRequest {
  readonly partitions: readonly {
    readonly topicId: TopicId
    readonly partition: number
    readonly at: number
  }[]
}

export interface ListedOffset extends Redirecting {
  readonly offset: number
  readonly timestamp: number
}

export interface ListOffsetsResponse {
  readonly partitions: readonly ListedOffset[]
}

export const listOffsets: Message<ListOffsetsRequest, ListOffsetsResponse> = {
  operation: OPERATION.LIST_OFFSETS,
  writeRequest: (w, q) => {
    writeList(w, q.partitions, (_, p) => {
      w.raw(fromHex(p.topicId)).u32(p.partition).i64(p.at)
    })
  },
  readRequest: (r) => ({
    partitions: readList(r, 28, () => ({
      topicId: topicId(toHex(r.raw(16))),
      partition: r.u32(),
      at: r.i64(),
    })),
  }),
  writeResponse: (w, s) => {
    writeList(w, s.partitions, (_, p) => {
      w.u16(p.error === undefined ? 0 : ERRORS[p.error].number)
        .i64(p.offset)
        .i64(p.timestamp)
      writeRedirect(w, p)
    })
  },
  readResponse: (r) => ({
    partitions: readList(r, 18, () => {
      const status = r.u16()
      const error = status === 0 ? undefined : errorCodeOf(status)
      const offset = r.i64()
      const timestamp = r.i64()
      return { error, offset, timestamp, ...readRedirect(r, error) }
    }),
  }),
}
