// A file's bytes as the operating system sees them, and how to get back to what the platter holds.
//
//   content   what reads return: written, perhaps in the page cache only
//   undo      for every page that is not durable, the bytes it has on the platter
//
// A power cut puts undo pages back: all of them, or those that chance picks, as real disks do: pages of one write
// reach the platter in any order.

import type { Prng } from '../../base/prng.ts'

const PAGE_BYTES = 4096

export class SimFile {
  readonly kind = 'file' as const
  private content: Uint8Array = new Uint8Array(0)
  private undo = new Map<number, Uint8Array>()
  private durableSize = 0
  size = 0

  read(into: Uint8Array, position: number): number {
    const count = Math.max(0, Math.min(into.length, this.size - position))
    into.set(this.content.subarray(position, position + count))
    return count
  }

  write(bytes: Uint8Array, position: number): void {
    const end = position + bytes.length
    this.remember(Math.min(position, this.size), end)
    this.reserve(end)
    this.content.set(bytes, position)
    this.size = Math.max(this.size, end)
  }

  truncate(length: number): void {
    if (length < this.size) {
      this.remember(length, this.size)
      this.content.fill(0, length, this.size)
    } else {
      this.remember(this.size, length)
      this.reserve(length)
    }
    this.size = length
  }

  sync(): void {
    this.undo.clear()
    this.durableSize = this.size
  }

  /** What a durable write makes durable: its pages, and the length. */
  syncRange(position: number, length: number): void {
    const last = Math.floor((position + length - 1) / PAGE_BYTES)
    for (let page = Math.floor(position / PAGE_BYTES); page <= last; page++) this.undo.delete(page)
    this.durableSize = Math.max(this.durableSize, Math.min(this.size, position + length))
  }

  /** The power is cut. With `chance`, any pages may have made it; without, none. */
  powerCut(chance: Prng | undefined): void {
    for (const [page, bytes] of this.undo) {
      if (chance !== undefined && chance.below(2) === 0) continue
      this.content.set(bytes, page * PAGE_BYTES)
    }
    const size = chance === undefined || chance.below(2) === 0 ? this.durableSize : this.size
    this.reserve(size)
    this.content.fill(0, size)
    this.size = size
    this.sync()
  }

  private remember(from: number, to: number): void {
    if (to <= from) return
    this.reserve(to)
    const last = Math.floor((to - 1) / PAGE_BYTES)
    for (let page = Math.floor(from / PAGE_BYTES); page <= last; page++) {
      if (this.undo.has(page)) continue
      this.undo.set(page, this.content.slice(page * PAGE_BYTES, (page + 1) * PAGE_BYTES))
    }
  }

  /** Whole pages, so that an undo page always fits. */
  private reserve(length: number): void {
    if (length <= this.content.length) return
    const wanted = Math.max(length, 2 * this.content.length)
    const larger = new Uint8Array(Math.ceil(wanted / PAGE_BYTES) * PAGE_BYTES)
    larger.set(this.content)
    this.content = larger
  }
}

/** The bytes of an unfinished write that made it before everything stopped: any of its pages. */
export function writeSomePages(
  file: SimFile,
  bytes: Uint8Array,
  position: number,
  chance: Prng,
): void {
  for (let at = 0; at < bytes.length; ) {
    const pageEnd = (Math.floor((position + at) / PAGE_BYTES) + 1) * PAGE_BYTES - position
    const end = Math.min(bytes.length, pageEnd)
    if (chance.below(2) === 0) file.write(bytes.subarray(at, end), position + at)
    at = end
  }
}
