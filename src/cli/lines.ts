// A byte stream taken apart at newlines, without decoding it: any bytes may stand in a line. Lines are slices of the
// chunks they came in; one that spans chunks is joined, and the memory for it is bounded.

import { EastGuardError } from '../base/errors.ts'

const NEWLINE = 10

/** Lines of each chunk, together. The last line needs no newline. Throws RECORD_TOO_LARGE beyond `lineBytesMax`. */
export async function* linesOf(
  input: AsyncIterable<Uint8Array>,
  lineBytesMax: number,
): AsyncGenerator<Uint8Array[]> {
  let pending: Uint8Array[] = []
  let pendingBytes = 0
  const grow = (part: Uint8Array): void => {
    pendingBytes += part.length
    if (pendingBytes > lineBytesMax) {
      throw new EastGuardError('RECORD_TOO_LARGE', `a line has more than ${lineBytesMax} bytes`)
    }
    if (part.length > 0) pending.push(part)
  }
  const take = (): Uint8Array => {
    const line = pending.length === 1 ? (pending[0] as Uint8Array) : Buffer.concat(pending)
    pending = []
    pendingBytes = 0
    return line
  }
  for await (const chunk of input) {
    const lines: Uint8Array[] = []
    let from = 0
    for (let at = chunk.indexOf(NEWLINE); at >= 0; at = chunk.indexOf(NEWLINE, from)) {
      grow(chunk.subarray(from, at))
      lines.push(take())
      from = at + 1
    }
    grow(chunk.subarray(from))
    if (lines.length > 0) yield lines
  }
  if (pendingBytes > 0) yield [take()]
}
