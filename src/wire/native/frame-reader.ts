// Cuts a byte stream into frames. The chunks are lent (ports/streams.ts), the frames are their receiver's: every byte is
// copied once, a run of whole frames at a time, or straight to its place in a frame that spans chunks.
//
//   chunk  ┌─────┬─────────────┬─────┬───────┬─────┬──────        chunk  ──────┬─────┬───
//          │ len │ payload     │ len │ pay.. │ len │ begin..                ..end│ len │
//          └─────┴─────────────┴─────┴───────┴─────┴──────               ──────┴─────┴───
//            one copy, frames are views of it    └───── put together ──────┘
//
// Why lent: memory that is made anew for every read is what drives the engine's garbage collector on a broker, which
// otherwise makes next to nothing. So a byte takes new memory once, here, and no more of it than the frames need.
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
/** Whole frames that are copied together: a frame that is kept keeps no more neighbours than these. */
const RUN_BYTES_MAX = 64 * 1024
/** Less than this is copied into a slab that all readers share, since few bytes are not worth a buffer. */
const OWN_BUFFER_FROM_BYTES = 16 * 1024
const SLAB_BYTES = 64 * 1024

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
      if (this.want === 0) {
        const end = this.lengthHave > 0 ? at : this.runEnd(chunk, at)
        if (end > at) {
          if (!giveRun(chunk.subarray(at, end), onFrame)) return
          at = end
          continue
        }
        at = this.readLength(chunk, at)
        if (this.want === 0) break
      }
      const take = Math.min(this.want - this.have, chunk.length - at)
      this.gather(chunk.subarray(at, at + take))
      at += take
      if (this.have < this.want) break
      const frame = this.gathered
      this.gathered = EMPTY
      this.want = 0
      if (onFrame(frame) === false) return
    }
    this.ended = false
  }

  /** Where the run of whole frames that begins at `at` ends; at a length that is refused, too. */
  private runEnd(chunk: Uint8Array, at: number): number {
    let end = at
    while (chunk.length - end >= LENGTH_BYTES) {
      const length = getU32(chunk, end)
      if (length > this.frameBytesMax || length < FRAME_BYTES_MIN) break
      const next = end + LENGTH_BYTES + length
      if (next > chunk.length || (next - at > RUN_BYTES_MAX && end > at)) break
      end = next
    }
    return end
  }

  /** Begins a frame that is put together, unless the chunk ends within its length field. */
  private readLength(chunk: Uint8Array, from: number): number {
    let at = from
    while (this.lengthHave < LENGTH_BYTES) {
      if (at === chunk.length) return at
      this.lengthField[this.lengthHave++] = chunk[at++] as number
    }
    this.lengthHave = 0
    this.want = this.checked(getU32(this.lengthField, 0))
    this.have = 0
    this.gathered = memory(Math.min(this.want, EAGER_BYTES))
    return at
  }

  private gather(part: Uint8Array): void {
    const need = this.have + part.length
    if (need > this.gathered.length) {
      const larger = memory(Math.min(this.want, Math.max(need, GROWTH * this.have)))
      larger.set(this.gathered.subarray(0, this.have))
      this.gathered = larger
    }
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

/** Copies whole frames, length fields and all, and gives views of the copy; false when told to stop. */
function giveRun(lent: Uint8Array, onFrame: (frame: Uint8Array) => boolean | void): boolean {
  const run = memory(lent.length)
  run.set(lent)
  for (let at = 0; at < run.length; ) {
    const end = at + LENGTH_BYTES + getU32(run, at)
    if (onFrame(run.subarray(at + LENGTH_BYTES, end)) === false) return false
    at = end
  }
  return true
}

let slab: Uint8Array = EMPTY
let slabAt = 0

function memory(bytes: number): Uint8Array {
  // Not from Node's own pool, where whatever is kept would share its fate with things of any other kind.
  if (bytes >= OWN_BUFFER_FROM_BYTES) return Buffer.allocUnsafeSlow(bytes)
  if (slabAt + bytes > slab.length) {
    slab = Buffer.allocUnsafeSlow(SLAB_BYTES)
    slabAt = 0
  }
  const from = slabAt
  slabAt += bytes
  return slab.subarray(from, slabAt)
}
