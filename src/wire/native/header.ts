// Frames and their headers. Everything is big-endian.
//
//   request   u32 length │ u8 operation │ u8 version │ u32 request id │ body
//   response  u32 length │ u8 operation │ u8 flags=0 │ u32 request id │ u16 status │ body, or error body
//
// `length` counts the bytes behind it. Status 0 is success, else an error number of base/errors, and the body is
//   error body   text message │ text hint │ bool retriable │ text detail (JSON object)

import { getU16, getU32, putU16, putU32 } from '../../base/bytes.ts'
import { ByteReader, ByteWriter, Truncated } from '../../base/cursor.ts'
import { EastGuardError, ERRORS, type ErrorCode, errorCodeOf } from '../../base/errors.ts'
import type { Message } from './message.ts'
import { operationName } from './operations.ts'

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
  message: Message<unknown, Response>,
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

/** The error in a response frame whose status is not 0. */
export function readError(frame: Uint8Array): EastGuardError {
  return readBody('DECODE_FAILED', frame, RESPONSE_BODY_AT, (r) => {
    const message = r.text()
    const hint = r.text()
    const retriable = r.bool()
    const detail = readDetail(r.text())
    return new EastGuardError(errorCodeOf(statusOf(frame)), message, { hint, retriable, detail })
  })
}

function readDetail(text: string): Record<string, unknown> {
  try {
    const value: unknown = JSON.parse(text)
    if (typeof value === 'object' && value !== null) return { ...value }
  } catch {
    // Facts for programs only: the error itself must reach the caller without them.
  }
  return {}
}

/** Decodes a request's body; throws MALFORMED_REQUEST. */
export function readRequest<Request>(
  message: Message<Request, unknown>,
  frame: Uint8Array,
): Request {
  return readBody('MALFORMED_REQUEST', frame, REQUEST_BODY_AT, (r) => message.readRequest(r))
}

/** Decodes a response: throws the error that it carries, or DECODE_FAILED when it is not as it should be. */
export function readResponse<Response>(
  message: Message<unknown, Response>,
  frame: Uint8Array,
): Response {
  return readResponseBody(frame, (r) => message.readResponse(r))
}

/** `readResponse` for a message that has no codec pair. */
export function readResponseBody<T>(frame: Uint8Array, read: (r: ByteReader) => T): T {
  if (frame.length >= RESPONSE_BODY_AT && statusOf(frame) !== 0) throw readError(frame)
  return readBody('DECODE_FAILED', frame, RESPONSE_BODY_AT, read)
}

/** Every byte must be there and be read; whatever is wrong becomes an error with `code`. */
function readBody<T>(
  code: ErrorCode,
  frame: Uint8Array,
  from: number,
  read: (r: ByteReader) => T,
): T {
  try {
    if (frame.length < from) throw new Truncated(`it has ${frame.length} bytes`)
    const r = new ByteReader(frame, from)
    const value = read(r)
    r.done()
    return value
  } catch (cause) {
    if (!(cause instanceof Truncated)) throw cause
    const name = operationName(frame[0] ?? 0)
    throw new EastGuardError(code, `${name} is malformed: ${cause.message}`, { cause })
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
