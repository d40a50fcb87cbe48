// LIST_OFFSETS: where to begin. `at` is -1 for the end (the high watermark), -2 for the start, else a timestamp in ms:
// the first record at or after it, or offset -1 when there is none.
//
//   request   list { 16B topic id │ u32 partition │ i64 at }
//   response  list { u16 status │ i64 offset │ i64 timestamp (-1: none) }

import { fromHex, toHex } from '../../base/bytes.ts'
import { ERRORS, type ErrorCode, errorCodeOf } from '../../base/errors.ts'
import { type TopicId, topicId } from '../../model/ids.ts'
import { type Message, readList, writeList } from './message.ts'
import { OPERATION } from './operations.ts'

export const AT_LATEST = -1
export const AT_EARLIEST = -2

export interface ListOffsetsRequest {
  readonly partitions: readonly {
    readonly topicId: TopicId
    readonly partition: number
    readonly at: number
  }[]
}

export interface ListedOffset {
  readonly error: ErrorCode | undefined
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
    })
  },
  readResponse: (r) => ({
    partitions: readList(r, 18, () => {
      const status = r.u16()
      return {
        error: status === 0 ? undefined : errorCodeOf(status),
        offset: r.i64(),
        timestamp: r.i64(),
      }
    }),
  }),
}
