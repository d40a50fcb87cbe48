// Cuts a byte stream into frames. A frame that lies within one chunk is a view of it; one that spans chunks is put
// together in a buffer of its own.
//
//   chunk  ┌─────┬─────────────┬─────┬───────┬─────┬──────        chunk  ──────┬─────┬───
//          │ len │ payload     │ len │ pay.. │ len │ begin..                ..end│ len │
//          └─────┴─────────────┴─────┴───────┴─────┴──────               ──────┴─────┴───
//                 a view              a view        └───── put together ──────┘
//
// An announced length is checked against the limit before anything is allocated, and is not trusted beyond EAGER_BYTES
// until bytes have come: the buffer then has at most GROWTH times what has arrived. So a peer cannot reserve 72 MiB by
// sending four bytes, nor make a byte cost more than a few by sending them one at a time.

import { EMPTY, getU32 } from '../../base/bytes.ts'
import { EastGuardError } from '../../base/errors.ts'
import { LENGTH_BYTES } from './header.ts'

/** The smallest frame: operation, version or flags, request id. */
const FRAME_BYTES_MIN = 6
const EAGER_BYTES = 256 * 1024
const GROWTH = 4

export class FrameReader {
  /** May be raised after HELLO. */
  frameBytesMax: number
  /** A length field that the end of a chunk cut in two. */
  private readonly lengthField: Uint8Array = new Uint8Array(LENGTH_BYTES)
  private lengthHave = 0
  /** The frame that is being put together; `want` is 0 when none is. */
  private gathered: Uint8Array = EMPTY
  private have = 0
  private want = 0
  /** It threw, or was told to stop: where the next frame begins is not known. */
  private ended = false

  constructor(frameBytesMax: number) {
    this.frameBytesMax = frameBytesMax
  }

  /** True while a frame has begun and not ended. */
  get midFrame(): boolean {
    return this.want > 0 || this.lengthHave > 0
  }

  /**
   * Calls `onFrame` with each whole frame, without its length field. Throws FRAME_TOO_LARGE or MALFORMED_REQUEST, or what
   * `onFrame` throws; the stream cannot be read further then. `onFrame` may return false to stop for good: what is left of
   * the chunk and all that follows is dropped.
   */
  push(chunk: Uint8Array, onFrame: (frame: Uint8Array) => boolean | void): void {
    if (this.ended) return
    // Only a chunk read to its end leaves the stream readable.
    this.ended = true
    let at = 0
    while (at < chunk.length) {
      let length = this.want
      if (length === 0) {
        if (this.lengthHave === 0 && chunk.length - at >= LENGTH_BYTES) {
          length = this.checked(getU32(chunk, at))
          at += LENGTH_BYTES
        } else {
          this.lengthField[this.lengthHave++] = chunk[at++] as number
          if (this.lengthHave < LENGTH_BYTES) continue
          this.lengthHave = 0
          length = this.checked(getU32(this.lengthField, 0))
        }
        if (chunk.length - at >= length) {
          if (onFrame(chunk.subarray(at, at + length)) === false) return
          at += length
          continue
        }
        this.want = length
        this.have = 0
        this.gathered = ownBuffer(Math.min(length, EAGER_BYTES))
      }
      const take = Math.min(length - this.have, chunk.length - at)
      this.gather(chunk.subarray(at, at + take))
      at += take
      if (this.have < length) break
      const frame = this.gathered
      this.gathered = EMPTY
      this.want = 0
      if (onFrame(frame) === false) return
    }
    this.ended = false
  }

  private gather(part: Uint8Array): void {
    const need = this.have + part.length
    if (need > this.gathered.length) {
      const larger = ownBuffer(Math.min(this.want, Math.max(need, GROWTH * this.have)))
      larger.set(this.gathered.subarray(0, this.have))
      this.gathered = larger
    }
    // Copied, because whoever takes a frame takes it as one run of bytes.
    this.gathered.set(part, this.have)
    this.have = need
  }

  private checked(length: number): number {
    if (length > this.frameBytesMax) {
      throw new EastGuardError(
        'FRAME_TOO_LARGE',
        `a frame of ${length} bytes is announced, at most ${this.frameBytesMax} are taken`,
        { detail: { length, frameBytesMax: this.frameBytesMax } },
      )
    }
    if (length < FRAME_BYTES_MIN) {
      throw new EastGuardError(
        'MALFORMED_REQUEST',
        `a frame of ${length} bytes cannot hold a header`,
      )
    }
    return length
  }
}

/** Not from Node's shared pool: a frame that is kept for long would keep its neighbours there. */
function ownBuffer(length: number): Uint8Array {
  return Buffer.allocUnsafeSlow(length)
}
