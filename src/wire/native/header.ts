// Frames and their headers. Everything is big-endian.
//
//   request   u32 length │ u8 operation │ u8 version │ u32 request id │ body
//   response  u32 length │ u8 operation │ u8 flags=0 │ u32 request id │ u16 status │ body, or error body
//
// `length` counts the bytes behind it. Status 0 is success, else an error number of base/errors, and the body is
//   error body   text message │ text hint │ bool retriable │ text detail (JSON object)

import { getU16, getU32, putU16, putU32 } from '../../base/bytes.ts'
import { ByteReader, ByteWriter, Truncated } from '../../base/cursor.ts'
import { EastGuardError, ERRORS, errorCodeOf } from '../../base/errors.ts'
import type { Message } from './message.ts'

export const LENGTH_BYTES = 4
/** Of a frame with its length field. */
export const REQUEST_HEADER_BYTES = 10
export const RESPONSE_HEADER_BYTES = 12

/** The offsets are those of a frame without its length field, as FrameReader yields it. */
export function operationOf(frame: Uint8Array): number {
  return frame[0] as number
}
export function versionOf(frame: Uint8Array): number {
  return frame[1] as number
}
export function requestIdOf(frame: Uint8Array): number {
  return getU32(frame, 2)
}
export function statusOf(frame: Uint8Array): number {
  return getU16(frame, 6)
}
export const REQUEST_BODY_AT = 6
export const RESPONSE_BODY_AT = 8

function open(operation: number, second: number, requestId: number): ByteWriter {
  return new ByteWriter().u32(0).u8(operation).u8(second).u32(requestId)
}

function close(w: ByteWriter): Uint8Array {
  w.setU32(0, w.size - LENGTH_BYTES)
  return w.finish()
}

export function requestFrame<Request>(
  message: Message<Request, unknown>,
  version: number,
  requestId: number,
  request: Request,
): Uint8Array {
  const w = open(message.operation, version, requestId)
  message.writeRequest(w, request)
  return close(w)
}

export function responseFrame<Response>(
  message: Message<never, Response>,
  requestId: number,
  response: Response,
): Uint8Array {
  const w = open(message.operation, 0, requestId).u16(0)
  message.writeResponse(w, response)
  return close(w)
}

/** Texts longer than this are cut: an error must always fit. */
const ERROR_TEXT_MAX = 8192

export function errorFrame(
  operation: number,
  requestId: number,
  error: EastGuardError,
): Uint8Array {
  const detail = JSON.stringify(error.detail)
  const w = open(operation, 0, requestId)
    .u16(ERRORS[error.code].number)
    .text(error.message.slice(0, ERROR_TEXT_MAX))
    .text(error.hint.slice(0, ERROR_TEXT_MAX))
    .bool(error.retriable)
    .text(detail.length > ERROR_TEXT_MAX ? '{}' : detail)
  return close(w)
}

/** The error in a response frame whose status is not 0. Throws Truncated when it is malformed. */
export function readError(frame: Uint8Array): EastGuardError {
  const r = new ByteReader(frame, RESPONSE_BODY_AT)
  const message = r.text()
  const hint = r.text()
  r.bool()
  return new EastGuardError(errorCodeOf(statusOf(frame)), message, {
    hint,
    detail: readDetail(r.text()),
  })
}

function readDetail(text: string): Record<string, unknown> {
  try {
    const value: unknown = JSON.parse(text)
    return typeof value === 'object' && value !== null ? { ...value } : {}
  } catch (cause) {
    throw new Truncated('the detail of an error is not JSON', { cause })
  }
}

/** Decodes a request's body; throws MALFORMED_REQUEST. */
export function readRequest<Request>(
  message: Message<Request, unknown>,
  frame: Uint8Array,
): Request {
  return whole(frame, REQUEST_BODY_AT, (r) => message.readRequest(r))
}

/** Decodes a response: throws the error it carries, or MALFORMED_REQUEST when it is not as it should be. */
export function readResponse<Response>(
  message: Message<never, Response>,
  frame: Uint8Array,
): Response {
  if (statusOf(frame) !== 0)
    throw whole(frame, RESPONSE_BODY_AT, (r) => {
      r.at = r.end
      return readError(frame)
    })
  return whole(frame, RESPONSE_BODY_AT, (r) => message.readResponse(r))
}

function whole<T>(frame: Uint8Array, from: number, read: (r: ByteReader) => T): T {
  try {
    const r = new ByteReader(frame, from)
    const value = read(r)
    r.done()
    return value
  } catch (cause) {
    if (!(cause instanceof Truncated)) throw cause
    throw new EastGuardError(
      'MALFORMED_REQUEST',
      `a message of operation ${frame[0]} is malformed: ${cause.message}`,
      { cause },
    )
  }
}

/** For frames that are built in place on the hot path. */
export function putResponseHeader(
  into: Uint8Array,
  at: number,
  length: number,
  operation: number,
  requestId: number,
  status: number,
): void {
  putU32(into, at, length)
  into[at + 4] = operation
  into[at + 5] = 0
  putU32(into, at + 6, requestId)
  putU16(into, at + 10, status)
}
