// FETCH: one answer, at once or when `min bytes` are there or `max wait` has passed. The first partition that has
// something returns at least one whole batch, whatever the limits.
//
//   request   u32 max wait ms │ u32 min bytes │ u32 max bytes │ list { 16B topic id │ u32 partition │ i64 offset │ u32 max bytes }
//   response  list { u16 status │ i64 high watermark │ i64 log start │ blob batches }

import { concatBytes, fromHex, toHex } from '../../base/bytes.ts'
import { ByteWriter, readList, writeList } from '../../base/cursor.ts'
import { ERRORS, type ErrorCode, errorCodeOf } from '../../base/errors.ts'
import { type TopicId, topicId } from '../../model/ids.ts'
import { LENGTH_BYTES, putResponseHeader, RESPONSE_HEADER_BYTES } from './header.ts'
import type { Message } from './message.ts'
import { OPERATION } from './operations.ts'

interface FetchPartition {
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
  /**
   * Whole batches, one after another; the first may begin before the offset asked for. What was decoded has them in one
   * run of bytes, a view of the frame, if there are any.
   */
  readonly batches: readonly Uint8Array[]
}

export interface FetchResponse {
  readonly partitions: readonly FetchedPartition[]
}

/** `responseFrame` in parts for one write: the batches go by reference instead of being copied. */
export function fetchedParts(requestId: number, response: FetchResponse): Uint8Array[] {
  const heads = new ByteWriter(RESPONSE_HEADER_BYTES + 4 + response.partitions.length * 22)
  heads.raw(new Uint8Array(RESPONSE_HEADER_BYTES)).u32(response.partitions.length)
  const ends: number[] = []
  let length = 0
  for (const p of response.partitions) {
    const bytes = p.batches.reduce((sum, batch) => sum + batch.length, 0)
    writeHead(heads, p).u32(bytes)
    ends.push(heads.size)
    length += bytes
  }
  const own = heads.finish()
  length += own.length - LENGTH_BYTES
  putResponseHeader(own, 0, length, OPERATION.FETCH, requestId, 0)
  const parts: Uint8Array[] = []
  let from = 0
  for (const [index, p] of response.partitions.entries()) {
    if (p.batches.length === 0) continue
    const end = ends[index] as number
    parts.push(own.subarray(from, end), ...p.batches)
    from = end
  }
  if (from < own.length) parts.push(own.subarray(from))
  return parts
}

function writeHead(w: ByteWriter, p: FetchedPartition): ByteWriter {
  return w
    .u16(p.error === undefined ? 0 : ERRORS[p.error].number)
    .i64(p.highWatermark)
    .i64(p.logStart)
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
      writeHead(w, p).blob(
        p.batches.length === 1 ? (p.batches[0] as Uint8Array) : concatBytes(p.batches),
      )
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
