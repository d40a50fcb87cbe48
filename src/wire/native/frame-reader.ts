// Cuts a byte stream into frames. A frame that lies within one chunk is a view of it, not a copy; one that spans chunks
// is gathered. An announced length is checked against the limit at once, but memory is only taken for bytes that have
// really arrived: a peer cannot reserve 72 MiB by sending four bytes.

import { concatBytes, EMPTY, getU32 } from '../../base/bytes.ts'
import { EastGuardError } from '../../base/errors.ts'
import { LENGTH_BYTES } from './header.ts'

/** The smallest frame: operation, version or flags, request id. */
const FRAME_BYTES_MIN = 6

export class FrameReader {
  /** May be raised after HELLO. */
  frameBytesMax: number
  private parts: Uint8Array[] = []
  private held = 0
  /** Bytes of the frame under way, length field included; 0 while that field is not whole. */
  private wanted = 0

  constructor(frameBytesMax: number) {
    this.frameBytesMax = frameBytesMax
  }

  /** True while a frame has begun and not ended. */
  get midFrame(): boolean {
    return this.held > 0
  }

  /**
   * Calls `onFrame` with each whole frame, without its length field. Throws FRAME_TOO_LARGE or MALFORMED_REQUEST; the
   * stream cannot be read further then. `onFrame` may return false to stop: what is left of the chunk is dropped.
   */
  push(chunk: Uint8Array, onFrame: (frame: Uint8Array) => boolean | void): void {
    let bytes = chunk
    let at = 0
    if (this.held > 0) {
      // The frame under way takes what it still needs; the rest of the chunk is then read in place.
      const needed = this.needed(chunk)
      if (needed > chunk.length) {
        this.keep(chunk)
        return
      }
      this.keep(chunk.subarray(0, needed))
      bytes = concatBytes(this.parts)
      this.forget()
      if (onFrame(bytes.subarray(LENGTH_BYTES)) === false) return
      bytes = chunk
      at = needed
    }
    while (bytes.length - at >= LENGTH_BYTES) {
      const end = at + LENGTH_BYTES + this.checked(getU32(bytes, at))
      if (end > bytes.length) break
      if (onFrame(bytes.subarray(at + LENGTH_BYTES, end)) === false) return
      at = end
    }
    if (at < bytes.length) {
      this.keep(bytes.subarray(at))
      this.measure(EMPTY)
    }
  }

  private keep(part: Uint8Array): void {
    this.parts.push(part)
    this.held += part.length
    // Many tiny parts (a peer that sends byte by byte) are joined, so that they cost what they weigh.
    if (this.parts.length > 64 && this.held < 64 * 1024) this.parts = [concatBytes(this.parts)]
  }

  private forget(): void {
    this.parts = []
    this.held = 0
    this.wanted = 0
  }

  /** How many bytes of `chunk` the frame under way still needs; more than it has when it will not be whole. */
  private needed(chunk: Uint8Array): number {
    this.measure(chunk)
    return this.wanted === 0 ? chunk.length + 1 : this.wanted - this.held
  }

  private measure(next: Uint8Array): void {
    if (this.wanted > 0 || this.held + next.length < LENGTH_BYTES) return
    const head = concatBytes([...this.parts, next.subarray(0, LENGTH_BYTES)])
    this.wanted = LENGTH_BYTES + this.checked(getU32(head, 0))
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
