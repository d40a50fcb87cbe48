// A byte stream taken apart at newlines, without decoding it: any bytes may stand in a line. Lines are slices of the
// chunks they came in; one that spans chunks is joined, and the memory for it is bounded.

import { EastGuardError } from '../base/errors.ts'
import type { Output } from './output.ts'

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

const CHUNK_BYTES: number = 256 * 1024

/**
 * The way back: values, each followed by a newline. One chunk of memory is filled, written and used again, so that an
 * output of any length leaves nothing behind for the allocator to scatter.
 */
export class RawLines {
  private readonly out: Output
  private readonly chunk: Buffer = Buffer.allocUnsafeSlow(CHUNK_BYTES)
  private filled = 0

  constructor(out: Output) {
    this.out = out
  }

  /** A promise only when there was something to write. */
  line(value: Uint8Array | null): Promise<void> | undefined {
    const length = value?.length ?? 0
    if (this.filled + length + 1 > CHUNK_BYTES) return this.lineAfterFlush(value)
    if (value !== null) this.chunk.set(value, this.filled)
    this.filled += length
    this.chunk[this.filled++] = NEWLINE
    return undefined
  }

  private async lineAfterFlush(value: Uint8Array | null): Promise<void> {
    await this.flush()
    if (value !== null && value.length >= CHUNK_BYTES) {
      await this.out.written(value)
      value = null
    }
    await this.line(value)
  }

  async flush(): Promise<void> {
    const { filled } = this
    this.filled = 0
    if (filled > 0) await this.out.written(this.chunk.subarray(0, filled))
  }
}
