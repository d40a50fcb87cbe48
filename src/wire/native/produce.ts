// PRODUCE: batches for any partitions of any topics, each answered by itself. With acks 0 there is no answer at all.
//
//   request   u8 acks (0, 1, 255 = all) │ u32 timeout ms │ u16 count │ count x slot
//   slot      16B topic id │ u32 partition │ u32 least key hash │ u32 greatest key hash │ u32 length │ batch
//   response  u16 count │ count x { u16 status │ i64 base offset │ i64 log append ms │ text message (status != 0) │ redirect }
//
// Results stand in the order of the slots; only NOT_LEADER has a redirect (redirect.ts). A frame that is malformed anywhere stores nothing.
//
// The broker's side is a walk over the received bytes, not a decoded object: one small batch per request is the
// hottest message of all.

import { assert } from '../../base/assert.ts'
import { fromHex, getU16, getU32, putI64, putU16, putU32 } from '../../base/bytes.ts'
import { ByteWriter } from '../../base/cursor.ts'
import { EastGuardError, ERRORS, errorCodeOf } from '../../base/errors.ts'
import type { TopicId } from '../../model/ids.ts'
import {
  LENGTH_BYTES,
  putResponseHeader,
  REQUEST_BODY_AT,
  REQUEST_HEADER_BYTES,
  RESPONSE_HEADER_BYTES,
  readResponseBody,
} from './header.ts'
import { OPERATION } from './operations.ts'
import { type Redirecting, readRedirect, writeRedirect } from './redirect.ts'

export const ACKS_ALL = 255
const HEAD_BYTES = 7
export const SLOT_HEAD_BYTES = 32
const SLOTS_MAX = 0xffff

export interface ProduceSlot {
  readonly topicId: TopicId
  readonly partition: number
  readonly leastKeyHash: number
  readonly greatestKeyHash: number
  readonly batch: Uint8Array
}

/** Shorter batches are copied in behind their heads, which is cheaper than one more buffer in the write. */
const COPIED_BYTES_MAX = 4096

/**
 * The parts of a PRODUCE frame, to be written one after another. Larger batches go by reference: they must not change
 * before they are sent.
 */
export function produceFrame(
  version: number,
  requestId: number,
  acks: number,
  timeoutMs: number,
  slots: readonly ProduceSlot[],
): Uint8Array[] {
  assert(slots.length <= SLOTS_MAX, 'a PRODUCE has at most 65,535 batches')
  let length = REQUEST_HEADER_BYTES - LENGTH_BYTES + HEAD_BYTES
  let copied = 0
  for (const { batch } of slots) {
    length += SLOT_HEAD_BYTES + batch.length
    if (batch.length <= COPIED_BYTES_MAX) copied += batch.length
  }
  // From Node's pool and not zeroed: every byte is written below, and the frame is soon sent and gone.
  const heads = Buffer.allocUnsafe(
    REQUEST_HEADER_BYTES + HEAD_BYTES + slots.length * SLOT_HEAD_BYTES + copied,
  )
  putU32(heads, 0, length)
  heads[4] = OPERATION.PRODUCE
  heads[5] = version
  putU32(heads, 6, requestId)
  heads[10] = acks
  putU32(heads, 11, timeoutMs)
  putU16(heads, 15, slots.length)
  const parts: Uint8Array[] = []
  let from = 0
  let at = REQUEST_HEADER_BYTES + HEAD_BYTES
  for (const slot of slots) {
    heads.set(fromHex(slot.topicId), at)
    putU32(heads, at + 16, slot.partition)
    putU32(heads, at + 20, slot.leastKeyHash)
    putU32(heads, at + 24, slot.greatestKeyHash)
    putU32(heads, at + 28, slot.batch.length)
    at += SLOT_HEAD_BYTES
    if (slot.batch.length <= COPIED_BYTES_MAX) {
      heads.set(slot.batch, at)
      at += slot.batch.length
    } else {
      parts.push(heads.subarray(from, at), slot.batch)
      from = at
    }
  }
  if (from < at) parts.push(from === 0 ? heads : heads.subarray(from, at))
  return parts
}

/** The offsets below are those of a frame without its length field. */
export const PRODUCE_SLOTS_AT: number = REQUEST_BODY_AT + HEAD_BYTES

export function produceAcks(frame: Uint8Array): number {
  return frame[REQUEST_BODY_AT] as number
}
export function produceTimeoutMs(frame: Uint8Array): number {
  return getU32(frame, REQUEST_BODY_AT + 1)
}

