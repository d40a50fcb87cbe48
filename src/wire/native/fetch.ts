// FETCH: one answer, at once or when `min bytes` are there or `max wait` has passed. The first partition that has
// something returns at least one whole batch, whatever the limits.
//
//   request   u32 max wait ms │ u32 min bytes │ u32 max bytes │ list { 16B topic id │ u32 partition │ i64 offset │ u32 max bytes }
//   response  list { u16 status │ i64 high watermark │ i64 log start │ blob batches }

import { concatBytes, fromHex, toHex } from '../../base/bytes.ts'
import { ERRORS, type ErrorCode, errorCodeOf } from '../../base/errors.ts'
import { type TopicId, topicId } from '../../model/ids.ts'
import { type Message, readList, writeList } from './message.ts'
import { OPERATION } from './operations.ts'

export interface FetchPartition {
  readonly topicId: TopicId
  readonly partition: number
  readonly offset: number
  readonly maxBytes: number
}

export interface FetchRequest {
  readonly maxWaitMs: number
  readonly minBytes: number
  readonly maxBytes: number
  readonly partitions: readonly FetchPartition[]
}

export interface FetchedPartition {
  readonly error: ErrorCode | undefined
  /** One more than the last offset that may be read. */
  readonly highWatermark: number
  readonly logStart: number
  /** Whole batches, one after another; the first may begin before the offset asked for. */
  readonly batches: readonly Uint8Array[]
}

export interface FetchResponse {
  readonly partitions: readonly FetchedPartition[]
}

export const fetch: Message<FetchRequest, FetchResponse> = {
  operation: OPERATION.FETCH,
  writeRequest: (w, q) => {
    w.u32(q.maxWaitMs).u32(q.minBytes).u32(q.maxBytes)
    writeList(w, q.partitions, (_, p) => {
      w.raw(fromHex(p.topicId)).u32(p.partition).i64(p.offset).u32(p.maxBytes)
    })
  },
  readRequest: (r) => ({
    maxWaitMs: r.u32(),
    minBytes: r.u32(),
    maxBytes: r.u32(),
    partitions: readList(r, 32, () => ({
      topicId: topicId(toHex(r.raw(16))),
      partition: r.u32(),
      offset: r.i64(),
      maxBytes: r.u32(),
    })),
  }),
  writeResponse: (w, s) => {
    writeList(w, s.partitions, (_, p) => {
      w.u16(p.error === undefined ? 0 : ERRORS[p.error].number)
        .i64(p.highWatermark)
        .i64(p.logStart)
      w.blob(p.batches.length === 1 ? (p.batches[0] as Uint8Array) : concatBytes(p.batches))
    })
  },
  readResponse: (r) => ({
    partitions: readList(r, 22, () => {
      const status = r.u16()
      const highWatermark = r.i64()
      const logStart = r.i64()
      const blob = r.blob()
      return {
        error: status === 0 ? undefined : errorCodeOf(status),
        highWatermark,
        logStart,
        batches: blob.length === 0 ? [] : [blob],
      }
    }),
  }),
}
