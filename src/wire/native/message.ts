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

export function writeList<T>(
  w: ByteWriter,
  items: readonly T[],
  write: (w: ByteWriter, item: T) => void,
): void {
  w.u32(items.length)
  for (const item of items) write(w, item)
}

/** `leastBytes` is the size of the smallest element: it bounds the count before anything is allocated. */
export function readList<T>(
  r: ByteReader,
  leastBytes: number,
  read: (r: ByteReader) => T,
): readonly T[] {
  const items: T[] = []
  const count = r.count(leastBytes)
  for (let i = 0; i < count; i++) items.push(read(r))
  return items
}

/** u8: the place of a word in a list. */
export function readChoice<T>(r: ByteReader, words: readonly T[], what: string): T {
  const place = r.u8()
  const word = words[place]
  if (word === undefined) throw new Truncated(`${what} ${place} of ${words.length}`)
  return word
}
