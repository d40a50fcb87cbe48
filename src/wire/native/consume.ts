// CONSUME opens a stream: from then on the broker pushes CONSUME_DATA with this request's id as records commit, as long
// as the client has granted credit. The response comes first.
//
//   request   u32 credit bytes │ bool filtered │ u32 least │ u32 greatest (xxh32 of keys) │ list { 16B topic id │ u32 partition │ i64 offset }
//   response  list { u16 status │ i64 high watermark │ i64 log start │ redirect }, in the request's order
//
// A partition whose status is not 0 is not streamed; the others are. Only NOT_LEADER and NOT_REPLICA have a redirect
// (redirect.ts).

import { fromHex, toHex } from '../../base/bytes.ts'
import { readList, writeList } from '../../base/cursor.ts'
import { ERRORS, errorCodeOf } from '../../base/errors.ts'
import { type TopicId, topicId } from '../../model/ids.ts'
import type { Message } from './message.ts'
import { OPERATION } from './operations.ts'
import { type Redirecting, readRedirect, writeRedirect } from './redirect.ts'

export interface KeySpan {
  /** Both inclusive. */
  readonly least: number
  readonly greatest: number
}

interface ConsumePartition {
  readonly topicId: TopicId
  readonly partition: number
  readonly offset: number
}

export interface ConsumeRequest {
  readonly creditBytes: number
  /** Batches that hold no key in the span are left out; others come whole. */
  readonly keySpan: KeySpan | undefined
  readonly partitions: readonly ConsumePartition[]
}

export interface ConsumedPartition extends Redirecting {
  readonly highWatermark: number
  readonly logStart: number
}

export interface ConsumeResponse {
  readonly partitions: readonly ConsumedPartition[]
}

export const consume: Message<ConsumeRequest, ConsumeResponse> = {
  operation: OPERATION.CONSUME,
  writeRequest: (w, q) => {
    w.u32(q.creditBytes).bool(q.keySpan !== undefined)
    w.u32(q.keySpan?.least ?? 0).u32(q.keySpan?.greatest ?? 0xffffffff)
    writeList(w, q.partitions, (_, p) => {
      w.raw(fromHex(p.topicId)).u32(p.partition).i64(p.offset)
    })
  },
  readRequest: (r) => {
    const creditBytes = r.u32()
    const filtered = r.bool()
    const span = { least: r.u32(), greatest: r.u32() }
    const partitions = readList(r, 28, () => ({
      topicId: topicId(toHex(r.raw(16))),
      partition: r.u32(),
      offset: r.i64(),
    }))
    return { creditBytes, keySpan: filtered ? span : undefined, partitions }
  },
  writeResponse: (w, s) => {
    writeList(w, s.partitions, (_, p) => {
      w.u16(p.error === undefined ? 0 : ERRORS[p.error].number)
        .i64(p.highWatermark)
        .i64(p.logStart)
      writeRedirect(w, p)
    })
  },
  readResponse: (r) => ({
    partitions: readList(r, 18, () => {
      const status = r.u16()
      const error = status === 0 ? undefined : errorCodeOf(status)
      const highWatermark = r.i64()
      const logStart = r.i64()
      return { error, highWatermark, logStart, ...readRedirect(r, error) }
    }),
  }),
}
