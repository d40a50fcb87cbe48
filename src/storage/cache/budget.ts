// One budget for the recent tails of all segments of a broker. Only what a segment file has may leave, oldest first:
//
//   push ──> unflushed ──written()──> evictable, in the order in which it was written ──evict()──> gone
//
// Unflushed bytes are bounded by back-pressure (LogStore.room), which keeps the sum within the budget.

/** What an entry costs beyond its batch: itself, the view of the batch, its places in two lists that grow by doubling. */
export const ENTRY_OVERHEAD_BYTES = 320

export interface Evictable {
  /** The number of its oldest entry; what is below it has left. */
  readonly start: number
  /** Drops the oldest entry if its number is below `end`; returns the memory that became free, 0 when there is none. */
  evictOne(end: number): number
}

const SWEEP_LEAST = 1024

interface Written {
  readonly tail: Evictable
  readonly end: number
}

export class CacheBudget {
  readonly limitBytes: number
  bytes = 0
  unflushedBytes = 0
  private written: Written[] = []
  private head = 0
  /** So many may stand in `written` before those are looked for of which nothing is left. */
  private sweepAt = SWEEP_LEAST

  constructor(limitBytes: number) {
    this.limitBytes = limitBytes
  }

  added(bytes: number): void {
    this.bytes += bytes
    this.unflushedBytes += bytes
    if (this.bytes > this.limitBytes) this.evict()
  }

  /** Entries of `tail` below `end`, `bytes` of them new, are in its segment file. */
  wrote(tail: Evictable, end: number, bytes: number): void {
    this.unflushedBytes -= bytes
    this.written.push({ tail, end })
    if (this.waiting > this.sweepAt) this.sweep()
    if (this.bytes > this.limitBytes) this.evict()
  }

  /** Entries left memory in another way: dropped by a seal, or with their segment. */
  dropped(bytes: number, unflushedBytes: number): void {
    this.bytes -= bytes
    this.unflushedBytes -= unflushedBytes
  }

  /** Blocks that eviction has still to look at. */
  get waiting(): number {
    return this.written.length - this.head
  }

  /** Segments that were dropped leave nothing to evict: below the limit nobody would come by and see. */
  private sweep(): void {
    this.written = this.written.slice(this.head).filter(({ tail, end }) => tail.start < end)
    this.head = 0
    this.sweepAt = Math.max(SWEEP_LEAST, 2 * this.written.length)
  }

  private evict(): void {
    while (this.bytes > this.limitBytes) {
      const oldest = this.written[this.head]
      if (oldest === undefined) return
      const freed = oldest.tail.evictOne(oldest.end)
      this.bytes -= freed
      if (freed === 0) this.head++
    }
    if (this.head > 256 && this.head * 2 > this.written.length) {
      this.written = this.written.slice(this.head)
      this.head = 0
    }
  }
}
