// Turns queued records into the buffers of one vectored write. Heads and small tails go into a slab that
// is used again for every group; a large tail goes by reference, so that a batch of 64 KiB is never copied:
//
//   slab:     | group header | frame head tail | frame head |          | frame head tail |
//   written:  |--------------------- slab -----------------|-- batch --|----- slab ------|

import { FRAME_BYTES, GROUP_BYTES, type GroupHeader, putFrame, putGroup } from './record.ts'

/** Tails below this are copied: one more buffer in the write costs more than copying so few bytes. */
const COPY_BELOW = 4096
const SLAB_BYTES_LEAST = 16 * 1024

/** How a log's records become bytes: a head that is written in place, and a tail that exists already. */
export interface RecordShape<Target, Item> {
  headBytes(kind: number): number
  putHead(into: Uint8Array, at: number, kind: number, target: Target, item: Item): void
  tail(kind: number, item: Item): Uint8Array
}

export class GroupEncoder<Target, Item> {
  private readonly shape: RecordShape<Target, Item>
  /** As large as the largest group so far needed, about. */
  private slab: Uint8Array = new Uint8Array(0)
  private buffers: Uint8Array[] = []
  /** Where the slab is free, and from where it is not in `buffers` yet. */
  private at = 0
  private from = 0

  constructor(shape: RecordShape<Target, Item>) {
    this.shape = shape
  }

  /** Bytes of the record in the log. */
  size(kind: number, item: Item): number {
    return FRAME_BYTES + this.shape.headBytes(kind) + this.shape.tail(kind, item).length
  }

  /** `slabBytes` bounds what `begin` and `add` may put into the slab: the group's size is enough. */
  begin(slabBytes: number, firstLsn: number, header: GroupHeader, salt: number): void {
    if (slabBytes > this.slab.length) {
      this.slab = new Uint8Array(Math.max(slabBytes, 2 * this.slab.length, SLAB_BYTES_LEAST))
    }
    this.buffers = []
    putGroup(this.slab, 0, firstLsn, header, salt)
    this.at = GROUP_BYTES
    this.from = 0
  }

  add(kind: number, target: Target, item: Item, lsn: number, salt: number): void {
    const shape = this.shape
    const slab = this.slab
    const at = this.at
    const head = shape.headBytes(kind)
    const tail = shape.tail(kind, item)
    let end = at + FRAME_BYTES + head
    if (head > 0) shape.putHead(slab, at + FRAME_BYTES, kind, target, item)
    if (tail.length < COPY_BELOW) {
      slab.set(tail, end)
      end += tail.length
      putFrame(slab, at, end, kind, lsn, salt, undefined)
    } else {
      putFrame(slab, at, end, kind, lsn, salt, tail)
      this.buffers.push(slab.subarray(this.from, end), tail)
      this.from = end
    }
    this.at = end
  }

  finish(): readonly Uint8Array[] {
    if (this.at > this.from) this.buffers.push(this.slab.subarray(this.from, this.at))
    return this.buffers
  }
}