/**
 * The number of slots, once it is certain that they fill the frame exactly; so a walk from PRODUCE_SLOTS_AT by
 * SLOT_HEAD_BYTES + slotBatchLength stays inside. Throws MALFORMED_REQUEST.
 */
export function produceCount(frame: Uint8Array): number {
  if (frame.length < PRODUCE_SLOTS_AT) throw malformed('it is too short')
  const count = getU16(frame, REQUEST_BODY_AT + 5)
  let at = PRODUCE_SLOTS_AT
  for (let i = 0; i < count; i++) {
    if (at + SLOT_HEAD_BYTES > frame.length) throw malformed(`slot ${i} is cut off`)
    at += SLOT_HEAD_BYTES + slotBatchLength(frame, at)
  }
  if (at !== frame.length)
    throw malformed(`its ${count} slots end at ${at} of ${frame.length} bytes`)
  if (count === 0) throw malformed('it has no batch')
  return count
}

function malformed(why: string): EastGuardError {
  return new EastGuardError('MALFORMED_REQUEST', `a produce request is malformed: ${why}`)
}

export function slotPartition(frame: Uint8Array, at: number): number {
  return getU32(frame, at + 16)
}
export function slotLeastKeyHash(frame: Uint8Array, at: number): number {
  return getU32(frame, at + 20)
}
export function slotGreatestKeyHash(frame: Uint8Array, at: number): number {
  return getU32(frame, at + 24)
}
export function slotBatchLength(frame: Uint8Array, at: number): number {
  return getU32(frame, at + 28)
}

/** Without an error it is stored. */
export interface ProduceResult extends Redirecting {
  readonly message: string
  readonly baseOffset: number
  readonly logAppendTimeMs: number
}

const PRODUCE_RESULT_BYTES = 18
/** Of a whole response with one stored batch. */
export const PRODUCE_ONE_BYTES: number = RESPONSE_HEADER_BYTES + 2 + PRODUCE_RESULT_BYTES

/** The answer to a request of one batch that was stored, in place; returns where it ends. */
export function putProducedOne(
  into: Uint8Array,
  at: number,
  requestId: number,
  baseOffset: number,
  logAppendTimeMs: number,
): number {
  putResponseHeader(into, at, PRODUCE_ONE_BYTES - LENGTH_BYTES, OPERATION.PRODUCE, requestId, 0)
  putU16(into, at + 12, 1)
  putU16(into, at + 14, 0)
  putI64(into, at + 16, baseOffset)
  putI64(into, at + 24, logAppendTimeMs)
  return at + PRODUCE_ONE_BYTES
}

/** The answer in the general case. */
export function producedFrame(requestId: number, results: readonly ProduceResult[]): Uint8Array {
  const tails = results.map(tailOf)
  let length = RESPONSE_HEADER_BYTES + 2
  for (const tail of tails) length += PRODUCE_RESULT_BYTES + tail.length
  const frame = new Uint8Array(length)
  putResponseHeader(frame, 0, length - LENGTH_BYTES, OPERATION.PRODUCE, requestId, 0)
  putU16(frame, 12, results.length)
  let at = 14
  for (const [index, result] of results.entries()) {
    putU16(frame, at, result.error === undefined ? 0 : ERRORS[result.error].number)
    putI64(frame, at + 2, result.baseOffset)
    putI64(frame, at + 10, result.logAppendTimeMs)
    at += PRODUCE_RESULT_BYTES
    const tail = tails[index] as Uint8Array
    frame.set(tail, at)
    at += tail.length
  }
  return frame
}

const NOTHING = new Uint8Array(0)

/** What a result has behind its numbers. */
function tailOf(result: ProduceResult): Uint8Array {
  if (result.error === undefined) return NOTHING
  const w = new ByteWriter().text(result.message.slice(0, 1024))
  writeRedirect(w, result)
  return w.finish()
}

/** The results in the order of the slots. Throws the error that the response carries, or DECODE_FAILED. */
export function readProduced(frame: Uint8Array): ProduceResult[] {
  return readResponseBody(frame, (r) => {
    const results: ProduceResult[] = []
    for (let left = r.u16(); left > 0; left--) {
      const status = r.u16()
      const baseOffset = r.i64()
      const logAppendTimeMs = r.i64()
      const error = status === 0 ? undefined : errorCodeOf(status)
      const message = error === undefined ? '' : r.text()
      results.push({ error, baseOffset, logAppendTimeMs, message, ...readRedirect(r, error) })
    }
    return results
  })
}
