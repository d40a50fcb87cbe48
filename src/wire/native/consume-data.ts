// CONSUME_DATA: what a stream pushes. A response frame whose request id is that of CONSUME; its status is 0, or says why
// this partition's stream ended (OFFSET_OUT_OF_RANGE, UNKNOWN_TOPIC, DAMAGED ...); then there is no error body, and in
// place of the batches only NOT_LEADER and NOT_REPLICA have something: a redirect (redirect.ts).
//
//   u32 length │ u8 15 │ u8 0 │ u32 request id │ u16 status │ u32 index │ i64 high watermark │ i64 log start │ i64 next offset │ batches
//
// `index` is the partition's place in the CONSUME request. `next offset` is where the stream stands behind these
// batches: with a key span it moves on even when batches were left out, and an empty push says just that. Every push
// costs as much credit as its batches have bytes, and at least one batch is sent while any credit is left. With
// RECORDS_LOST it is the next offset that can be read.

import { getI64, getU32, putI64, putU32 } from '../../base/bytes.ts'
import { ByteReader, Truncated } from '../../base/cursor.ts'
import { EastGuardError, ERRORS, type ErrorCode, errorCodeOf } from '../../base/errors.ts'
import { redirects } from '../../model/redirect.ts'
import {
  LENGTH_BYTES,
  putResponseHeader,
  RESPONSE_BODY_AT,
  RESPONSE_HEADER_BYTES,
  requestIdOf,
  statusOf,
} from './header.ts'
import { OPERATION } from './operations.ts'
import { type Redirecting, readRedirect, redirectBytes } from './redirect.ts'

const FIXED_BYTES = 28
export const CONSUME_DATA_HEAD_BYTES: number = RESPONSE_HEADER_BYTES + FIXED_BYTES

/** The head of a push whose batches, `batchBytes` in all, are written behind it. */
export function consumeDataHead(
  requestId: number,
  error: ErrorCode | undefined,
  index: number,
  highWatermark: number,
  logStart: number,
  nextOffset: number,
  batchBytes: number,
): Uint8Array {
  const head = new Uint8Array(CONSUME_DATA_HEAD_BYTES)
  const status = error === undefined ? 0 : ERRORS[error].number
  const length = CONSUME_DATA_HEAD_BYTES - LENGTH_BYTES + batchBytes
  putResponseHeader(head, 0, length, OPERATION.CONSUME_DATA, requestId, status)
  putU32(head, 12, index)
  putI64(head, 16, highWatermark)
  putI64(head, 24, logStart)
  putI64(head, 32, nextOffset)
  return head
}

/** The push that ends a partition's stream. */
export function consumeEndFrame(
  requestId: number,
  index: number,
  nextOffset: number,
  end: Redirecting & { readonly error: ErrorCode },
): Uint8Array {
  const redirect = redirectBytes(end)
  const bytes = redirect.length
  const head = consumeDataHead(requestId, end.error, index, -1, -1, nextOffset, bytes)
  if (bytes === 0) return head
  const frame = new Uint8Array(head.length + bytes)
  frame.set(head)
  frame.set(redirect, head.length)
  return frame
}

export interface ConsumeData extends Redirecting {
  readonly requestId: number
  readonly index: number
  readonly highWatermark: number
  readonly logStart: number
  readonly nextOffset: number
  /** Whole batches, one after another: a view of the frame. */
  readonly batches: Uint8Array
}

/** Throws DECODE_FAILED. */
export function readConsumeData(frame: Uint8Array): ConsumeData {
  if (frame.length < RESPONSE_BODY_AT + FIXED_BYTES) {
    throw new EastGuardError('DECODE_FAILED', `a push of ${frame.length} bytes is too short`)
  }
  const status = statusOf(frame)
  const error = status === 0 ? undefined : errorCodeOf(status)
  const behind = RESPONSE_BODY_AT + FIXED_BYTES
  return {
    requestId: requestIdOf(frame),
    error,
    index: getU32(frame, 8),
    highWatermark: getI64(frame, 12),
    logStart: getI64(frame, 20),
    nextOffset: getI64(frame, 28),
    batches: frame.subarray(redirects(error) ? frame.length : behind),
    ...redirectAt(frame, behind, error),
  }
}

function redirectAt(
  frame: Uint8Array,
  at: number,
  error: ErrorCode | undefined,
): ReturnType<typeof readRedirect> {
  if (!redirects(error)) return {}
  try {
    const r = new ByteReader(frame, at)
    const redirect = readRedirect(r, error)
    r.done()
    return redirect
  } catch (cause) {
    if (!(cause instanceof Truncated)) throw cause
    throw new EastGuardError('DECODE_FAILED', `a push is malformed: ${cause.message}`, { cause })
  }
}
