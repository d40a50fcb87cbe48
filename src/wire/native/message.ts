// What one operation looks like in bytes: a codec for its request and one for its response. Every operation but
// PRODUCE, whose request is walked in place on the hot path, is such a pair in a file of its own.

import { type ByteReader, type ByteWriter, Truncated } from '../../base/cursor.ts'

export interface Message<Request, Response> {
  readonly operation: number
  writeRequest(w: ByteWriter, request: Request): void
  /** Throws Truncated on malformed bytes. */
  readRequest(r: ByteReader): Request
  writeResponse(w: ByteWriter, response: Response): void
  readResponse(r: ByteReader): Response
}

/** u8: the place of a word in a list. */
export function readChoice<T>(r: ByteReader, words: readonly T[], what: string): T {
  const place = r.u8()
  const word = words[place]
  if (word === undefined) throw new Truncated(`${what} ${place} of ${words.length}`)
  return word
}
